"""DPKGE's tables on FB15k-237 measured again: mean rank and Hits@10 of all arms, the paper's beside ours.

Arms and epsilons are the paper's; noise falls on all rows, on Poisson samples, as its accountant takes for granted.
What deviates beside that is told. Controls: counts of tails and heads by relation, over U, and with C under noise; and
what the noise as printed gives away. Each cell lies in a file of its own; what is there with the same settings is not
run again, so the command can be stopped at any time and called again.
"""

import argparse
import dataclasses
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.reproduction.confidential_figures import DATASET, EPSILONS, FRACTION, MODELS, Cell, cells, printed
from benchmarks.reproduction.confidential_figures import SETTINGS as PAPER_SETTINGS
from launch.command_line import OneLineParser, deliver, require_json, require_writable, run_command
from secure_kg.data.graph import ClientGraph
from secure_kg.data.partition import load_client
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import TrainingDiverged, UserError
from secure_kg.privacy.training_config import PrivateTrainingConfig
from secure_kg.runs.run_folder import write_json, write_whole

if TYPE_CHECKING:
    from secure_kg.privacy.confidential.arms import Arm
    from secure_kg.privacy.confidential.marking import Divided

NAME: Final = "dpkge-tables"
NOTES: Final = (
    "Epsilon is of one confidential statement under DPKGE, of one statement under FullDP; delta is 1 / N.",
    "The paper's noise falls on rows of the batch only and its batches are no Poisson samples: its epsilons do not "
    "hold for what it trained. Ours do, so its figures at the same epsilon are not those of the same promise.",
    "counts: tails and heads by relation, no training. U: over unrestricted statements, which costs no privacy. "
    "U + noised C: with the confidential ones under the noise of that epsilon.",
)
_HEAD: Final = ("model", "arm", "sigma", "epsilon", "noise", "MR paper", "MR here", "Hits@10 paper", "Hits@10 here")
_EXAMPLE: Final = """\
examples:
  python -m benchmarks.reproduce dpkge-tables --data-root DIR --models TransE DistMult --json dpkge.json
  python -m benchmarks.reproduce dpkge-tables --data-root DIR --arms NDP U-only DPKGE --passes 30"""


