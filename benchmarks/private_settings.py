"""Settings of private training chosen on validation triples: `python -m benchmarks.private_settings --help`.

One setting after another goes up and down a ladder of values, and stays where the tail MRR of the validation triples is
best, until a pass over all settings changes nothing. Each try trains all clients' triples with the noise of shares, or
with all noise of every client (`benchmarks.private.arms`), on the splits that `benchmarks.private_federation` draws
from the same seeds: their test triples are neither trained on, nor ranked, nor left out of ranks. First rows,
candidates and noise come from other seeds than a test's do.

A search like this looks at triples, and is outside epsilon: do it on public data.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from launch.command_line import OneLineParser, deliver, require_json, run_command
from secure_kg.data.catalogue import BUNDLED
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import TrainingDiverged, UserError
from secure_kg.models.shapes import MODELS
from secure_kg.privacy.training_config import PrivateTrainingConfig

LADDERS: Final[dict[str, tuple[Any, ...]]] = {
    "stride": (0.0025, 0.0035, 0.005, 0.007, 0.01, 0.014, 0.02, 0.028, 0.04),
    "margin": (1.0, 2.0, 4.0, 6.0, 8.0, 10.0, 14.0, 20.0),
    "steps": (50, 70, 100, 140, 200, 280, 400),
    "clip": (0.05, 0.1, 0.15, 0.2, 0.3, 0.45, 0.7, 1.0, 2.0),
    "dim": (16, 24, 32, 48, 64, 96),
    "last_step": (0.03, 0.1, 0.3, 0.6, 1.0),
    "temperature": (0.0, 0.5, 1.0, 2.0, 3.0, 4.0),
    "negatives": (32, 64, 96, 128),
}
"""Values to try. `stride` is the step times the clip: what one triple whose gradient is clipped moves rows by. Initial
rows grow with the margin."""
_SEEDS_APART: Final = 1000  # between a split's seed and the seed of first rows, candidates and noise
_LEAST_GAIN: Final = 5e-4


def main(argv: Sequence[str] | None = None) -> int:
    """0: measured. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.private_settings",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m benchmarks.private_settings --dataset kinships --epsilon 16 --splits 0 1",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--dataset", default="kinships", metavar="PATH", help=f"a folder, or one of {', '.join(BUNDLED)} [kinships]")
    add("--by", default="triples", help="how triples are divided among clients [triples]")
    add("--clients", type=int, default=5, metavar="N", help="[5]")
    add("--epsilon", type=float, default=16.0, metavar="E", help="[16]")
    add("--delta", type=float, default=1e-5, metavar="P", help="[1e-5]")
    add("--noise", choices=("shares", "full"), default="shares", help="who adds it [shares]")
    add("--spare", type=int, default=1, metavar="F", help="of shares: clients that may be corrupt or missing [1]")
    add("--splits", type=int, nargs="+", default=[0, 1], metavar="SEED", help="splits to try on [0 1]")
    add("--model", default="distmult", choices=[name.lower() for name in MODELS], help="[distmult]")
    add("--settings", nargs="+", choices=list(LADDERS), default=list(LADDERS), help="which to move [all]")
    add("--start", nargs="+", default=[], metavar="NAME=VALUE", help="where to begin [the defaults of training]")
    add("--passes", type=int, default=2, metavar="N", help="over all settings, at most [2]")
    add("--json", metavar="FILE", help="write all tries to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.passes < 0 or not 0 <= options.spare < options.clients or min(options.splits) < 0:
        raise UserError("--passes and --splits must not be negative, --spare must lie below --clients")
    require_json(options.json)
    search = _Search(options)
    begin = _start(options.start)
    best = search.climbed(begin, options.passes, options.settings)
    told = {name: value for name, value in vars(options).items() if name not in ("json", "passes", "settings", "start")}
    report = told | {"start": begin, "best": best, "best_mrr": search.tried(best), "tries": search.tries}
    deliver(report, options.json, _show)
    return 0


def _start(words: Sequence[str]) -> dict[str, Any]:
    usual = PrivateTrainingConfig()
    begin: dict[str, Any] = {name: getattr(usual, name) for name in LADDERS if name != "stride"}
    begin["stride"] = usual.step * usual.clip
    for word in words:
        name, _, value = word.partition("=")
        if name not in LADDERS:
            raise UserError(f"--start {word}: there are {', '.join(LADDERS)}")
        try:
            begin[name] = type(LADDERS[name][0])(value)
        except ValueError:
            raise UserError(f"--start {word}: {value or 'nothing'} is no number of that kind") from None
    return begin


class _Search:
    """Tries and what they gave."""

    def __init__(self, options: argparse.Namespace) -> None:
        import torch

        from benchmarks.private.arms import Arm, Sites
        from secure_kg.data.partition import partition
        from secure_kg.data.sources import load_source
        from secure_kg.privacy.accounting.accountant import Budget

        torch.set_num_threads(1)
        source = load_source(options.dataset)
        self._sites = {
            seed: Sites(partition(source, options.clients, options.by, seed)) for seed in dict.fromkeys(options.splits)
        }
        self._arm = Arm(options.noise, Budget(options.epsilon, options.delta), options.spare)
        self._model = {name.lower(): name for name in MODELS}[options.model]
        self._quiet = options.json == "-"
        self.tries: list[dict[str, Any]] = []
        self._known: dict[str, float] = {}

    def tried(self, settings: Mapping[str, Any]) -> float:
        """The mean tail MRR of validation triples over the splits; 0 if a training diverges."""
        key = json.dumps(settings, sort_keys=True)
        if key not in self._known:
            by_split = [self._one(seed, config_of(settings, self._model)) for seed in self._sites]
            self._known[key] = statistics.mean(by_split)
            self.tries.append(dict(settings) | {"mrr": self._known[key], "by_split": by_split})
            if not self._quiet:
                say(f"{self._known[key]:.4f}  {', '.join(f'{name} {value:g}' for name, value in settings.items())}")
        return self._known[key]

    def _one(self, seed: int, config: PrivateTrainingConfig) -> float:
        from benchmarks.private.arms import SeededNoise, measured

        try:
            found = measured(
                self._sites[seed], config, self._arm, _SEEDS_APART + seed, part="valid",
                source=SeededNoise(_SEEDS_APART + seed),
            )  # fmt: skip
        except TrainingDiverged:
            return 0.0
        return found.metrics()["mrr"]

    def climbed(self, settings: dict[str, Any], passes: int, names: Sequence[str]) -> dict[str, Any]:
        """The best settings that steps up and down one ladder at a time lead to."""
        for _ in range(passes):
            before = settings
            for name in names:
                for direction in (1, -1):
                    settings = self._along(settings, name, direction)
            if settings == before:
                break
        return settings

    def _along(self, settings: dict[str, Any], name: str, direction: int) -> dict[str, Any]:
        while True:
            beyond = [value for value in LADDERS[name] if (value - settings[name]) * direction > 1e-9]
            if not beyond:
                return settings
            tried = settings | {name: beyond[0] if direction > 0 else beyond[-1]}
            if self.tried(tried) < self.tried(settings) + _LEAST_GAIN:
                return settings
            settings = tried


def config_of(settings: Mapping[str, Any], model: str) -> PrivateTrainingConfig:
    """The settings as training takes them."""
    named = {name: value for name, value in settings.items() if name != "stride"}
    return replace(PrivateTrainingConfig(**named), model=model, step=settings["stride"] / settings["clip"])


def _show(report: dict[str, Any]) -> None:
    tries = sorted(report["tries"], key=lambda one: -one["mrr"])[:10]
    rows = [[f"{one['mrr']:.4f}", *(f"{one[name]:g}" for name in LADDERS)] for one in tries]
    about = f"{report['dataset']}, {report['model']}, {report['noise']}, epsilon {report['epsilon']:g}"
    table(f"{about}: validation, tail MRR, the best of {len(report['tries'])}", ("MRR", *LADDERS), rows)
    best = report["best"]
    say(f"--step {best['stride'] / best['clip']:.4g} (stride over clip). Chosen by results: outside epsilon.")


if __name__ == "__main__":
    sys.exit(main())
