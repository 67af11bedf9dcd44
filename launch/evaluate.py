"""Filtered metrics of a client's trained model: `python -m launch.evaluate RUN --client K --test FILE`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from launch.command_line import deliver, require_json, run_command
from launch.reading_options import add_reading_options, reading_of
from launch.using import add_device, using_parser
from secure_kg.data.readers.interface import FileRules
from secure_kg.evaluation.metric_names import METRICS
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.words import counted
from secure_kg.runs.records.summary import TITLES, written
from secure_kg.trained.run import load_run

if TYPE_CHECKING:
    from secure_kg.trained.evaluating import Evaluated

_DESCRIPTION: Final = """\
Rank the triples of a file with a client's trained model, among the client's own entities and with all that it knows
left out of the candidates, as at the end of a run. Without a file its own test part is ranked, and compared with what
the run has recorded.

Triples with a name that the client's graph lacks cannot be ranked: they are counted."""

_EXAMPLES: Final = """\
examples:
  python -m launch.evaluate runs/NAME --client 2
  python -m launch.evaluate runs/NAME --client 2 --file new.nt --json figures.json

FILE has triples in any supported format (docs/data.md). Encoders of FedCQA are asked queries with one projection;
their other types of queries are judged at the end of the run."""


def main(argv: Sequence[str] | None = None) -> int:
    """0: ranked. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(make_parser().parse_args(argv)))


def make_parser() -> argparse.ArgumentParser:
    """The options of this command."""
    parser = using_parser("launch.evaluate", _DESCRIPTION, _EXAMPLES)
    parser.add_argument(
        "--test", "--file", type=Path, metavar="FILE", help="a file of triples [the client's own test part]"
    )
    add_reading_options(parser)
    add_device(parser, "cpu")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    require_json(options.json)
    if options.test is not None and not options.test.is_file():
        raise UserError(f"--test {options.test}: no such file")
    run = load_run(options.run, options.client_data)
    model = run.client(options.client, options.device)
    from secure_kg.trained.evaluating import evaluate

    # Blank nodes of a client's own files have its number in their names.
    owner = str(model.number) if run.settings.client_data is not None else ""
    found = evaluate(model, options.test, FileRules(reading_of(options), owner, "file"))
    record = {
        "run": str(options.run),
        "client": model.number,
        "model": model.scorer.name,
        "test": None if options.test is None else str(options.test),
        **found.to_json(),
    }
    deliver(record, options.json, lambda record: _show(record, found))
    return 0


def _show(record: dict[str, Any], found: "Evaluated") -> None:
    part = "its own test part" if record["test"] is None else Path(record["test"]).name
    sides = {"tail": found.tail.metrics(), "both sides": found.both.metrics()}
    rows = [[side, *(written(name, figures[name]) for name in METRICS)] for side, figures in sides.items()]
    ranked = f"{record['ranked']:,} of {record['triples']:,} triples ranked"
    say(f"client {record['client']}, {record['model']}, {part}: {ranked}")
    table("", ("filtered", *(TITLES[name] for name in METRICS)), rows)
    if missing := found.tested.not_ranked:
        names = f"{counted(record['unknown_entities'], 'unknown name')} of entities"
        names += f", {record['unknown_relations']} of relations"
        say(f"not ranked: {counted(missing, 'triple')} ({names})")
        say(f"tail MRR with these as not found: {found.mrr_of_all:.4f}")
    for count, what in ((found.in_train, "trained on"), (found.in_valid, "used to choose the best round")):
        if count:
            say(f"warning: {counted(count, 'ranked triple')} {what}: the figures flatter the model")
    if found.repeated:
        say(f"{counted(found.repeated, 'triple')} repeated, each counted as often as it stands there")
    if found.as_recorded is not None:
        told = "as recorded" if found.as_recorded else "not as recorded: model or data have changed"
        say(f"{told} at the end of the run (MRR {found.recorded_mrr:.4f} in result.json)")


if __name__ == "__main__":
    sys.exit(main())
