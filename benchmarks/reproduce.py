"""Tables of the papers measured again: `python -m benchmarks.reproduce --help`.

Each cell of a table (data set, clients, model, strategy, seed) is a real training job under mpirun in a run folder of
its own. What is finished is not run again and what was interrupted goes on, so the command can be stopped at any time
and called again. At the end the paper's figures stand beside those measured, with the order of strategies in both.
"""

import argparse
import dataclasses
import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.reproduction import confidential, membership, private_table
from benchmarks.reproduction.cells import Job, Request, chosen, job_for, tuned_settings
from benchmarks.reproduction.jobs import Outcome, command_for, is_finished, run_all
from benchmarks.reproduction.provenance import commit
from benchmarks.reproduction.rendering import markdown, show
from benchmarks.reproduction.report import build
from benchmarks.reproduction.results import read_result
from benchmarks.reproduction.table import ALL, Table
from benchmarks.reproduction.tables import TABLES
from launch.command_line import OneLineParser, require_writable, run_command
from protocols.registry import AGGREGATIONS
from secure_kg.federation.plan.typed_fields import flag
from secure_kg.foundation.console import fail, say
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.words import seconds_text
from secure_kg.runs.run_folder import write_json, write_whole

_PROGRAM: Final = "python -m benchmarks.reproduce"
_FIXED: Final = ("corrupt", "temperature")  # nobody has asked for other values of these
_INTERRUPTED: Final = 130
_EPILOG: Final = """\
DIR of --data-root holds ddb14/, wn18rr/ and fb15k-237/ with train, valid, test .tsv.gz, and the published splits
ddb14-fed/fed{5,10,15,20}.npz and fb15k-237-fedlu/r{3,5,10}.npz; for FedCQA also nell-995-q2b/, and fb15k/ if named.

examples:
  python -m benchmarks.reproduce fedr-table2 --data-root data --dataset ddb14 --clients 5 --models transe \\
      --seeds 0 1 2 --json table2.json --markdown table2.md
  python -m benchmarks.reproduce fede-table5 --data-root data --clients 3 --dry-run
  python -m benchmarks.reproduce fedcqa-table3 --data-root data --dataset fb15k-237 --coding usual --dim 64 \\
      --local-steps 50 --rounds 41 --eval-every 10 --batch-size 512 --client-fraction 1 --lr 0.02 --lr-decay 0.92 \\
      --tuned fedcqa step=2 --tuned central local_steps=150
  python -m benchmarks.reproduce fedr-table2 --data-root data --max-minutes 60      an hour's worth, to be called again
  python -m benchmarks.reproduce dpflames-table2 --help       membership attacks (DP-FLames, Table 2): own options
  python -m benchmarks.reproduce dpkge-tables --help          confidential statements (DPKGE): own options
  python -m benchmarks.reproduce dpflames-table3 --help       private training (DP-FLames, Table 3): own options

Exit code 0: done, or out of time. 1: a run failed, the others are in the table. 2: a mistake, told in one line."""

_OTHERS: Final[dict[str, Callable[[Sequence[str]], int]]] = {
    other.NAME: other.main for other in (membership, private_table, confidential)
}
"""Tables of other figures, with options of their own."""


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    # Whoever ends this process means its runs, too. A shell starts background jobs with Ctrl-C ignored: not so here.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        if arguments and arguments[0] in _OTHERS:
            return _OTHERS[arguments[0]](arguments[1:])
        return run_command(lambda: _run(_parser().parse_args(arguments), arguments))
    except KeyboardInterrupt:
        fail("interrupted; the same command goes on with what is left")
        return _INTERRUPTED


def _run(options: argparse.Namespace, arguments: Sequence[str]) -> int:
    request = request_from(options)
    jobs = [job_for(request, cell) for cell in request.cells()]
    if options.dry_run:
        _list(jobs)
        return 0
    _check_data(request)
    for path in (options.json, options.markdown):
        if path not in (None, "-"):
            require_writable(Path(path))
    quiet = options.json == "-"
    progress = _Progress(jobs, options.jobs, quiet)
    until = None if options.max_minutes is None else time.monotonic() + 60 * options.max_minutes
    outcomes = run_all(jobs, at_once=options.jobs, until=until, on_start=progress.start, on_end=progress.end)
    report = build(
        options.table,
        request,
        [read_result(job, outcomes[job.cell]) for job in jobs],
        command=f"{_PROGRAM} {shlex.join(_shown(arguments))}",
        commit=commit(),
        date=f"{datetime.now(UTC):%Y-%m-%d}",
    )
    if quiet:
        say(json.dumps(report, indent=2))
    else:
        show(report)
        if options.json:
            write_json(Path(options.json), report)
    if options.markdown:
        write_whole(Path(options.markdown), markdown(report).encode())
    return 1 if any(outcome.state == "failed" for outcome in outcomes.values()) else 0


