"""Predictions of a client's trained model: `python -m launch.predict RUN --client K --head H --relation R`."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from launch.command_line import require_json, run_command
from launch.using import add_device, client_model, using_parser, whole_number
from secure_kg.foundation.console import fail, say, table
from secure_kg.foundation.errors import UserError
from secure_kg.runs.run_folder import write_json

if TYPE_CHECKING:
    from secure_kg.trained.client_model import ClientModel
    from secure_kg.trained.results import Predictions, TripleScore

_DESCRIPTION: Final = """\
Ask a client's trained model by names: which tails, heads or relations complete a triple, how a triple scores, which
entities are similar. It reads the client's own folder and data, and sends nothing to anybody.

Scores order the answers to one question and are not comparable between models. "above valid" is the share of the
client's validation triples that score lower: an empirical quantile, and no probability."""

_EXAMPLES: Final = """\
examples:
  python -m launch.predict runs/NAME --client 2 --head usa --relation embassy            tails
  python -m launch.predict runs/NAME --client 2 --relation embassy --tail usa            heads
  python -m launch.predict runs/NAME --client 2 --head usa --tail china                  relations
  python -m launch.predict runs/NAME --client 2 --head usa --relation embassy --tail uk  the score of a triple
  python -m launch.predict runs/NAME --client 2 --similar usa --top 5                    similar entities
  python -m launch.predict runs/NAME --client 2 --queries questions.tsv --json -         many at once

A line of questions.tsv is head<TAB>relation<TAB>tail with ? for what is asked; without ? the triple is scored. Exit
code 2 if a question has no answer. docs/use.md explains the figures."""

_UNKNOWN: Final = "?"
Names = tuple[str | None, str | None, str | None]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question, and what came of it."""

    names: Names
    similar: str | None
    line: int | None
    answer: "Predictions | TripleScore | None" = None
    problem: str | None = None

    def to_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "head": self.names[0],
            "relation": self.names[1],
            "tail": self.names[2],
            "similar_to": self.similar,
        }
        if self.line is not None:
            found |= {"line": self.line}
        if self.problem is not None or self.answer is None:
            return {**found, "problem": self.problem, "answers": []}
        return {**found, "problem": None, **_counts(self.answer), "answers": self.answer.to_list()}


def main(argv: Sequence[str] | None = None) -> int:
    """0: every question has an answer. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(make_parser().parse_args(argv)))


def make_parser() -> argparse.ArgumentParser:
    """The options of this command."""
    parser = using_parser("launch.predict", _DESCRIPTION, _EXAMPLES)
    for name in ("head", "relation", "tail"):
        parser.add_argument(f"--{name}", metavar="NAME", help=f"name of the {name}; leave out what you ask for")
    parser.add_argument("--similar", metavar="NAME", help="entities similar to this one")
    parser.add_argument("--queries", type=Path, metavar="FILE", help="a file of questions, one in each line")
    parser.add_argument("--top", type=whole_number, default=10, metavar="N", help="how many answers [10]")
    parser.add_argument(
        "--known",
        choices=("leave-out", "mark", "keep"),
        default="leave-out",
        help="answers that the client's own triples have: left out, shown with their part, or shown alike [leave-out]",
    )
    add_device(parser, "cpu")
    parser.add_argument("--json", metavar="FILE", help="write everything to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    questions = _questions(options)
    require_json(options.json)
    model = client_model(options)
    asked = [_answered(model, one, options) for one in questions]
    if options.json != "-":
        for one in asked:
            if one.answer is not None:
                _show(one.answer, model.graph.prefixes)
    record = {
        "run": str(options.run),
        "client": model.number,
        "model": model.scorer.name,
        "known": options.known,
        "top": options.top,
        "questions": [one.to_json() for one in asked],
    }
    if options.json == "-":
        say(json.dumps(record, indent=2, allow_nan=False))
    elif options.json is not None:
        write_json(Path(options.json), record, private=True)
        say(f"written: {options.json}")
    problems = [f"line {one.line}: {one.problem}" if one.line else one.problem for one in asked if one.problem]
    for problem in problems:
        fail(str(problem))
    return 2 if problems else 0


def _show(answer: "Predictions | TripleScore", prefixes: Mapping[str, str]) -> None:
    """A table with short names, and below it what their prefixes stand for."""
    from secure_kg.data.prefixes import short_names
    from secure_kg.trained.results import Predictions

    say(answer.title)
    columns, rows = answer.table()
    legend: list[str] = []
    if isinstance(answer, Predictions):
        names, legend = short_names([one.name for one in answer], prefixes)
        rows = [[row[0], name, *row[2:]] for row, name in zip(rows, names, strict=True)]
    table("", columns, rows)
    for line in legend:
        say(line)


def _questions(options: argparse.Namespace) -> list[_Asked]:
    names: Names = options.head, options.relation, options.tail
    given = sum(name is not None for name in names)
    ways = [given > 0, options.similar is not None, options.queries is not None]
    if sum(ways) != 1:
        raise UserError("say --head, --relation, --tail (two of them, or all), or --similar, or --queries; see --help")
    if options.queries is not None:
        return _read(options.queries)
    if given == 1:
        raise UserError("--head, --relation, --tail: two of them ask for the third, all three for a score")
    return [_Asked(names, options.similar, None)]


def _read(path: Path) -> list[_Asked]:
    from secure_kg.data.triples import read_text
    from secure_kg.foundation.parsing import require_regular

    require_regular(path)
    asked = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip(" "):
            continue
        fields = line.split("\t")
        head, relation, tail = names = [None if field == _UNKNOWN else field for field in (*fields, "", "", "")[:3]]
        if len(fields) != 3 or not all(map(str.strip, fields)) or names.count(None) > 1:
            raise UserError(f"{path}, line {number}: expected head<TAB>relation<TAB>tail with one ? at most")
        asked.append(_Asked((head, relation, tail), None, number))
    if not asked:
        raise UserError(f"{path}: has no questions")
    return asked


def _answered(model: "ClientModel", one: _Asked, options: argparse.Namespace) -> _Asked:
    """A name that is not known is the problem of one question; whatever else is wrong ends the command."""
    from secure_kg.trained.client_model import NameNotKnown

    try:
        return _Asked(one.names, one.similar, one.line, _answer(model, one, options.top, options.known))
    except NameNotKnown as problem:
        return _Asked(one.names, one.similar, one.line, None, str(problem))


def _answer(model: "ClientModel", one: _Asked, top: int, known: str) -> "Predictions | TripleScore":
    from secure_kg.trained.results import KNOWN

    (what,) = (choice for choice in KNOWN if choice.replace(" ", "-") == known)
    if one.similar is not None:
        return model.similar_entities(one.similar, top)
    match one.names:
        case (str(head), str(relation), str(tail)):
            return model.score(head, relation, tail)
        case (str(head), str(relation), None):
            return model.predict_tails(head, relation, top, what)
        case (None, str(relation), str(tail)):
            return model.predict_heads(relation, tail, top, what)
        case (str(head), None, str(tail)):
            return model.predict_relations(head, tail, top, what)
    raise UserError("two names ask for the third")


def _counts(answer: "Predictions | TripleScore") -> dict[str, Any]:
    from secure_kg.trained.results import TripleScore

    if isinstance(answer, TripleScore):
        return {}
    return {
        "kind": answer.kind,
        "measure": answer.measure,
        "candidates": answer.candidates,
        "left_out": answer.left_out,
    }


if __name__ == "__main__":
    sys.exit(main())
