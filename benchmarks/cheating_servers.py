"""Servers that cheat, in whole federations of real clients: `python -m benchmarks.cheating_servers --json FILE`."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.cheating.entry import perform
from benchmarks.cheating.zoo import ZOO
from launch.command_line import OneLineParser, require_writable, run_command
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.words import counted
from secure_kg.runs.run_folder import write_json

_DESCRIPTION = """\
Each entry is a party, mostly the server, that runs a whole federation on Nations and cheats in it, to break one claim
of SECURITY.md. Whether it gets what it is after is measured against the victim's true secret; then the run is audited
with all clients' receipts.

  stopped       clients refuse before anything is lost (why_unrefused: why they need not), and the audit names the
                cheat (why_unnamed: why it cannot)
  caught        the audit ends with exit code 3 and names it
  succeeded     it got what it was after, and the audit does not name it
  out of scope  it got what it was after, as SECURITY.md says that it can
  clean         an honest party, whom the audit leaves in peace (accused: it does not)"""

_EXAMPLE = """\
example:
  python -m benchmarks.cheating_servers --json cheating.json
  python -m benchmarks.cheating_servers --only two-tables evaluation-on-demand

FILE gets `servers`: of each its name, party, wants, claims (their numbers in SECURITY.md), claim (words of the first of
them), not_covered (words of SECURITY.md on what is out of scope), expected, expected_findings (any of them),
why_unnamed, why_unrefused, also_expected (all of them, of any severity), outcome, ok, got, refused_by, reasons,
audit_exit, audit_high, audit_other, audit_problem, crashes, server_ends, evidence, cpu_seconds; and `controls`, honest
parties, likewise.
Exit code 0: all came out as expected. 1: not all. 2: a mistake, told in one line."""

VERSION = 1


def main(argv: Sequence[str] | None = None) -> int:
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.cheating_servers",
        description=_DESCRIPTION,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what came out to FILE; - for standard output")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these entries alone [all]")
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    return parser


def _run(options: argparse.Namespace) -> int:
    names = options.only if options.only is not None else list(ZOO)
    if unknown := [name for name in names if name not in ZOO]:
        raise UserError(f"--only: there is no '{unknown[0]}'; --list names all")
    quiet = options.json == Path("-")
    for name in [name for name in names if ZOO[name].missing and not options.list]:
        packages = ", ".join(ZOO[name].missing)
        if options.only is not None:
            raise UserError(f"--only {name}: needs {packages}, not installed here")
        names = [one for one in names if one != name]
        if not quiet:
            say(f"left out: {name} needs {packages}, not installed here")
    if options.list:
        rows = [[name, ZOO[name].expected, ZOO[name].wants] for name in names]
        table("Cheating servers", ("", "expected", "wants"), rows)
        return 0
    if options.json not in (None, Path("-")):
        require_writable(options.json)
    records: list[dict[str, Any]] = []
    for name in names:
        records.append(perform(ZOO[name]))
        if not quiet:
            say(f"{name}: {records[-1]['outcome']}")
    ok = all(record["ok"] for record in records)
    controls = [record for record in records if record["expected"] == "clean"]
    report = {"version": VERSION, "ok": ok, "servers": [one for one in records if one not in controls]}
    report["controls"] = controls
    if quiet:
        say(json.dumps(report, indent=2))
        return 0 if ok else 1
    rows = [_row(record) for record in records]
    table("Cheating servers", ("", "expected", "outcome", "", "refused by", "audit"), rows)
    right = sum(record["ok"] for record in records)
    say(_all_right(records) if ok else f"{right} of {len(records)} came out as expected")
    if options.json is not None:
        write_json(options.json, report)
    return 0 if ok else 1


def _all_right(records: list[dict[str, Any]]) -> str:
    outcomes = Counter(record["expected"] for record in records)
    told = ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items()))
    return f"all {len(records)} came out as expected: {told}"


def _row(record: dict[str, Any]) -> list[str]:
    refused = counted(len(record["refused_by"]), "client") if record["refused_by"] else "nobody"
    audit = ", ".join(record["audit_high"]) or "nothing"
    return [record["name"], record["expected"], record["outcome"], "ok" if record["ok"] else "NOT OK", refused, audit]


if __name__ == "__main__":
    sys.exit(main())
