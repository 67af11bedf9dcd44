"""A client's update from the sums around its dropout, measured: `python -m benchmarks.interpolation --help`."""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.cheating.interpolating import TooSlowOnce, interpolated_dropout
from benchmarks.cheating.spoils import sums_read
from benchmarks.cheating.stage import CLIENTS, SMALL, VICTIM, Stage, stage_config
from launch.command_line import OneLineParser, require_writable, run_command
from secure_kg.audit.attacking import ReadSums
from secure_kg.data.partition import partition
from secure_kg.data.sources import load_source
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.runs.run_folder import write_json

ROUNDS: Final = 16
WITHOUT: Final = 10

_DESCRIPTION = f"""\
Five clients train TransE for {ROUNDS} rounds. In round {WITHOUT} the server calls client {VICTIM} too slow. From the
sums of the two rounds before and after it the server computes what the client's update would have been
(`secure_kg.attacks.interpolation`).

  error              of that against the client's own updates, as a root mean square
  error of the mean  of the guess that the client's update was the mean one
  explained          squared correlation of what was found with how the client differs from the mean
  as audited         the same as an audit estimates it, which knows the sums alone"""


@dataclass(frozen=True, slots=True)
class Setting:
    """One run that is measured."""

    dataset: str
    training: TrainingConfig


SETTINGS: Final = {
    "nations-8": Setting("nations", SMALL),
    "nations-32": Setting("nations", TrainingConfig(dim=32, lr=0.01, negatives=256)),
    "umls-32": Setting("umls", TrainingConfig(dim=32, lr=0.01, negatives=32)),
    "umls-256": Setting("umls", TrainingConfig(dim=32, lr=0.01, negatives=256)),
}


def main(argv: Sequence[str] | None = None) -> int:
    """0: measured. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.interpolation",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: python -m benchmarks.interpolation --json interpolation.json",
        allow_abbrev=False,
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help=f"of {', '.join(SETTINGS)} [all]")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    names = options.only if options.only is not None else list(SETTINGS)
    if unknown := [name for name in names if name not in SETTINGS]:
        raise UserError(f"--only: there is no '{unknown[0]}'; choose of {', '.join(SETTINGS)}")
    if options.json not in (None, "-"):
        require_writable(Path(options.json))
    figures = {name: measured(SETTINGS[name]) for name in names}
    if options.json == "-":
        say(json.dumps(figures, indent=2))
        return 0
    shown = ("dim", "negatives", "error", "error_of_guessing", "explained", "as_audited")
    rows = [[name, *(f"{one[key]:.4g}" for key in shown)] for name, one in figures.items()]
    table("One dropout", ("", "dim", "negatives", "error", "error of the mean", "explained", "as audited"), rows)
    if options.json is not None:
        write_json(Path(options.json), figures)
    return 0


def measured(setting: Setting) -> dict[str, Any]:
    """One run, what the server gets of it, and what an audit says about that."""
    changes = {"dataset": setting.dataset, "rounds": ROUNDS, "eval_every": ROUNDS, "checkpoint_every": 0}
    config = stage_config(**changes, training=setting.training)
    graphs = partition(load_source(setting.dataset), CLIENTS, config.by, config.seed)
    with tempfile.TemporaryDirectory(prefix="interpolation-") as folder:
        stage = Stage(Path(folder), config, graphs)
        session = stage.perform(TooSlowOnce(WITHOUT))
        if session.outcome is None:
            raise UserError(f"the run on {setting.dataset} did not come to its end: {session.server_error}")
        found, sums = interpolated_dropout(stage, session, WITHOUT), ReadSums()
        if found.client is None:
            raise UserError(f"the run on {setting.dataset} lost other clients, too: start it on an idle machine")
        for total in sums_read(stage, session):
            sums.take(total)
    (audited,) = (one.scores["explained"] for one in sums.attacks(CLIENTS, {}, {}) if one.id == "interpolated-rows")
    training = {"dim": setting.training.dim, "negatives": setting.training.negatives}
    return {"dataset": setting.dataset, **training, **asdict(found), "as_audited": audited}


if __name__ == "__main__":
    sys.exit(main())
