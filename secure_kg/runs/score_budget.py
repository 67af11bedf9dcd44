"""Record of the means that a client has helped to open, on its own disk: `means.jsonl`, one line per batch.

It lies beside the record of openings (`secure_kg.runs.client_folder`) and holds for all runs that share that folder. A
line is written before the client's scores leave. Lines are only ever added, under a lock: sessions of one client may
run at the same time.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from protocols.foundation.identifiers import PartyId
from protocols.scores.budget import Budget, Charge, default_limit
from secure_kg.foundation.errors import UserError

_MEANS: Final = "means.jsonl"


class MeansRecord:
    """The record in `folder`; a `protocols.scores.budget.ChargeRecord`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _MEANS

    def spent(self, table: bytes) -> int:
        with self._locked() as file:
            return self._spent(file, table)

    def add(self, charge: Charge, limit: int | None) -> bool:
        with self._locked() as file:
            if limit is not None and self._spent(file, charge.table) + charge.queries > limit:
                return False
            record = {"table": charge.table.hex(), "queries": charge.queries, "asker": int(charge.asker)}
            file.write(_line_break_due(file) + json.dumps(record).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
            return True

    def _spent(self, file: BinaryIO, table: bytes) -> int:
        return sum(charge.queries for charge in self._charges(file) if charge.table == table)

    def _charges(self, file: BinaryIO) -> Iterator[Charge]:
        """A line that a crash cut short was never followed by scores."""
        file.seek(0)
        for line in file.read().splitlines():
            if not line.endswith(b"}"):
                continue
            try:
                record = json.loads(line)
                charge = Charge(bytes.fromhex(record["table"]), record["queries"], PartyId(record["asker"]))
                if not isinstance(charge.queries, int) or charge.queries < 1:
                    raise ValueError
            except (ValueError, KeyError, TypeError):
                raise UserError(f"{self._path}: not a record of opened means") from None
            yield charge

    @contextmanager
    def _locked(self) -> Iterator[BinaryIO]:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "ab+") as file:
                fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
                yield file
        except OSError as problem:
            raise UserError(f"{self._path}: cannot be used ({problem.strerror})") from None


def _line_break_due(file: BinaryIO) -> bytes:
    """A line that a crash cut short stays by itself."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 1))
    return b"" if file.read(1) in (b"", b"\n") else b"\n"


def budget_of(folder: Path, width: int, *, limit: int | None = None, allow_extraction: bool = False) -> Budget:
    """The budget of the client whose records are in `folder`, for tables whose rows have `width` numbers.

    `limit`: queries per table, below `width`; half of `width` if None.
    """
    chosen = default_limit(width) if limit is None else limit
    if not 0 <= chosen < width:
        raise UserError(f"a budget of {chosen} queries gives rows of {width} numbers away: it must lie below {width}")
    return Budget(MeansRecord(folder), chosen, allow_extraction=allow_extraction)
