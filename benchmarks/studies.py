"""Studies of FedR and FedE that are figures rather than tables.

A study looks at rows of a campaign (`python -m benchmarks.campaign`). With --data-root it first runs the cells that it
needs, as a campaign of its own; --set gives them other settings, for a first look at a small size.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.campaigns import fede_studies, fedr_studies
from benchmarks.campaigns.queue import OWN_QUEUE, Entry, only, read_queue
from benchmarks.campaigns.rendering import keys_of
from benchmarks.campaigns.row_file import OWN_ROWS, read_rows
from benchmarks.campaigns.rows import Row
from benchmarks.campaigns.study import Look, Study
from benchmarks.campaigns.work import run_entries
from benchmarks.reproduction.provenance import RESULTS_VERSION
from benchmarks.reproduction.rendering import markdown_table
from launch.command_line import OneLineParser, deliver, require_json, require_writable, run_command
from secure_kg.foundation.console import say, table
from secure_kg.foundation.errors import UserError
from secure_kg.report.html import Html, document, quiet, section, tag
from secure_kg.report.picture import Picture, picture
from secure_kg.runs.run_folder import write_whole

STUDIES: Final = fedr_studies.STUDIES | fede_studies.STUDIES
_EPILOG: Final = """\
examples:
  python -m benchmarks.studies communication --html communication.html --svg docs/figures/communication.svg
  python -m benchmarks.studies client-fraction --data-root DIR --set dim=16 rounds=10 --rows look.jsonl --runs look"""


def main(argv: Sequence[str] | None = None) -> int:
    """0: shown. 1: a run failed. 2: one line on standard error says what to mend."""
    return run_command(lambda: _run(_parser().parse_args(argv)))


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(
        prog="python -m benchmarks.studies",
        description=__doc__,
        epilog=_EPILOG,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(prog, max_help_position=30, width=112),
        allow_abbrev=False,
    )
    texts = "; ".join(f"{name}: {study.title} ({study.place})" for name, study in STUDIES.items())
    parser.add_argument("study", choices=list(STUDIES), metavar="STUDY", help=texts)
    parser.add_argument("--rows", default=str(OWN_ROWS), metavar="FILE", help="[docs/data/campaign.jsonl]")
    parser.add_argument("--queue", default=str(OWN_QUEUE), metavar="FILE", help="[benchmarks/campaign.toml]")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="of the study's entries these alone [all]")
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE", help="other settings than the queue's")
    parser.add_argument("--seeds", nargs="+", type=int, metavar="SEED", help="other seeds than the queue's")
    parser.add_argument("--models", nargs="+", metavar="MODEL", help="other models than the queue's")
    parser.add_argument("--data-root", metavar="DIR", help="run what is missing; without it nothing is run")
    parser.add_argument("--runs", default="runs/campaign", metavar="DIR", help="run folders [runs/campaign]")
    parser.add_argument("--hours", type=float, metavar="H", help="interrupt what is under way after so many [no limit]")
    parser.add_argument("--html", metavar="FILE", help="a page by itself")
    parser.add_argument("--svg", metavar="FILE", help="the pictures alone")
    parser.add_argument("--markdown", metavar="FILE", help="the table and what it says")
    parser.add_argument("--json", metavar="FILE", help="write the table to FILE; - for standard output")
    return parser


def _run(options: argparse.Namespace) -> int:
    study = STUDIES[options.study]
    require_json(options.json)
    for path in (options.html, options.svg, options.markdown):
        if path is not None:
            require_writable(Path(path))
    entries = _entries(study, options)
    failed = False
    if options.data_root is not None:
        until = None if options.hours is None else time.monotonic() + 3600 * options.hours
        quiet_run = options.json == "-"
        failed = not run_entries(
            entries, Path(options.rows), Path(options.runs), at_once=1, until=until, tell=None if quiet_run else say
        )
    rows, told = read_rows(Path(options.rows))
    found = rows_of(entries, rows)
    if not found:
        raise UserError(
            f"{options.rows}: no row of {', '.join(entry.name for entry in entries)}; --data-root runs them"
        )
    look = study.look(found)
    title = f"{study.title} ({study.place})"
    note = about(entries, found)
    deliver(report_of(options.study, study, look, note), options.json, lambda report: _show(title, look, [*told, note]))
    _write(options, study, look, note)
    return 1 if failed else 0


def _entries(study: Study, options: argparse.Namespace) -> list[Entry]:
    changes: dict[str, Any] = {}
    pairs = [word.partition("=") for word in options.set]
    if not all(equals for _, equals, _ in pairs):
        raise UserError("--set must be followed by NAME=VALUE ...")
    if pairs:
        changes["settings"] = {name.replace("-", "_"): value for name, _, value in pairs}
    changes |= {name: given for name in ("seeds", "models") if (given := getattr(options, name)) is not None}
    data_root, runs = (Path(os.path.abspath(path)) for path in (options.data_root or "data", options.runs))
    entries = only(read_queue(Path(options.queue), data_root, runs, changes), list(study.entries))
    return entries if options.only is None else only(entries, options.only)


def rows_of(entries: Sequence[Entry], rows: Sequence[Row]) -> list[Row]:
    """Of this version of results alone, in the order of the queue, each once."""
    keyed = {row.key: row for row in rows}
    keys = dict.fromkeys(key for entry in entries for key in keys_of(entry, RESULTS_VERSION).values())
    return [keyed[key] for key in keys if key in keyed]


def about(entries: Sequence[Entry], rows: Sequence[Row]) -> str:
    """How much of it was run, and by which code."""
    asked = {key for entry in entries for key in keys_of(entry, RESULTS_VERSION).values()}
    commits = sorted({commit for row in rows for commit in row.commits})
    cut = sum(row.stopped_early is False for row in rows)
    text = f"{len(rows)} of {len(asked)} cells; results version {RESULTS_VERSION}; commits {', '.join(commits)}"
    return text + (
        f"; {cut} came to the largest number of rounds before validation stopped getting better" if cut else ""
    )


def report_of(name: str, study: Study, look: Look, note: str) -> dict[str, Any]:
    lines = [dict(zip(look.columns, row, strict=True)) for row in look.rows]
    return {"study": name, "place": study.place, "about": note, "lines": lines, "said": look.said}


def _show(title: str, look: Look, notes: Sequence[str]) -> None:
    table(title, look.columns, look.rows)
    for line in (*look.said, *notes):
        say(line)


def _write(options: argparse.Namespace, study: Study, look: Look, note: str) -> None:
    title = f"{study.title} ({study.place})"
    drawn = picture(study.title, look.panels, "\n".join([*look.said, note])) if look.panels else None
    if options.markdown:
        lines = [*markdown_table(look.columns, look.rows), "", *(f"- {line}" for line in (*look.said, note))]
        write_whole(Path(options.markdown), ("\n".join(lines) + "\n").encode())
    if options.svg:
        if drawn is None:
            raise UserError(f"--svg {options.svg}: nothing to draw yet")
        drawn.save(options.svg)
    if options.html:
        write_whole(Path(options.html), page(title, look, note, drawn).encode())


def page(title: str, look: Look, note: str, drawn: Picture | None) -> str:
    """One file, without scripts and without a network."""
    head = tag("thead", tag("tr", *(tag("th", name) for name in look.columns)))
    body = tag("tbody", *(tag("tr", *(tag("td", cell) for cell in row)) for row in look.rows))
    figures = (
        [tag("figure", Html(drawn.svg), style=f"max-width:{drawn.width:g}px")]
        if drawn is not None
        else [quiet("nothing to draw yet")]
    )
    return document(
        title,
        tag("h1", title),
        quiet(note),
        *(tag("p", line) for line in look.said),
        section("pictures", "Pictures", *figures),
        section("figures", "Figures", tag("div", tag("table", head, body, class_="wide"), class_="scroll")),
    )


if __name__ == "__main__":
    sys.exit(main())