def _shown(arguments: Sequence[str]) -> list[str]:
    """The arguments that say what was measured, not where on this machine it lies or how fast it had to be."""
    left_out, hidden = ("--json", "--markdown", "--runs", "--jobs", "--max-minutes"), {"--data-root": "DIR"}
    shown: list[str] = []
    words = iter(arguments)
    for word in words:
        name, equals, _ = word.partition("=")
        if name in left_out or name in hidden:
            if not equals:
                next(words, None)
            shown += [name, hidden[name]] if name in hidden else []
        else:
            shown.append(word)
    return shown


def request_from(options: argparse.Namespace) -> Request:
    """The options in the light of the table they are for; `UserError` in one line."""
    table: Table = TABLES[options.table]
    numbers = {"--clients": (options.clients, 2), "--seeds": (options.seeds, 0), "--jobs": ([options.jobs], 1)}
    for name, (given, least) in numbers.items():
        if given is not None and min(given) < least:
            raise UserError(f"{name} must be at least {least}")
    if options.max_minutes is not None and not options.max_minutes >= 0:
        raise UserError("--max-minutes must not be negative")
    given = {name: text for name in _settable() if (text := getattr(options, name)) is not None}
    settings = table.settings.changed(given)
    settings.check()
    strategies = chosen("--strategies", options.strategies, table.strategies, table.strategies)
    # Paths are kept whole: a run remembers its data set's, and a run is found again from any working folder.
    return Request(
        table=table,
        datasets=chosen("--dataset", options.dataset, table.datasets, table.usual_datasets),
        clients=tuple(dict.fromkeys(options.clients or table.clients)),
        models=chosen("--models", options.models, table.models, table.usual_models),
        strategies=strategies,
        seeds=tuple(dict.fromkeys(options.seeds)),
        settings=settings,
        tuned=tuned_settings(options.tuned, strategies, settings),
        aggregation=options.aggregation or table.aggregation,
        data_root=Path(os.path.abspath(options.data_root)),
        runs=Path(os.path.abspath(options.runs)),
    )


def _settable() -> dict[str, dict[str, Any]]:
    """Every setting that the runs of some table have, with what it is in each paper."""
    found: dict[str, dict[str, Any]] = {}
    for name, table in TABLES.items():
        for entry in dataclasses.fields(table.settings):
            if entry.name not in _FIXED:
                usual, value = found.setdefault(entry.name, {}), getattr(table.settings, entry.name)
                usual[name if usual.get(_paper(name), value) != value else _paper(name)] = value
    return found


def _paper(table: str) -> str:
    """Whose settings a table has: its name without the number."""
    return "-".join(word for word in table.split("-") if not word.startswith(("table", "figures")))


def _check_data(request: Request) -> None:
    for dataset in request.datasets:
        for clients in request.clients:
            path = request.data_root / request.table.datasets[dataset].where(clients)
            if not path.exists():
                raise UserError(f"--data-root {request.data_root}: no {path.relative_to(request.data_root)} there")


def _list(jobs: Sequence[Job]) -> None:
    for place, job in enumerate(jobs, start=1):
        state = "finished" if is_finished(job) else "to go on" if command_for(job) != job.start else "to start"
        say(f"[{place}/{len(jobs)}] {job.cell}: {state}\n    {shlex.join(command_for(job))}")


