"""A check-up of the machine before a run: `secure-kg doctor`."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final

from launch.checkup.finding import STATUSES, Finding
from launch.command_line import OneLineParser, deliver, require_json, run_command
from launch.commands import COMMANDS
from secure_kg.foundation.console import say, table
from secure_kg.foundation.invocation import command
from secure_kg.foundation.words import counted

_DESCRIPTION: Final = """\
Check what a run needs: Python, MPI (two processes are really started), cores, memory, disk, shared memory, GPU,
packages and extras, clock, the current folder and its permissions, and what earlier jobs have left.

ok       as it should be
note     a default run works; something else may not, or is slow
problem  a default run would not work"""

_EXAMPLES: Final = """\
examples:
  python -m launch.doctor
  python -m launch.doctor --json machine.json           to attach to a question

Nothing is changed, and nothing leaves this machine. Exit code 0: nothing stops a default run. 1: something does.
2: a mistake, told in one line."""


def main(argv: Sequence[str] | None = None) -> int:
    """0: a default run would work. 1: it would not. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(make_parser().parse_args(argv)))


def make_parser() -> argparse.ArgumentParser:
    """The options of this command."""
    parser = OneLineParser(
        prog=command("launch.doctor"),
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", metavar="FILE", help="write everything to FILE as well; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    require_json(options.json)
    found = list(findings())
    counts = {status: sum(one.status == status for one in found) for status in STATUSES}
    record = {"ok": not counts["problem"], "counts": counts, "findings": [one.to_json() for one in found]}
    deliver(record, options.json, _show)
    return 1 if counts["problem"] else 0


def findings() -> Iterator[Finding]:
    """All checks, one after the other."""
    from launch.checkup.folder import folder
    from launch.checkup.jobs import jobs
    from launch.checkup.machine import machine
    from launch.checkup.packages import packages

    yield from machine()
    yield from packages()
    yield from jobs({one.module for one in COMMANDS.values()} | {"launch.cli"})
    yield from folder()


def _show(record: dict[str, Any]) -> None:
    rows = []
    for one in record["findings"]:
        rows.append([one["status"], one["about"], one["found"]])
        if one["next_step"]:
            rows.append(["", "", f"→ {one['next_step']}"])
    table("", ("", "about", "found, and → what to do"), rows)
    counts = record["counts"]
    told = f"{counted(counts['problem'], 'problem')}, {counted(counts['note'], 'note')}"
    end = f"nothing stops a default run: {command('launch.demo')}"
    say(f"{told}; {end if record['ok'] else 'a default run would not work before the problems are mended'}")


if __name__ == "__main__":
    sys.exit(main())
