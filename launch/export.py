"""A client's trained model for other programs: `python -m launch.export RUN --client K --to pykeen --out DIR`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from launch.command_line import deliver, require_json, require_writable, run_command
from launch.using import client_model, using_parser
from secure_kg.data.folders import require_new_or_empty
from secure_kg.foundation.console import say

_FORMATS: Final = ("pykeen", "safetensors", "word2vec", "neo4j")
_DESCRIPTION: Final = """\
Write a client's trained model for another program. The README in the folder says how the files are read. They hold
names and rows of the client, for PyKEEN and Neo4j also its triples, and are readable by their owner alone.

  pykeen       safetensors under the names of PyKEEN's state, triples as TSV; no pickle
  safetensors  the rows as they are, vocabularies as TSV, what the numbers mean as JSON
  word2vec     text, one file for entities and one for relations
  neo4j        CSV of nodes with vectors, and of relationships, with the headers of neo4j-admin"""

_EXAMPLES: Final = """\
examples:
  python -m launch.export runs/NAME --client 2 --to pykeen --out exported
  python -m launch.export runs/NAME --client 2 --to neo4j --out for-neo4j"""


def main(argv: Sequence[str] | None = None) -> int:
    """0: written. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(make_parser().parse_args(argv)))


def make_parser() -> argparse.ArgumentParser:
    """The options of this command."""
    parser = using_parser("launch.export", _DESCRIPTION, _EXAMPLES)
    parser.add_argument("--to", required=True, choices=_FORMATS, help="the format")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="new or empty folder")
    parser.add_argument("--json", metavar="FILE", help="write the list of files to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    require_new_or_empty(options.out)
    require_writable(options.out / "README.md")
    require_json(options.json)
    model = client_model(options)
    from secure_kg.trained.exports.registry import export

    remarks = list(export(model, options.to, options.out))
    record = {
        "run": str(options.run),
        "client": model.number,
        "model": model.scorer.name,
        "format": options.to,
        "out": str(options.out),
        "files": {path.name: path.stat().st_size for path in sorted(options.out.iterdir())},
        "notes": remarks,
    }
    deliver(record, options.json, _show)
    return 0


def _show(record: dict[str, Any]) -> None:
    for remark in record["notes"]:
        say(f"note: {remark}")
    names = ", ".join(record["files"])
    say(f"client {record['client']}, {record['model']}: written to {record['out']} ({names})")


if __name__ == "__main__":
    sys.exit(main())
