"""A logical question over the graphs of all clients of a run: `python -m launch.ask RUN --query '...'`.

Under mpirun this process is one of the parties, and forks before anything heavy is imported.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from launch.command_line import OneLineParser, require_writable, run_command
from launch.hosts import environment
from launch.hosts.registry import HOSTS
from secure_kg.foundation.console import fail, say
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.invocation import command
from secure_kg.foundation.words import counted

if TYPE_CHECKING:
    from secure_kg.queries.language.reading import Question
    from secure_kg.queries.retrieval.members import AskersView
    from secure_kg.queries.retrieval.over_run import AskSettings
    from secure_kg.queries.retrieval.parts import Outcome, Session

_INTERRUPTED: Final = 130
_DESCRIPTION: Final = """\
Ask a logical question over the graphs of all clients of a FedCQA run, and get ranked answers.

One client asks. What the question needs of others is looked up from all of them at once, under masks: the asker does
not learn who had it, and the server sees no name, row, score or question. Each party reads its own folder of RUN. Under
mpirun every party is a process: rank 0 the server, rank K client K; the asker's rank shows the answers. Without mpirun
all of them are threads of one process. Either way nothing is protected from whoever runs all of it.

With federation.toml in the place of RUN this is the asking site of a federation between organisations: its server runs
launch.serve --questions, and the other sites launch.join --answer, by rules of their own."""

_EXAMPLES: Final = """\
examples:
  mpirun -n 4 python -m launch.fedcqa --out runs/umls
  python -m launch.ask runs/umls --query '?x : treats(?x, "disease_or_syndrome")'
  python -m launch.ask runs/umls --query '?x : affects(?x, ?y) & causes("virus", ?y)' --hide-query
  python -m launch.ask runs/umls --query '?x : treats(?x, "disease_or_syndrome")' --exact --allow-exact treats
  python -m launch.ask runs/umls --file questions.txt --scores masked --client 2 --record recorded
  python -m launch.ask runs/umls --file questions.txt --report questions.html
  python -m launch.audit recorded --out audits/questions
  mpirun -n 4 python -m launch.ask runs/umls --query '?x : treats(?x, "disease_or_syndrome")'    a process per party
  python -m launch.ask federation.toml --query '?x : treats(?x, "disease_or_syndrome")'    between organisations

