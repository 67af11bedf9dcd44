"""A client's own folder: made for its owner's eyes only, and the record of the sums it has helped to open.

pid                 number of the process that works on it
run.id              a random name for the run, by which this client tells its runs apart
openings.jsonl      one line per sum: run, round, purpose, survivors, their states, lineage, and on what this client has
                    computed its input (`secagg.openings`); since version 2 of the lines also whether survivors are
                    known by identity, and then their fingerprints
state.key           256 random bits under which this client commits to its states, and from which the noise of a private
                    run is drawn: with it, noise can be taken off again
session.lock        held while a session uses this folder, or a record elsewhere; the system lets it go with the process
privacy.jsonl       noised releases of a private run (`secure_kg.privacy.release_record`)

Openings, key and lock may lie elsewhere, for several runs together.
"""

import contextlib
import errno
import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Any, Self

from protocols.foundation.identifiers import PartyId, RoundId
from protocols.sums.secagg.openings import Opening
from secure_kg.foundation.errors import StorageError, UserError
from secure_kg.foundation.parsing import json_of

_OPENINGS = "openings.jsonl"
_VERSION = 2
"""Of lines there; the first had none."""
_BY_IDENTITY, _BY_NUMBER = "identity", "number"
STATE_KEY = "state.key"
_KEY_BYTES = 32
_RUN_ID = "run.id"
_ID_BYTES = 16
LOCK = "session.lock"
_ENDING_SECONDS = 10.0
BEFORE_ANYTHING = ("pid", STATE_KEY, _RUN_ID, LOCK)
"""Files of a client that has not done anything yet."""


def open_folder(folder: Path, process: int, *, resume: bool) -> None:
    """Make the folder. A new run must not find one in use: a server that names an old run could have it overwritten."""
    if not resume and folder.exists() and any(path.name not in BEFORE_ANYTHING for path in folder.iterdir()):
        raise UserError(f"{folder}: has files of another run; choose another --out or continue with --resume")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        (folder / "pid").write_text(f"{process}\n", encoding="utf-8")
    except OSError as problem:
        raise StorageError.of(problem, folder) from None


def run_id(folder: Path) -> str:
    """The name of the run in this folder, the same in all its sessions; drawn by the first."""
    drawn = _drawn(folder / _RUN_ID, _ID_BYTES)
    if len(drawn) != _ID_BYTES:  # two runs without a name would be one
        raise UserError(f"{folder / _RUN_ID}: not the name of a run, of {_ID_BYTES} bytes; begin a new run")
    return drawn.hex()


def state_key(folder: Path) -> bytes:
    """The key of this client's commitments, the same in all sessions of a run; drawn by the first."""
    key = _drawn(folder / STATE_KEY, _KEY_BYTES)
    if len(key) != _KEY_BYTES:
        path = folder / STATE_KEY
        raise UserError(f"{path}: not a key of {_KEY_BYTES} bytes; without it, sums opened before are not opened again")
    return key


def _drawn(path: Path, size: int) -> bytes:
    """What is in the file; at first random bytes."""
    folder = path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            drawn = secrets.token_bytes(size)
            with os.fdopen(descriptor, "wb") as file:
                file.write(drawn)
                file.flush()
                os.fsync(file.fileno())
            return drawn  # not read again: a job that ends at this moment may have removed its unused folder
        if not path.is_file():  # to read from a pipe would wait for ever
            raise UserError(f"{path}: not a file")
        return path.read_bytes()
    except OSError as problem:
        raise UserError(f"{path}: cannot be used ({problem.strerror})") from None


@contextlib.contextmanager
def alone(*folders: Path) -> Iterator[None]:
    """Use these folders for one session at a time.

    Each session reads at its beginning what was opened and released before. Two at once would each open what the other
    one has, and each spend what is left of a privacy budget.
    """
    with contextlib.ExitStack() as held:
        for folder in sorted({folder.resolve() for folder in folders}):
            held.enter_context(_locked(folder))
        yield


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as problem:
        raise UserError(f"{folder / LOCK}: cannot be used ({problem.strerror})") from None
    try:
        _lock(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, folder: Path) -> None:
    """A process of a job that was killed may take a moment to end."""
    until = time.monotonic() + _ENDING_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise UserError(
                    f"{folder}: this client takes part in another session; start this one after it"
                ) from None
            time.sleep(0.05)


