"""Many questions over a finished run, by several backends: `python -m benchmarks.questions RUN`.

Test queries across the clients' graphs are drawn, as only whoever has all triples can draw them. Each is asked in real
sessions, as `launch.ask` holds them, once for every backend and all under one holder rule. Reported are how many of
them have the same answers in the same order under all backends, how many have those of one party that has all rows in
clear, and where their hard answers stand among the best K. The records of what was opened stay as they are in RUN: a
copy is asked.

One party in clear compares floats, and backends compare fixed-point numbers: among answers that score nearly alike the
order may differ. Its comparison is left out under a rule of more than one holder.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from benchmarks.judging.joined_run import JoinedRun
from benchmarks.judging.judged_by import JudgedBy
from launch.command_line import OneLineParser, deliver, require_json, run_command
from protocols.lookups.names import MOST_NAMES
from protocols.registry import SCORES
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.models.queries.model import QueryModel
from secure_kg.queries.form import NamedQuery, translate
from secure_kg.queries.retrieval.members import ask_in_process
from secure_kg.queries.retrieval.over_run import AskSettings, RunAsked
from secure_kg.queries.retrieval.rules import Rules
from secure_kg.queries.structures import STRUCTURES, read_row

_UNLIMITED: Final = (1 << 31) - 1
_SESSION: Final = 50
"""Questions of one session: progress is told after each."""
Names = tuple[str | None, ...]
Asked = dict[str, list[Names]]
"""By backend, the answers of every question."""


@dataclass(frozen=True, slots=True)
class Question:
    """A drawn query by names, its answers that are known already, its hard ones, and the best of one party in clear."""

    kind: str
    query: NamedQuery
    easy: frozenset[str]
    hard: frozenset[str]
    clear: Names


def main(argv: Sequence[str] | None = None) -> int:
    """0: asked. 1: backends differ. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.questions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    backends = [name for name, one in SCORES.items() if not one.own_process]
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a finished run of launch.fedcqa")
    parser.add_argument("--queries", type=int, default=1000, metavar="N", help="in all, of all types alike [1000]")
    parser.add_argument(
        "--scores", nargs="+", choices=backends, default=["topk", "plain"], help="backends [topk plain]"
    )
    parser.add_argument("--hide-query", action="store_true", help="ask topk a second time, with hidden queries")
    parser.add_argument("--top-k", type=int, default=10, metavar="K", help="answers of a question [10]")
    parser.add_argument("--min-holders", type=int, default=1, metavar="N", help="of an entity that is scored [1]")
    parser.add_argument("--client", type=int, default=1, metavar="K", help="who asks [1]")
    parser.add_argument("--seed", type=int, default=0, help="draws the queries [0]")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    if options.queries < 1 or options.seed < 0 or not 1 <= options.top_k <= MOST_NAMES:
        raise UserError(f"--queries must be positive, --seed not negative, and --top-k from 1 to {MOST_NAMES}")
    require_json(options.json)
    torch.set_num_threads(1)
    questions = drawn(JoinedRun(options.run), options)
    ways = [(name, False) for name in dict.fromkeys(options.scores)] + [("topk", True)] * options.hide_query
    asked = {f"{name}, hidden" if hidden else name: asked_by(options, questions, name, hidden) for name, hidden in ways}
    report = figures(options, questions, asked)
    deliver(report, options.json, _show)
    return 0 if report["alike"] == report["questions"] else 1