docs/queries.md has the language, docs/ask.md what each party learns."""


def main(argv: Sequence[str] | None = None) -> int:
    """0: every question has an answer. 2: one line on standard error says what to mend. 130: interrupted."""
    if environment.rank() is None:
        try:
            return run_command(lambda: _run(make_parser().parse_args(argv)))
        except KeyboardInterrupt:
            fail("interrupted; questions above have their answers")
            return _INTERRUPTED
    speaks = HOSTS["mpi"].load().enter()
    # The parties share the cores of one machine; a thread pool in each would only make them wait for each other.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    arguments = list(sys.argv[1:] if argv is None else argv)
    if speaks:
        return run_command(lambda: _run(make_parser().parse_args(arguments)))
    try:
        return 0 if {"-h", "--help"} & set(arguments) else _run(make_parser().parse_args(arguments))
    except UserError:
        return 0  # a mistake on the command line, which rank 0 finds as well, and says


def make_parser() -> argparse.ArgumentParser:
    """The options of this command."""
    from launch.ask_exact import add_options
    from launch.ask_rules import add_rule_options, number
    from protocols.registry import SCORES

    parser = OneLineParser(
        prog=command("launch.ask"),
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("run", metavar="RUN", type=Path,
                        help="folder of a finished run of launch.fedcqa; or federation.toml, to ask from one's own "
                        "site")  # fmt: skip
    what = parser.add_mutually_exclusive_group(required=environment.rank() is None)  # of ranks one needs a question
    what.add_argument("--query", metavar="TEXT", help="one question")
    what.add_argument("--file", type=Path, metavar="FILE", help="a file of questions, which are asked one by one")
    what.add_argument("--sparql", type=Path, metavar="FILE", help="a file with one question in SPARQL")
    backends = [name for name, one in SCORES.items() if not one.own_process]
    parser.add_argument("--scores", choices=backends, default="topk", help="how scores are combined [topk]")
    parser.add_argument("--top-k", type=number, default=10, metavar="K", help="how many answers [10]")
    parser.add_argument("--client", type=number, metavar="K", help="who asks [1]")
    parser.add_argument("--site", type=Path, metavar="DIR", help="with federation.toml: one's own private files [site]")
    parser.add_argument("--hide-query", action="store_true", help="scorers do not see what they score (--scores topk)")
    add_options(parser)
    parser.add_argument(
        "--min-holders",
        type=number,
        metavar="N",
        help="how many others must hold an entity before they score it [2 where means are opened, else 1]",
    )
    parser.add_argument("--json", metavar="FILE", help="write everything to FILE; - for standard output")
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="write a page (HTML) to FILE; it holds questions and answers, and belongs to the asker",
    )
    parser.add_argument("--record", type=Path, metavar="DIR", help="record what the server sees, for launch.audit")
    add_rule_options(parser.add_argument_group("what clients say when they are asked"))
    return parser


def _run(options: argparse.Namespace) -> int:
    _check(options)
    if environment.rank() is None and options.run.is_file():
        from launch.between.asking import ask_between

        return ask_between(options, lambda: _questions(options), _settings(options), _told_at_once, _told)
    if options.site is not None:
        raise UserError("--site goes with federation.toml in the place of a run's folder")
    from secure_kg.queries.retrieval.over_run import RunAsked

    settings, note = _settings(options), fail if options.json == "-" else say
    if environment.rank() is not None:
        from launch.hosts.questions import Asking, run_rank

        asking = Asking(
            options.run,
            settings,
            questions=lambda: _questions(options),
            each=lambda run, question, outcome: _told_at_once(options, settings, run, question, outcome),
            show=lambda run, session, questions: _told(options, settings, run, session, questions),
            note=note,
        )
        return run_rank(asking)
    questions = _questions(options)
    # Torch takes its time: mistakes above are told at once.
    from secure_kg.queries.retrieval.members import ask_in_process

    over, left = RunAsked(options.run, settings), iter(questions)
    run, session = ask_in_process(
        over,
        [question.query for question in questions],
        note,
        lambda run, outcome: _told_at_once(options, settings, run, next(left), outcome),
    )
    return _told(options, settings, run, session, questions)


def _settings(options: argparse.Namespace) -> "AskSettings":
    from launch.ask_exact import exact_of
    from launch.ask_rules import rules_of
    from secure_kg.queries.retrieval.over_run import AskSettings

    return AskSettings(
        client=1 if options.client is None else options.client,
        scores=options.scores,
        top=options.top_k,
        hide_query=options.hide_query,
        min_holders=options.min_holders,
        exact=exact_of(options),
        rules=rules_of(options),
        atom_budget=options.atom_budget,
        exact_budget=options.exact_budget,
        allow_extraction=options.allow_extraction,
        record=options.record,
    )


def _told_at_once(
    options: argparse.Namespace, settings: "AskSettings", run: "AskersView", question: "Question", outcome: "Outcome"
) -> None:
    """Show one question and its answers as soon as they are there; what comes later may never come."""
    from launch.ask_output import asked_question, show_question

    if options.json != "-":
        show_question(run, settings, asked_question(run, question, outcome))


def _told(
    options: argparse.Namespace,
    settings: "AskSettings",
    run: "AskersView",
    session: "Session",
    questions: "Sequence[Question]",
) -> int:
    """Show what all questions have in common, and write files; the exit code."""
    from launch.ask_output import asked_question, show_end, to_json
    from launch.ask_report import write_page
    from secure_kg.queries.retrieval.telling import is_own
    from secure_kg.runs.run_folder import write_json

    quiet = options.json == "-"
    asked = [
        asked_question(run, question, outcome)
        for question, outcome in zip(questions, session.outcomes, strict=False)  # a session may end before its time
    ]
    if quiet:
        say(json.dumps(to_json(run, settings, session, asked), indent=2))
    elif asked:
        show_end(run, settings, session)
    if options.json and not quiet:
        write_json(Path(options.json), to_json(run, settings, session, asked), private=True)
    if options.report is not None:
        write_page(options.report, run, settings, session, questions)
    written = [str(one) for one in (None if quiet else options.json, options.report) if one]
    if written and not quiet:
        say(f"written, for the asker only: {', '.join(written)}")
    problems = [one.outcome.problem for one in asked if one.outcome.retrieved is None]
    if left := len(questions) - len(asked) if session.stopped else 0:
        were = "1 question was" if left == 1 else f"{counted(left, 'question')} were"
        problems.append(f"two questions in a row came to nothing for the same reason: {were} not asked")
    elif len(asked) < len(questions):
        why = session.problems.get(run.public.asker, "the session has ended")
        problems.append(f"question {len(asked) + 1} came to nothing: {why}")
        # Where all clients are in this process, this is their console as well.
        own = {party: one for party, one in session.problems.items() if party != run.public.asker and is_own(one)}
        problems += [f"client {party}: {one}" for party, one in own.items()]
    for problem in dict.fromkeys(problems):  # a client that is gone is the same problem to all questions
        fail(problem)
    return 2 if problems else 0


def _check(options: argparse.Namespace) -> None:
    """Before anything is loaded."""
    from launch.ask_exact import check_exact
    from protocols.lookups.names import MOST_NAMES
    from protocols.registry import SCORES

    check_exact(options)
    if options.hide_query and options.scores != "topk":
        raise UserError("--hide-query is for --scores topk: other backends score points that scorers see")
    if options.allow_extraction and not SCORES[options.scores].has_budget:
        raise UserError(f"--allow-extraction: --scores {options.scores} opens no means")
    if options.top_k > MOST_NAMES:
        raise UserError(f"--top-k {options.top_k}: a question has {MOST_NAMES} answers at most")


def _questions(options: argparse.Namespace) -> "list[Question]":
    """For the asker, which also writes files; under mpirun no other rank opens any of these."""
    from secure_kg.queries.language.places import Place
    from secure_kg.queries.language.reading import Question, read_question, read_question_file

    if options.json not in (None, "-"):
        require_writable(Path(options.json))
    if options.report is not None:
        require_writable(options.report)
    if options.query is not None:
        return [Question(read_question(options.query), None, Place(1, 1))]
    if options.sparql is not None:
        return read_question_file(options.sparql, sparql=True)
    if options.file is None:
        raise UserError("the rank of the client that asks needs --query, --file or --sparql; see --help")
    return read_question_file(options.file)


if __name__ == "__main__":
    sys.exit(main())
