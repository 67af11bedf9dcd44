"""Tables of a campaign in a document, drawn from the rows and from nothing else.

They stand between `<!-- rendered: campaign -->` and `<!-- end of campaign -->`. Rows of different versions of results
never meet in a table: each version has tables of its own, the newest first.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.campaigns.queue import Entry
from benchmarks.campaigns.rows import Row, key_of, result_of
from benchmarks.campaigns.verdicts import verdicts
from benchmarks.reproduction.cells import Cell
from benchmarks.reproduction.jobs import Outcome
from benchmarks.reproduction.rendering import markdown
from benchmarks.reproduction.report import build
from benchmarks.reproduction.results import Result
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.words import counted
from secure_kg.runs.run_folder import write_whole

OWN_DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "results.md"
_BLOCK: Final = re.compile(r"(<!-- rendered: campaign -->\n).*?(<!-- end of campaign -->)", re.DOTALL)


def keys_of(entry: Entry, version: int) -> dict[Cell, str]:
    """The entry's cells with the keys of their rows."""
    return {cell: key_of(entry.identity(cell), version) for cell in entry.request.cells()}


def report_of(entry: Entry, rows: Sequence[Row], version: int) -> tuple[dict[str, Any], list[Row]]:
    """The entry's report of one version of results, and the rows that are in it."""
    keyed = {row.key: row for row in rows}
    found = {cell: keyed[key] for cell, key in keys_of(entry, version).items() if key in keyed}
    require_pairable(list(found.values()))
    results = [
        result_of(found[cell]) if cell in found else Result(cell, f"{entry.name}: {cell}", Outcome("missing"))
        for cell in entry.request.cells()
    ]
    dates = sorted({row.date for row in found.values()})
    report = build(
        entry.table,
        entry.request,
        results,
        command=f"python -m benchmarks.campaign --data-root DIR --only {entry.name}",
        commit=None,
        date=" to ".join(dates[:: max(len(dates) - 1, 1)]) or "no date",
    )
    return report, list(found.values())


def require_pairable(rows: Sequence[Row]) -> None:
    """Differences are taken between rows of the same seed: these must be of one version and of the same data."""
    first: dict[tuple[str, int], Row] = {}
    for row in rows:
        other = first.setdefault((row.dataset, row.clients), row)
        if row.version != other.version:
            raise UserError(
                f"{row.cell} has results of version {row.version}, {other.cell} of version {other.version}: no pair"
            )
        if row.data != other.data:
            raise UserError(f"{row.cell} was run on other data than {other.cell} ({row.data}, {other.data}): no pair")


def section(entry: Entry, rows: Sequence[Row], version: int) -> str:
    """The entry's tables, with what they say about its question."""
    report, found = report_of(entry, rows, version)
    text = markdown(report, heading=f"### {entry.asks}", notes=False)
    head, _, rest = text.partition("\n```\n")
    said = [f"- {line}" for line in verdicts(report, found)]
    machines = sorted({_machine(row) for row in found})
    about = f"Results version {version}; {len(found)} of {counted(len(report['runs']), 'cell')}; {'; '.join(machines)}."
    return "\n".join([head, *said, "", about, "", "```", rest])


def campaign_text(entries: Sequence[Entry], rows: Sequence[Row]) -> str:
    """All entries that have rows, in the order of the queue; then what is not run."""
    parts: list[str] = []
    for entry in entries:
        for version in sorted({row.version for row in rows}, reverse=True):
            keys = set(keys_of(entry, version).values())
            if any(row.key in keys for row in rows):
                parts.append(section(entry, rows, version))
    return "\n".join(parts) if parts else "No cell of the queue is finished yet.\n"


def rendered(document: str, text: str) -> str:
    """The document with `text` between the marks; `UserError` where it has none."""
    if not _BLOCK.search(document):
        raise UserError("the document has no <!-- rendered: campaign --> with an <!-- end of campaign --> after it")
    return _BLOCK.sub(lambda found: f"{found[1]}{text}{found[2]}", document, count=1)


def render_into(path: Path, entries: Sequence[Entry], rows: Sequence[Row]) -> None:
    try:
        document = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise UserError(f"{path}: cannot be read ({problem.strerror})") from None
    write_whole(path, rendered(document, campaign_text(entries, rows)).encode())


def _machine(row: Row) -> str:
    return f"{row.machine.get('processor')}, {row.machine.get('cores')} cores"


def orphans(entries: Sequence[Entry], rows: Sequence[Row]) -> Iterator[str]:
    """Rows that no entry of the queue asks for any more: they stay in the file and are in no table."""
    asked = {
        version: {key for entry in entries for key in keys_of(entry, version).values()}
        for version in {row.version for row in rows}
    }
    for row in rows:
        if row.key not in asked[row.version]:
            yield f"{row.cell} (entry {row.entry}, version {row.version}) belongs to no entry of the queue"