def drawn(run: JoinedRun, options: argparse.Namespace) -> list[Question]:
    """As many of each type as there must be for so many in all."""
    kinds = run.cross_graph_kinds()
    by = JudgedBy("test", -(-options.queries // max(len(kinds), 1)), options.seed)
    model, entities, relations = run.model(), run.pool.graph.entities, run.pool.graph.relations
    found = []
    for one in run.cross_graph_queries(by):
        best = _best(model, one.kind, one.rows, options.top_k)
        for number, row in enumerate(one.rows.tolist()):
            query = translate(read_row(STRUCTURES[one.kind], row), entities.__getitem__, relations.__getitem__)
            easy, hard = (
                frozenset(entities[at] for at in sets[number]) for sets in (one.judged.easy, one.judged.hard)
            )
            found.append(Question(one.kind, query, easy, hard, tuple(entities[at] for at in best[number])))
    return found[: options.queries]


@torch.no_grad()
def _best(model: QueryModel, kind: str, rows: "np.ndarray[Any, np.dtype[np.int32]]", top: int) -> list[list[int]]:
    scores = model.scores(STRUCTURES[kind], torch.from_numpy(rows.astype(np.int64)))
    order: list[list[int]] = torch.argsort(scores, dim=1, descending=True, stable=True)[:, :top].tolist()
    return order


def asked_by(options: argparse.Namespace, questions: Sequence[Question], backend: str, hidden: bool) -> list[Names]:
    """The names of every question's answers, best first."""
    settings = AskSettings(
        client=options.client,
        scores=backend,
        top=options.top_k,
        hide_query=hidden,
        min_holders=options.min_holders,
        rules=Rules("all"),
        atom_budget=_UNLIMITED,
        allow_extraction=SCORES[backend].has_budget,
    )
    answers: list[Names] = []
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "run"
        shutil.copytree(options.run, copy)
        asked = RunAsked(copy, settings)
        started = time.perf_counter()
        for part in _parts(questions):
            answers += _answers(asked, part)
            if options.json != "-":
                each = (time.perf_counter() - started) / len(answers)
                say(f"{backend}{', hidden' * hidden}: {len(answers)} of {len(questions)} asked, {each:.2f} s each")
    return answers


def _answers(asked: RunAsked, questions: Sequence[Question]) -> Iterator[Names]:
    _, session = ask_in_process(asked, [question.query for question in questions])
    for outcome in session.outcomes:
        if outcome.retrieved is None:
            raise UserError(f"a question came to nothing: {outcome.problem}")
        yield tuple(answer.name for answer in outcome.retrieved.answers)
    if len(session.outcomes) < len(questions):
        raise UserError(f"a session broke off: {'; '.join(map(str, session.problems.values()))}")


def _parts(questions: Sequence[Question]) -> Iterator[Sequence[Question]]:
    for start in range(0, len(questions), _SESSION):
        yield questions[start : start + _SESSION]


def figures(options: argparse.Namespace, questions: Sequence[Question], asked: Asked) -> dict[str, Any]:
    """Plain data for people and files."""
    alike = sum(len(set(answers)) == 1 for answers in zip(*asked.values(), strict=True))
    return {
        "run": options.run.name,
        "questions": len(questions),
        "types": sorted({question.kind for question in questions}),
        "min_holders": options.min_holders,
        "top_k": options.top_k,
        "seed": options.seed,
        "alike": alike,
        "backends": {name: _against(options, questions, answers) for name, answers in asked.items()},
    }


def _against(options: argparse.Namespace, questions: Sequence[Question], asked: Sequence[Names]) -> dict[str, Any]:
    pairs = [*zip(questions, asked, strict=True)]
    judged = [_reciprocals(question, answers) for question, answers in pairs]
    clear = options.min_holders == 1
    return {
        "as_in_clear": sum(question.clear == answers for question, answers in pairs) if clear else None,
        "same_set_as_in_clear": sum({*question.clear} == {*answers} for question, answers in pairs) if clear else None,
        "mrr_within_k": sum(judged) / len(judged),
        "of_one_party_in_clear": sum(_reciprocals(one, one.clear) for one in questions) / len(questions),
    }


def _reciprocals(question: Question, answers: Names) -> float:
    """The mean over hard answers of 1 / rank, other answers left out; 0 for one that is not among the best."""
    found, wrong = 0.0, 0
    for name in answers:
        if name in question.hard:
            found += 1 / (1 + wrong)
        elif name not in question.easy:
            wrong += 1
    return found / len(question.hard)


def _show(report: dict[str, Any]) -> None:
    rows = [
        [name, _text(one["as_in_clear"]), _text(one["same_set_as_in_clear"]), f"{one['mrr_within_k']:.4f}"]
        for name, one in report["backends"].items()
    ]
    title = f"{report['questions']} cross-graph questions over {report['run']}, best {report['top_k']}"
    table(title, ("backend", "order as in clear", "set as in clear", f"MRR within {report['top_k']}"), rows)
    clear = next(iter(report["backends"].values()))["of_one_party_in_clear"]
    say(
        f"{report['alike']} of {report['questions']} have the same answers under all backends; holder rule: at least "
        f"{report['min_holders']}; MRR of one party in clear: {clear:.4f}"
    )


def _text(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


if __name__ == "__main__":
    sys.exit(main())