def main(argv: Sequence[str]) -> int:
    """0: done. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog=f"python -m benchmarks.reproduce {NAME}",
        description=__doc__,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--data-root", type=Path, required=True, metavar="DIR", help=f"holds {DATASET}/")
    add("--models", nargs="+", default=["TransE", "DistMult"], metavar="MODEL", help="of the table [TransE DistMult]")
    arms = ("NDP", "U-only", *EPSILONS)
    add("--arms", nargs="+", choices=arms, default=list(arms), metavar="ARM", help=f"[{' '.join(arms)}]")
    add("--passes", type=int, default=15, metavar="T", help=f"over each part [15; paper {PAPER_SETTINGS['passes']}]")
    add("--sampling", type=float, default=0.05, metavar="Q", help="rate of Poisson samples [0.05]")
    add("--dim", type=int, default=32, help=f"[32; paper {PAPER_SETTINGS['dim']}]")
    add("--negatives", type=int, default=64, metavar="K", help="public, shared by all statements of a step [64]")
    add("--rate", type=float, default=0.3, metavar="L", help="step per unit of a mean gradient and per entity [0.3]")
    add("--clip-quantile", type=float, default=0.2, metavar="P", help="of gradient norms of U [0.2, as in the paper]")
    add(
        "--part", choices=("valid", "test"), default="test", help="which is ranked; settings are chosen by valid [test]"
    )
    add("--seed", type=int, default=0, metavar="S", help="[0]")
    add("--printed-passes", type=int, default=5, metavar="T", help="over C, under the noise as printed; 0: none [5]")
    add("--runs", type=Path, default=Path("runs/reproduction"), metavar="DIR", help="where cells lie, and are found")
    add("--json", metavar="FILE", help="write the table to FILE; - for standard output")
    add("--markdown", metavar="FILE", help="write the table to FILE as Markdown")
    return parser


def _run(options: argparse.Namespace) -> int:
    known = {name.lower(): name for name in MODELS}
    for model in options.models:
        if model.lower() not in known:
            raise UserError(f"--models {model}: this table has {', '.join(MODELS)}")
    if not 0 < options.rate < float("inf") or options.seed < 0 or options.printed_passes < 0:
        raise UserError("--rate must be a positive number; --seed and --printed-passes must not be negative")
    data: Path = options.data_root / DATASET
    if not data.exists():
        raise UserError(f"--data-root {options.data_root}: no {DATASET} there")
    names = ("passes", "sampling", "dim", "negatives", "rate", "clip_quantile", "part", "seed")
    settings = {name: getattr(options, name) for name in names}
    table_of = _Table(load_client(str(data), 1, 1, "whole", 0, allow_leaky=True), settings, options.runs)
    require_json(options.json)
    if options.markdown is not None:
        require_writable(Path(options.markdown))
    quiet = options.json == "-"
    asked = [cell for model in dict.fromkeys(known[one.lower()] for one in options.models) for cell in cells(model)]
    asked = [cell for cell in asked if cell.arm in options.arms]
    report = table_of.measured(asked, options.printed_passes, quiet)
    deliver(report, options.json, _show)
    if options.markdown is not None:
        write_whole(Path(options.markdown), markdown(report).encode())
    return 0


class _Table:
    """Cells over one graph, half of it confidential."""

    def __init__(self, graph: ClientGraph, settings: Mapping[str, Any], runs: Path) -> None:
        import torch

        from secure_kg.privacy.confidential.figures import Judged
        from secure_kg.privacy.confidential.marking import by_fraction

        torch.set_num_threads(1)
        self._graph, self._settings, self._runs = graph, dict(settings), runs
        self._config("TransE")  # a mistake is told before any work
        self._statements: Divided = by_fraction(graph, FRACTION, self._settings["seed"])
        self._ranking = Judged(part=self._settings["part"]).ranking(graph)
        self._delta = 1 / len(graph.train)

    def measured(self, asked: Sequence[Cell], printed_passes: int, quiet: bool) -> dict[str, Any]:
        """All cells and controls."""
        lines = []
        for place, cell in enumerate(asked, start=1):
            line = self._kept(cell.name, lambda cell=cell: self._line(cell))
            if not quiet:
                ends = "diverged" if line["mean_rank"] is None else f"MR {line['mean_rank']:.0f}"
                say(f"[{place}/{len(asked)}] {cell.name}: {ends}, {line['processor_seconds']:.0f} processor seconds")
            lines.append(line)
        controls = [self._kept("counts-u", lambda: self._counted(None))]
        epsilons = sorted({cell.epsilon for cell in asked if cell.arm == "DPKGE" and cell.epsilon}, reverse=True)
        for epsilon in epsilons:
            controls.append(self._kept(f"counts-{epsilon:g}", lambda one=epsilon: self._counted(one)))
        given = None
        if printed_passes:
            given = self._kept(f"printed-{printed_passes}", lambda: self._given_away(printed_passes))
        sizes = {"train": len(self._graph.train), "delta": self._delta}
        return {"table": NAME, "dataset": DATASET, "settings": self._settings, "paper_settings": PAPER_SETTINGS,
                **sizes, "lines": lines, "controls": controls, "as_printed": given, "notes": list(NOTES)}  # fmt: skip

    def _kept(self, name: str, measure: Any) -> dict[str, Any]:
        """From its file, if that has the same settings; otherwise measured and written."""
        path = self._runs / f"dpkge-{DATASET}" / f"{name}.json"
        about = {"settings": self._settings, "train": len(self._graph.train)}
        try:
            there = json.loads(path.read_text(encoding="utf-8"))
            if there["about"] == about:
                line: dict[str, Any] = there["line"]
                return line
        except (OSError, ValueError, KeyError, TypeError):
            pass
        start = time.process_time()
        found: dict[str, Any] = measure()
        found["processor_seconds"] = time.process_time() - start
        write_json(path, {"about": about, "line": found})
        return found

    def _config(self, model: str) -> PrivateTrainingConfig:
        names = ("dim", "negatives", "sampling")
        chosen = {name: self._settings[name] for name in names}
        steps = self._settings["passes"]
        return PrivateTrainingConfig(model=model, steps=steps, temperature=1.0, corrupt="both", **chosen)

    def _arm(self, cell: Cell) -> "Arm":
        from secure_kg.privacy.confidential.arms import Arm
        from secure_kg.privacy.confidential.training import public_clip

        sizes, config = (len(self._graph.entities), len(self._graph.relations)), self._config(cell.model)
        taken = self._settings["seed"], self._settings["clip_quantile"]
        config = replace(config, clip=public_clip(self._statements.unrestricted, config, sizes, *taken))
        return Arm(cell.arm, self._graph, self._statements, config, self._settings["rate"] * sizes[0])

    def _line(self, cell: Cell) -> dict[str, Any]:
        from secure_kg.privacy.accounting.accountant import Budget

        arm = self._arm(cell)
        budget = None if cell.epsilon is None else Budget(cell.epsilon, self._delta)
        rank, hits = printed(cell)
        line = dataclasses.asdict(cell) | {"sigma": cell.sigma, "paper_mean_rank": rank, "paper_hits@10": hits / 100}
        line |= {"noise": None if budget is None else arm.noise(budget), "clip": arm.config.clip}
        try:
            return line | self._metrics(arm.trained(self._settings["seed"], budget))
        except TrainingDiverged:  # noise may be too much for a rate, which is a result
            return line | dict.fromkeys(("mean_rank", "hits@10", "mrr"))

    def _counted(self, epsilon: float | None) -> dict[str, Any]:
        from benchmarks.reproduction.count_tables import count_tables
        from secure_kg.privacy.accounting.accountant import Budget

        budget = None if epsilon is None else Budget(epsilon, self._delta)
        words = "U" if epsilon is None else "U + noised C"
        return {"arm": words, "epsilon": epsilon} | self._metrics(count_tables(self._graph, self._statements, budget))

    def _given_away(self, passes: int) -> dict[str, Any]:
        from benchmarks.reproduction.touched_rows import given_away

        batch = len(self._graph.train) ** 0.5
        rate = min(0.5, batch / max(1, len(self._statements.confidential)))
        config = replace(self._config("TransE"), steps=passes, sampling=rate)
        return given_away(self._graph, self._statements, config, noise=0.7)

    def _metrics(self, scorer: Any) -> dict[str, Any]:
        found = self._ranking.rank(scorer, self._graph.part(self._settings["part"]), "both").metrics()
        return {name: found[name] for name in ("mean_rank", "hits@10", "mrr")}


def _told(value: float | None, form: str = "g") -> str:
    return "" if value is None else format(value, form)


def _cells(report: Mapping[str, Any]) -> list[list[str]]:
    lines = [
        [line["model"], line["arm"], _told(line["sigma"]), _told(line["epsilon"]), _told(line["noise"], ".2f"),
         f"{line['paper_mean_rank']:.0f}", _told(line["mean_rank"], ".0f") or "diverged",
         f"{100 * line['paper_hits@10']:.1f}", "" if line["hits@10"] is None else f"{100 * line['hits@10']:.1f}"]
        for line in report["lines"]
    ]  # fmt: skip
    return lines + [
        ["counts", line["arm"], "", _told(line["epsilon"]), "", "", f"{line['mean_rank']:.0f}", "",
         f"{100 * line['hits@10']:.1f}"]
        for line in report["controls"]
    ]  # fmt: skip


def _printed_words(report: Mapping[str, Any]) -> list[str]:
    given = report["as_printed"]
    if given is None:
        return []
    return [
        f"Noise as printed, {given['passes']} passes over C: rows that move tell confidential statements from held-out "
        f"ones with AUC {given['touched_rows']:.3f}; with noise on all rows {given['all_rows']:.3f}."
    ]


def _show(report: dict[str, Any]) -> None:
    table(
        f"DPKGE, {report['dataset']}, {report['settings']['part']}, both sides, r = {FRACTION}", _HEAD, _cells(report)
    )
    for words in (*_printed_words(report), *report["notes"]):
        say(words)


def markdown(report: Mapping[str, Any]) -> str:
    """The table for a document."""
    lines = ["| " + " | ".join(_HEAD) + " |", "|" + "---|" * len(_HEAD)]
    lines += ["| " + " | ".join(cells) + " |" for cells in _cells(report)]
    return "\n".join([*lines, "", *(f"- {words}" for words in (*_printed_words(report), *report["notes"]))]) + "\n"
