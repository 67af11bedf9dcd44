"""Records of what a client has helped to open, on its own disk: means in `means.jsonl`, vectors that were looked up in
`atoms.jsonl`, atoms that were answered from stored facts in `exact.jsonl`. One line per batch, and one per table that
says over which clients. `atoms.jsonl` has such a line for everything together: it holds for all steps of all questions.

They lie beside the record of openings (`secure_kg.runs.client_folder`) and hold for all runs that share that folder. A
line is written before the client's scores leave. Lines are only ever added, under a lock: sessions of one client may
run at the same time.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from protocols.exact.budget import ExactBudget
from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import PartyId
from protocols.lookups.vectors import VectorBudget
from protocols.scores.budget import Budget, Charge, Helpers, default_limit, goes_beyond, share_of, spent_of
from protocols.scores.covering import HOLDINGS
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.parsing import json_of

_MEANS: Final = "means.jsonl"
_ATOMS: Final = "atoms.jsonl"
_EXACT: Final = "exact.jsonl"
USUAL_ATOMS: Final = 1000
"""Vectors of one model that a client helps to find: some two hundred questions."""
USUAL_EXACT: Final = 100
"""Atoms that a client answers from its stored facts: some fifty questions."""


class MeansRecord:
    """The record in `folder`; a `protocols.scores.budget.ChargeRecord`."""

    def __init__(self, folder: Path, name: str = _MEANS) -> None:
        self._path = folder / name
        self._alone: BinaryIO | None = None
        """Held from what is announced before a sum until over whom it is opened is written down, or its step ends."""

    def spent(self, table: bytes, asker: PartyId | None = None) -> int:
        with self._locked() as file:
            return spent_of(self._charges(file), table, asker)

    def add(self, charge: Charge, limit: int | None, share: int | None = None) -> bool:
        with self._locked() as file:
            if goes_beyond(list(self._charges(file)), charge, limit, share):
                return False
            record = {"table": charge.table.hex(), "queries": charge.queries, "asker": int(charge.asker)}
            self._write(file, record)
            return True

    def cover(self, table: bytes, clients: frozenset[PartyId]) -> frozenset[PartyId]:
        with self._locked() as file:
            known = self._first(file, table)
            if known is None:
                self._write(file, {"table": table.hex(), "over": sorted(int(client) for client in clients)})
        self.release()
        return clients if known is None else known

    def release(self) -> None:
        if self._alone is not None:
            self._alone.close()
            self._alone = None

    def covered(self, table: bytes) -> frozenset[PartyId]:
        """`SumAbandoned` while another session of this client has announced something and not yet opened it: what it
        opens then would be missing here."""
        if self._alone is None:
            self._alone = self._hold()
        with self._locked() as file:
            return self._first(file, table) or frozenset()

    def _first(self, file: BinaryIO, table: bytes) -> frozenset[PartyId] | None:
        """The set of the first opening. Of everything together that is the first of all lines: records that were
        begun when each model had a set of its own hold on."""
        return next((over for of_table, over in self._covers(file) if table in (of_table, HOLDINGS)), None)

    def _hold(self) -> BinaryIO:
        path = self._path.with_suffix(".lock")
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            held = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "rb+")
        except OSError as problem:
            raise UserError(f"{path}: cannot be used ({problem.strerror})") from None
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held.close()
            raise SumAbandoned("a scorer has means of a table under way in another session: ask again later") from None
        return held

    @staticmethod
    def _write(file: BinaryIO, record: dict[str, Any]) -> None:
        file.write(_line_break_due(file) + json.dumps(record).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())

    def _charges(self, file: BinaryIO) -> Iterator[Charge]:
        for record in self._lines(file):
            if "over" not in record:
                with self._readable():
                    charge = Charge(bytes.fromhex(record["table"]), record["queries"], PartyId(record["asker"]))
                    _require_numbers(charge.queries, charge.asker)
                yield charge

    def _covers(self, file: BinaryIO) -> Iterator[tuple[bytes, frozenset[PartyId]]]:
        for record in self._lines(file):
            if "over" in record:
                with self._readable():
                    _require_numbers(*record["over"] or [0])  # nothing is opened over nobody
                    over = frozenset(PartyId(client) for client in record["over"])
                    table = bytes.fromhex(record["table"])
                yield table, over

    def _lines(self, file: BinaryIO) -> Iterator[dict[str, Any]]:
        """A line that a crash cut short was never followed by scores."""
        file.seek(0)
        for line in file.read().splitlines():
            if not line.endswith(b"}"):
                continue
            with self._readable():
                record = json_of(line)
                if not isinstance(record, dict):
                    raise ValueError
            yield record

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, KeyError, TypeError):
            raise UserError(f"{self._path}: not a record of opened means or vectors") from None

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


def _require_numbers(*values: object) -> None:
    if any(type(value) is not int or value < 1 for value in values):  # true is no number here
        raise ValueError


def _line_break_due(file: BinaryIO) -> bytes:
    """A line that a crash cut short stays by itself."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 1))
    return b"" if file.read(1) in (b"", b"\n") else b"\n"


def budget_of(
    folder: Path,
    width: int,
    helpers: Helpers = Helpers(),  # noqa: B008  nothing that changes
    *,
    limit: int | None = None,
    allow_extraction: bool = False,
    other_scorers: bool = False,
) -> Budget:
    """The budget of the client whose records are in `folder`, for tables whose rows have `width` numbers.

    `helpers`: who shares in opening. `limit`: queries per table, below `width`; by default so many that all clients
    together open half of `width`.
    """
    chosen = default_limit(width, helpers) if limit is None else limit
    if not 0 <= chosen < width:
        raise UserError(f"a budget of {chosen} queries gives rows of {width} numbers away: it must lie below {width}")
    return Budget(MeansRecord(folder), chosen, allow_extraction=allow_extraction, other_scorers=other_scorers)


def atom_budget_of(
    folder: Path, width: int, table: bytes, *, limit: int = USUAL_ATOMS, askers: int = 1
) -> VectorBudget:
    """The budget of vectors that the client whose records are in `folder` helps to find, of the model `table`.

    Vectors of `width` numbers count as one, wider ones as several. Where relations translate, one answer gives a
    relation's row: this bounds how many rows an asker can compute, and not how well. `askers`: who may ask; each of
    them has an equal share, so that nobody can use up what is left to others.
    """
    if limit < 0:
        raise UserError(f"a budget of {limit} vectors is none")
    return VectorBudget(MeansRecord(folder, _ATOMS), limit, width, table=table, share=share_of(limit, askers))


def exact_budget_of(folder: Path, *, limit: int = USUAL_EXACT, askers: int = 1) -> ExactBudget:
    """The budget of atoms that the client whose records are in `folder` answers from its stored facts, in all sessions
    over this run and in equal shares for all `askers`. Another run has another folder, and another record."""
    if limit < 0:
        raise UserError(f"a budget of {limit} atoms is none")
    return ExactBudget(MeansRecord(folder, _EXACT), limit, share=share_of(limit, askers))