class _Progress:
    """A line for each run: what, how long, how much longer."""

    def __init__(self, jobs: Sequence[Job], at_once: int, quiet: bool) -> None:
        self._left = sum(not is_finished(job) for job in jobs)
        self._all, self._at_once, self._quiet = len(jobs), at_once, quiet
        self._seconds: list[float] = []
        if not quiet and self._left < self._all:
            say(f"{self._all - self._left} of {self._all} runs are there already")

    def start(self, job: Job, again: bool) -> None:
        if not self._quiet:
            say(f"{job.cell}: {'goes on' if again else 'starts'}")

    def end(self, job: Job, outcome: Outcome) -> None:
        if outcome.state != "interrupted":
            self._left -= 1
        if outcome.state == "finished":
            self._seconds.append(outcome.seconds_now)
        if self._quiet:
            return
        text = f"[{self._all - self._left}/{self._all}] {job.cell}: {outcome.state}"
        text += f" after {seconds_text(outcome.seconds_now)}"
        if outcome.state == "finished":
            mrr = read_result(job, outcome).metrics[ALL].get("mrr")
            text += "" if mrr is None else f", MRR {mrr:.4f}"
        if outcome.error:
            text += f": {outcome.error}"
        if self._left and self._seconds:
            mean = sum(self._seconds) / len(self._seconds)
            text += f"; about {seconds_text(mean * self._left / min(self._at_once, self._left))} to go"
        say(text)


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog=_PROGRAM,
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=30, width=112),
        allow_abbrev=False,
    )
    texts = "; ".join(f"{name}: {table.title}" for name, table in TABLES.items())
    parser.add_argument("table", choices=list(TABLES), metavar="TABLE", help=texts)
    _add_cells(parser.add_argument_group("which cells"))
    _add_settings(parser.add_argument_group("settings, the paper's unless given; what deviates is told"))
    _add_work(parser.add_argument_group("work"))
    return parser


def _add_cells(which: argparse._ArgumentGroup) -> None:
    which.add_argument(
        "--dataset", nargs="+", metavar="NAME", help="data sets [those of the table; ddb14-published only if named]"
    )
    which.add_argument("--clients", nargs="+", type=int, metavar="C", help="numbers of clients [the table's]")
    which.add_argument("--models", nargs="+", metavar="MODEL", help="models, or encoders of queries [the table's]")
    which.add_argument(
        "--strategies",
        nargs="+",
        metavar="NAME",
        help="local, fede, fedr; for FedE's tables also entire and fused (FedE with model fusion), for FedCQA's "
        "central and fedcqa [the table's]",
    )
    which.add_argument(
        "--seeds",
        nargs="+",
        type=int,
        default=[0],
        metavar="SEED",
        help="repetitions: with two or more there are intervals [0]",
    )


def _add_settings(told: argparse._ArgumentGroup) -> None:
    for name, usual in _settable().items():
        values = {paper: value if isinstance(value, str) else f"{value:g}" for paper, value in usual.items()}
        shown = ", ".join(f"{paper} {value}" for paper, value in values.items())
        told.add_argument(flag(name), metavar=type(next(iter(usual.values()))).__name__.upper(), help=f"[{shown}]")
    told.add_argument(
        "--tuned",
        nargs="+",
        action="append",
        default=[],
        metavar=("STRATEGY", "NAME=VALUE"),
        help="settings of one strategy alone, such as --tuned fedcqa lr=0.02 step=2; may be given for several",
    )
    told.add_argument(
        "--aggregation",
        choices=tuple(AGGREGATIONS),
        help="how rows and metrics are summed; the result is the same up to rounding [secagg; FedCQA's tables secret]",
    )


def _add_work(work: argparse._ArgumentGroup) -> None:
    work.add_argument("--data-root", required=True, metavar="DIR", help="where the data sets lie, see below")
    work.add_argument(
        "--runs",
        default="runs/reproduction",
        metavar="DIR",
        help="run folders, found again by their names [runs/reproduction]",
    )
    work.add_argument("--jobs", type=int, default=1, metavar="J", help="so many runs at the same time [1]")
    work.add_argument(
        "--max-minutes",
        type=float,
        metavar="M",
        help="after so many minutes start nothing more and interrupt what is under way; called again, it goes on "
        "from its last checkpoint (one at every evaluation), so M should be longer than that takes",
    )
    work.add_argument("--dry-run", action="store_true", help="list the runs and their commands, start none")
    work.add_argument(
        "--json", metavar="FILE", help="write the report to FILE; - for standard output, and nothing else"
    )
    work.add_argument("--markdown", metavar="FILE", help="write the report as a section of a Markdown page")


if __name__ == "__main__":
    sys.exit(main())
