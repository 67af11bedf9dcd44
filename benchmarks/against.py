"""This checkout next to another one of this project, for `benchmarks.kge --against`: two processes, in turns.

One process trains an epoch while the other waits, so that what disturbs the machine disturbs both. Figures are medians
over turns without the first, in which loops are compiled; ratios are medians over pairs of turns.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from secure_kg.data.catalogue import BUNDLED, canonical
from secure_kg.data.triples import shown
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.runs.run_folder import write_json

ROOT: Final = Path(__file__).resolve().parents[1]
SIDES: Final = ("this", "other")


class Side:
    """A process that trains when it is told to, in a checkout of its own."""

    def __init__(self, checkout: Path, told: Mapping[str, Any]) -> None:
        command = [sys.executable, str(ROOT / "benchmarks" / "timed_trainer.py")]
        pipe = subprocess.PIPE
        self._checkout = checkout
        self._process = subprocess.Popen(command, cwd=checkout, text=True, stdin=pipe, stdout=pipe)
        self.sizes = self.ask(json.dumps(told))

    def ask(self, line: str) -> dict[str, Any]:
        """What the process answers to a line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):  # its reason stands on standard error
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        answered = self._process.stdout.readline()
        if not answered:
            raise UserError(f"the trainer of {shown(self._checkout)} has ended; its reason stands above")
        found: dict[str, Any] = json.loads(answered)
        return found

    def __enter__(self) -> "Side":
        return self

    def __exit__(self, *problem: object) -> None:
        self._process.kill()
        self._process.communicate()


def run(config: TrainingConfig, options: argparse.Namespace, setting: dict[str, Any]) -> int:
    """Measure, and show or write the figures; 0."""
    other, quiet = checkout_at(options.against), options.json == "-"
    dataset = options.dataset if canonical(options.dataset) in BUNDLED else str(Path(options.dataset).resolve())
    told = {"dataset": dataset, "config": asdict(config), "seed": options.seed, "threads": options.threads}
    report = setting | compare(other, told, (options.epochs, options.repeats), (lambda text: None) if quiet else say)
    if quiet:
        say(json.dumps(report, indent=2, allow_nan=False))
        return 0
    show(report, f"{report['dataset']}, {config.model} {config.dim}: {options.epochs} epochs")
    if options.json:
        write_json(Path(options.json), report)
    return 0


def checkout_at(path: str) -> Path:
    """The folder of a checkout; refuses what is none."""
    folder = Path(path).resolve()
    if not (folder / "secure_kg" / "learning" / "kge.py").is_file() or not (folder / "benchmarks" / "kge.py").is_file():
        raise UserError(f"--against {shown(path)}: not a checkout of this project with a benchmarks.kge")
    return folder


def commit_of(checkout: Path) -> str | None:
    """The commit that is checked out, where git can tell."""
    done = subprocess.run(
        ["git", "-C", str(checkout), "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or None


def compare(
    other: Path, told: Mapping[str, Any], turns: tuple[int, int], tell: Callable[[str], None]
) -> dict[str, Any]:
    """Figures of both; `turns`: epochs and rankings of each."""
    epochs, repeats = turns
    taken: dict[str, dict[str, list[dict[str, Any]]]] = {side: {"train": [], "rank": []} for side in SIDES}
    with Side(ROOT, told) as ours, Side(other, told) as theirs:
        sizes = ours.sizes
        for work, number in (("train", epochs), ("rank", repeats + 1)):
            for turn in range(number):
                for name, side in zip(SIDES, (ours, theirs), strict=True):
                    taken[name][work].append(side.ask(work))
                here, there = (taken[name][work][-1]["cpu_seconds"] for name in SIDES)
                tell(f"{work} {turn + 1}/{number}: this {here:.2f} CPU s, the other {there:.2f} CPU s")
    return {
        "commits": {"this": commit_of(ROOT), "other": commit_of(other)},
        **{name: _figures(taken[name], sizes) for name in SIDES},
        **{f"{work}_{clock}_ratio": _ratio(taken, work, clock) for work in taken["this"] for clock in _CLOCKS},
    }


_CLOCKS: Final = ("seconds", "cpu_seconds")


def _steady(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return turns[1:] or turns


def _figures(taken: dict[str, list[dict[str, Any]]], sizes: dict[str, Any]) -> dict[str, Any]:
    number = {"train": sizes["triples"], "rank": sizes["test"]}
    return {
        **{
            f"{work}_triples_per_{'s' if clock == 'seconds' else 'cpu_s'}": statistics.median(
                number[work] / turn[clock] for turn in _steady(turns)
            )
            for work, turns in taken.items()
            for clock in _CLOCKS
        },
        "loss": taken["train"][-1]["loss"],
        "mrr": taken["rank"][-1]["mrr"],
        "turns": taken,
    }


def _ratio(taken: dict[str, dict[str, list[dict[str, Any]]]], work: str, clock: str) -> float:
    """How many times as fast this checkout is."""
    pairs = zip(*(_steady(taken[name][work]) for name in SIDES), strict=True)
    return statistics.median(float(other[clock]) / float(this[clock]) for this, other in pairs)


def show(report: dict[str, Any], title: str) -> None:
    rows: list[list[str | int]] = [
        [what, *(f"{report[name][figure]:,.0f}" for name in SIDES), f"{report[ratio]:.2f}"]
        for what, figure, ratio in (
            ("training, triples/s", "train_triples_per_s", "train_seconds_ratio"),
            ("training, triples per CPU second", "train_triples_per_cpu_s", "train_cpu_seconds_ratio"),
            ("ranking, triples/s", "rank_triples_per_s", "rank_seconds_ratio"),
            ("ranking, triples per CPU second", "rank_triples_per_cpu_s", "rank_cpu_seconds_ratio"),
        )
    ]
    for what, key in (("last loss", "loss"), ("test MRR", "mrr")):
        rows.append([what, *(f"{report[name][key]:.4f}" for name in SIDES), ""])
    table(title, ("", *(report["commits"][name] or name for name in SIDES), "ratio"), rows)
    say("the two took turns, each in a process of its own; medians")
