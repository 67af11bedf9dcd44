"""The file of rows: one JSON object in a line, only ever appended to.

Whoever appends holds a lock beside the file, which the system lets go with the process. A row is on disk before
anything else is begun, so a process that is killed leaves whole rows and at most one piece of a row at the end. Such a
piece is told and left where it is: it never becomes part of another row.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.campaigns.rows import Row
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.parsing import json_of

OWN_ROWS: Final = Path(__file__).parents[2] / "docs" / "data" / "campaign.jsonl"
_LOCK: Final = "campaign.lock"
_BEGINS: Final = b'{"key": "'
_ENDS: Final = b"]}"  # of the curve, and of the row


def read_rows(path: Path) -> tuple[list[Row], list[str]]:
    """The rows, and what is wrong with the file in words. Of rows with the same key the first counts.

    A line may lack its end: that is what a kill in the midst of writing leaves. Any other line that is no row is a
    `UserError`: somebody else has written it.
    """
    if not path.exists():
        return [], []
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as problem:
        raise UserError(f"{path}: cannot be read ({problem.strerror})") from None
    found: dict[str, Row] = {}
    told: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        row = _row(line, f"{path}, line {number}")
        if row is None:
            told.append(
                f"{path.name}, line {number}: a piece of a row, which a killed process has left; it is no result"
            )
        elif row.key in found:
            told.append(f"{path.name}, line {number}: {row.cell} is there already; the first counts")
        else:
            found[row.key] = row
    return list(found.values()), told


def _row(line: bytes, where: str) -> Row | None:
    """None for a line that was cut short: it begins as a row does and does not end as one."""
    try:
        value = json_of(line.decode())
    except ValueError:
        if line.startswith(_BEGINS[: len(line)]) and not line.endswith(_ENDS):
            return None
        raise UserError(f"{where}: not a row of a campaign") from None
    return Row.from_json(value, where)


class RowFile:
    """The file while this process may append to it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def append(self, row: Row) -> None:
        """On disk when this returns. The file is opened anew: a campaign takes days, and somebody may replace it."""
        line = (json.dumps(row.to_json(), allow_nan=False) + "\n").encode()
        try:
            with self._path.open("ab") as file:
                file.write(_line_break_due(self._path) + line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as problem:
            raise UserError(f"{self._path}: cannot be written ({problem.strerror})") from None


@contextlib.contextmanager
def appending(path: Path, runs: Path) -> Iterator[RowFile]:
    """The only campaign that writes this file, and the only one that works in `runs`; `UserError` for a second one."""
    with contextlib.ExitStack() as held:
        held.enter_context(_locked(path.with_name(path.name + ".lock"), f"{path}: another campaign writes it"))
        held.enter_context(_locked(runs / _LOCK, f"--runs {runs}: another campaign works there"))
        yield RowFile(path)


@contextlib.contextmanager
def _locked(path: Path, taken: str) -> Iterator[None]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    except OSError as problem:
        raise UserError(f"{path}: cannot be written ({problem.strerror})") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{taken}; wait for it, or end it") from None
        yield


def _line_break_due(path: Path) -> bytes:
    """A row that was cut short stays by itself."""
    content = path.read_bytes()
    return b"\n" if content and not content.endswith(b"\n") else b""