class OpeningsFile:
    """The record of openings in a folder, held open by the session that appends to it (`alone`)."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _OPENINGS
        self._file: FileIO | None = None
        self._end = 0
        """Bytes of the file as this session has left it."""

    def append(self, opening: Opening) -> None:
        """Written before the answer leaves, so that it outlives this process."""
        line = _line(opening)
        try:
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                new = not self._path.exists()
                self._file = self._path.open("ab+", buffering=0)
                if new:
                    _keep_name(self._path)
                line = _whole_lines(self._file) + line
            else:
                self._require_untouched(self._file)
            if self._file.write(line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file.fileno())  # else a power failure could let a sum be opened again over other clients
            self._end = self._file.tell()
        except OSError as problem:
            self.close()  # half a line may stand at its end, and is looked for when it is opened again
            raise StorageError.of(problem, self._path) from None

    def _require_untouched(self, file: FileIO) -> None:
        """`UserError` if the name stands for another file by now, or for less or more than was written: what goes on
        to be written here, nobody would read at the next beginning."""
        held = os.fstat(file.fileno())
        try:
            found = self._path.stat()
        except FileNotFoundError:
            found = None
        if found is None or not os.path.samestat(found, held) or found.st_size != self._end:
            raise UserError(
                f"{self._path}: removed, exchanged or changed by somebody else while this client takes part, so nobody "
                "knows which sums were opened"
            )

    def close(self) -> None:
        """Idempotent."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def append_opening(folder: Path, opening: Opening) -> None:
    """One line, by whoever appends no other."""
    with OpeningsFile(folder) as record:
        record.append(opening)


def _line(opening: Opening) -> bytes:
    identities = {str(int(party)): one for party, one in sorted(opening.identities.items())}
    record = {
        "version": _VERSION,
        "run": opening.run,
        "round": int(opening.round),
        "purpose": opening.purpose,
        "survivors": sorted(int(party) for party in opening.survivors),
        "states": {str(int(party)): state.hex() for party, state in sorted(opening.states.items())},
        "model": opening.model.hex(),
        **({"lineage": opening.lineage} if opening.lineage else {}),
        **({"computed": opening.computed} if opening.computed else {}),
        "by": _BY_IDENTITY if identities else _BY_NUMBER,
        **({"identities": identities} if identities else {}),
    }
    return json.dumps(record).encode() + b"\n"


def _keep_name(path: Path) -> None:
    """A power failure must not take the name of a new file, whose content is kept."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _whole_lines(file: FileIO) -> bytes:
    """What to write first where a crash has left a last line without its end: nothing once it is cut off, as it was
    never answered for; or its end, if nothing else is missing."""
    end = file.seek(0, os.SEEK_END)
    file.seek(max(0, end - 1))
    if file.read(1) in (b"", b"\n"):
        return b""
    file.seek(0)
    *_, last = file.read().split(b"\n")
    if _opening(last) is not None:
        return b"\n"
    file.truncate(file.tell() - len(last))
    return b""


def read_openings(folder: Path) -> list[Opening]:
    """All openings of the run so far. A last line cut short by a crash was never answered for.

    Any other line that cannot be read is refused: what it stood for would be opened again.
    """
    path = folder / _OPENINGS
    if not os.path.lexists(path):
        return []
    if not path.is_file():
        raise UserError(f"{path}: not a file, so nobody knows which sums were opened; begin a new run")
    try:
        *lines, last = path.read_bytes().split(b"\n")
    except OSError as problem:
        raise UserError(f"{path}: cannot be read ({problem.strerror})") from None
    known: list[Opening] = []
    for number, line in enumerate(lines, start=1):
        if (opening := _opening(line)) is None:
            raise UserError(f"{path}, line {number}: not a record of openings; a sum might be opened again")
        known.append(opening)
    whole = _opening(last)
    return known if whole is None else [*known, whole]


def _opening(line: bytes) -> Opening | None:
    try:
        record = json_of(line.decode())
        survivors = frozenset(PartyId(int(party)) for party in record["survivors"])
        states = {PartyId(int(party)): bytes.fromhex(state) for party, state in record.get("states", {}).items()}
        name = RoundId(int(record["round"])), str(record["purpose"])
        model = bytes.fromhex(record.get("model", ""))
        run, lineage = str(record.get("run", "")), str(record.get("lineage", ""))  # earlier versions lack them
        identities, computed = _identities(record, survivors), str(record.get("computed", ""))
        return Opening(*name, survivors, states, model, run, lineage, identities=identities, computed=computed)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _identities(record: dict[str, Any], survivors: frozenset[PartyId]) -> dict[PartyId, str]:
    """Fingerprints of all survivors; none in lines that know them by number. `ValueError` for any other line."""
    version, by = record.get("version", 1), record.get("by", _BY_NUMBER)
    if version not in (1, _VERSION) or by not in (_BY_IDENTITY, _BY_NUMBER):
        raise ValueError("a line of another version")
    if by == _BY_NUMBER:
        return {}
    identities = {PartyId(int(party)): str(one) for party, one in record["identities"].items()}
    if identities.keys() != survivors or len(set(identities.values())) != len(survivors):
        raise ValueError("identities of others than the survivors, or one twice")
    return identities
