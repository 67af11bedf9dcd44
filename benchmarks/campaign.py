"""A campaign: the cells that decide the papers' claims, one after the other over days.

A queue (benchmarks/campaign.toml) names the cells in order of priority. Each is a run of `benchmarks.reproduce` in a
folder of its own. One that was interrupted goes on from its last checkpoint, whatever ended it; one that is finished
has a row in the file of rows and is never run again. The tables of docs/results.md are drawn from the rows (--render).
"""

import argparse
import os
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.campaigns.outlook import Outlook, outlook_of
from benchmarks.campaigns.queue import OWN_QUEUE, Entry, only, read_queue
from benchmarks.campaigns.rendering import OWN_DOCUMENT, keys_of, orphans, render_into
from benchmarks.campaigns.row_file import OWN_ROWS, read_rows
from benchmarks.campaigns.rows import Row
from benchmarks.campaigns.work import run_entries
from benchmarks.reproduction.jobs import command_for
from benchmarks.reproduction.provenance import RESULTS_VERSION
from launch.command_line import OneLineParser, run_command
from secure_kg.foundation.console import fail, say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.words import counted, seconds_text

_PROGRAM: Final = "python -m benchmarks.campaign"
_INTERRUPTED: Final = 130
_EPILOG: Final = """\
examples:
  python -m benchmarks.campaign --list --data-root DIR
  python -m benchmarks.campaign --hours 8 --data-root DIR        to be called again until nothing is left
  nice -n 19 python -m benchmarks.campaign --only fedr-ddb14-transe --data-root DIR
  python -m benchmarks.campaign --render

DIR is that of `python -m benchmarks.reproduce --help`.
Exit code 0: done, or out of time. 1: a run failed or lacks its data; the others have their rows. 2: a mistake, told
in one line."""


def main(argv: Sequence[str] | None = None) -> int:
    # Whoever ends this process means its runs, too. A shell starts background jobs with Ctrl-C ignored: not so here.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        return run_command(lambda: _run(_parser().parse_args(argv)))
    except KeyboardInterrupt:
        fail("interrupted; the same command goes on with what is left")
        return _INTERRUPTED


def _run(options: argparse.Namespace) -> int:
    if options.hours is not None and not options.hours >= 0:
        raise UserError("--hours must not be negative")
    if options.jobs < 1:
        raise UserError("--jobs must be at least 1")
    if options.data_root is None and not (options.render or options.list):
        raise UserError("--data-root is needed to run cells; without it, --list or --render")
    data_root = Path(os.path.abspath(options.data_root or "data"))
    every = read_queue(Path(options.queue), data_root, Path(os.path.abspath(options.runs)))
    entries = only(every, options.only)
    path = Path(options.rows)
    failed = False
    if options.list:
        _list(entries, _rows(path), [row for file in options.measured for row in _rows(Path(file))])
    elif options.data_root is not None:
        until = None if options.hours is None else time.monotonic() + 3600 * options.hours
        failed = not run_entries(entries, path, Path(options.runs), at_once=options.jobs, until=until, tell=say)
    if options.render:
        rows = _rows(path)
        for line in orphans(every, rows):
            say(line)
        render_into(Path(options.document), every, rows)
        say(f"{counted(len(rows), 'row')} rendered into {options.document}")
    return 1 if failed else 0


def _rows(path: Path) -> list[Row]:
    rows, told = read_rows(path)
    for line in told:
        say(line)
    return rows


def _list(entries: Sequence[Entry], rows: Sequence[Row], measured: Sequence[Row]) -> None:
    """How far each claim is; then the cells that are under way, and the commands that go on with them."""
    keyed = {row.key: row for row in rows}
    views = [outlook_of(entry, keyed, keys_of(entry, RESULTS_VERSION), measured) for entry in entries]
    table(
        f"results version {RESULTS_VERSION}",
        ["entry", "finished", "under way", "to start", "hours left", "estimated by"],
        [_line(view) for view in views],
    )
    for view in views:
        jobs = {job.cell: job for job in view.entry.jobs}
        for one in view.cells:
            if one.state == "under way":
                say(f"{one.cell}: round {one.round} after {seconds_text(one.seconds)}")
                say(f"    {shlex.join(command_for(jobs[one.cell]))}")


def _line(view: Outlook) -> list[str | int]:
    hours = "unknown" if view.hours_left is None else f"{view.hours_left:.1f}"
    states = [view.count(state) for state in ("finished", "under way", "to start")]
    return [view.entry.name, *states, hours, view.by]


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog=_PROGRAM,
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=30, width=112),
        allow_abbrev=False,
    )
    parser.add_argument("--data-root", metavar="DIR", help="where the data sets lie; without it nothing is run")
    parser.add_argument("--hours", type=float, metavar="H", help="interrupt what is under way after so many [no limit]")
    parser.add_argument("--jobs", type=int, default=1, metavar="J", help="so many cells at the same time [1]")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these entries of the queue [all]")
    parser.add_argument("--list", action="store_true", help="how far each entry is and what is left; runs nothing")
    parser.add_argument(
        "--measured", nargs="+", default=[], metavar="FILE", help="further rows that --list may estimate hours by"
    )
    parser.add_argument("--render", action="store_true", help="draw the tables of the document from all rows")
    parser.add_argument("--queue", default=str(OWN_QUEUE), metavar="FILE", help="[benchmarks/campaign.toml]")
    parser.add_argument("--rows", default=str(OWN_ROWS), metavar="FILE", help="[docs/data/campaign.jsonl]")
    parser.add_argument("--document", default=str(OWN_DOCUMENT), metavar="FILE", help="[docs/results.md]")
    parser.add_argument("--runs", default="runs/campaign", metavar="DIR", help="run folders [runs/campaign]")
    return parser


if __name__ == "__main__":
    sys.exit(main())
