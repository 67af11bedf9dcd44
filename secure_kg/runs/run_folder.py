"""The files of a run. This is the one place that writes them, each in a single step: a reader never sees half a file.

config.toml                     every setting, resolved
metrics.jsonl                   one line per evaluation
summary.json                    the result; its presence means that the run is complete
report.html                     the same for people
checkpoint.json                 the last round for which every party has written its part
server/checkpoint-R.safetensors
server/alignment.json           size and digest of the union, once for the whole run
server/names.json               the names of the union, under --reveal-names only
server/tested.json              over which clients the test results were opened
clients/K/                      what client K keeps to itself: its checkpoints, model.safetensors, result.json,
                                alignment.safetensors; under secret sums federation.json(l), which only it can read
pool/                           under --strategy entire: checkpoints and model of the one trainer; clients/K then has
                                client K's result and its rows of that model
transcript-S.bin                what the server saw in session S, if asked for; settings-S.toml are its settings in that
                                session, and clients/K/receipt-S.jsonl is client K's own record of the hashes of what
                                passed, appended to as the session goes on
lock                            held while a job runs here
"""

import errno
import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from protocols.foundation.identifiers import PartyId
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import StorageError, UserError
from secure_kg.foundation.parsing import json_of, text_of
from secure_kg.runs.client_folder import BEFORE_ANYTHING
from secure_kg.runs.next_step import no_run_there
from secure_kg.runs.records.client_result import ClientResult, Evaluation, FederationResult
from secure_kg.runs.records.record import Record
from secure_kg.runs.records.summary import Summary

R = TypeVar("R", bound=Record)

LOCK: Final = "lock"
DRAFT: Final = ".draft"
"""How the name of a file ends that is not whole yet."""
_KEPT: Final = 40
"""Letters of a file's name in that of its draft: with the whole name it could be too long."""
_METRICS: Final = "metrics.jsonl"
_OWN: Final = ("clients/*", "pool")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a run's folder for this process: two jobs in one folder would write over each other."""
    try:
        file = (path / LOCK).open("w")
    except OSError as problem:
        raise UserError(f"--out {path}: {problem.strerror}") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            text = f"{path}: another job is running in this folder; wait for it, or choose another --out"
            raise UserError(text) from None
        yield


def new_folders(path: Path) -> list[Path]:
    """The folders that making `path` would make, the innermost first."""
    return [folder for folder in (path, *path.parents) if not folder.exists()]


def discard_late_files(path: Path, new: Sequence[Path]) -> None:
    """Remove what clients have written to the folder of a run after its server had discarded it.

    `new`: what `new_folders` had said before the run. A folder that had been there, or that another job holds, stays.
    """
    if path in new:
        with suppress(UserError), locked(path):
            RunFolder(path).discard_if_unused(new)


class RunFolder:
    """A run's folder as the server and the launcher see it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._asked: RunConfig | None = None

    @classmethod
    def create(cls, path: Path, config: RunConfig) -> "RunFolder":
        """A new folder. One in which anything has happened is never written over."""
        folder = cls.make(path)
        write_whole(path / "config.toml", config.to_toml().encode())
        return folder

    @classmethod
    def make(cls, path: Path) -> "RunFolder":
        """An empty folder, or one in which a job has done no more than to begin."""
        folder = cls(path)
        try:
            fresh = not path.exists()
            path.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise UserError(f"--out {path}: {problem.strerror}") from None
        if not fresh and (not any(path.iterdir()) or not folder._unused()):
            raise UserError(f"--out {path}: exists already; choose another folder or continue with --resume")
        return folder

    @classmethod
    def reopen(cls, path: Path, config: RunConfig) -> "RunFolder":
        """A folder to go on with, under settings that may ask for more rounds. Nothing changes before `begin`.

        A recorded run begins at once: a summary that knew less than the transcript would accuse an honest server.
        """
        folder = cls(path)
        folder._asked = config
        if config.transcript:
            folder.begin()
        return folder

    def begin(self) -> None:
        """All parties go on with a run that was reopened: it has its new settings, and is no longer complete."""
        if self._asked is not None:
            write_whole(self.path / "config.toml", self._asked.to_toml().encode())
            (self.path / "summary.json").unlink(missing_ok=True)
            self._asked = None

    def discard_if_unused(self, new: Sequence[Path] = ()) -> None:
        """Remove a folder in which nothing has happened, so that a mended command can use its name.

        `new`: what `new_folders` had said before the folder was made. Folders above it go too, if they are empty.
        """
        if self._unused():
            shutil.rmtree(self.path, ignore_errors=True)
            for folder in new:
                with suppress(OSError):
                    folder.rmdir()

    def _unused(self) -> bool:
        """Whether a job has done no more here than to begin."""
        files = [path.relative_to(self.path) for path in self.path.rglob("*") if not path.is_dir()]
        own = BEFORE_ANYTHING
        record = ("transcript-*.bin", "settings-*.toml")
        begun = ("config.toml", LOCK, *record, *(f"{folder}/{name}" for folder in _OWN for name in own))
        return all(any(path.match(pattern) for pattern in begun) for path in files)

    @property
    def server(self) -> Path:
        return self.path / "server"

    @property
    def pool(self) -> Path:
        return self.path / "pool"

    def client(self, number: int) -> Path:
        return self.path / "clients" / str(number)

    def note_tested(self, clients: Collection[int]) -> None:
        write_json(self.server / "tested.json", {"clients": sorted(int(client) for client in clients)})

    def tested(self) -> set[PartyId]:
        """Over whom the run's test results were opened, if they were."""
        path = self.server / "tested.json"
        clients = read_json(path).get("clients", []) if path.exists() else []
        if not isinstance(clients, list) or not all(isinstance(client, int) for client in clients):
            raise UserError(f"{path}: names no clients")
        return {PartyId(client) for client in clients}

    def client_results(self) -> list[ClientResult]:
        """The results that clients on this machine have left; none from clients elsewhere."""
        found = [read_record(path, ClientResult) for path in self.path.glob("clients/*/result.json")]
        return sorted(found, key=lambda result: result.client)

    def read_by_clients(self) -> FederationResult | None:
        """The result of the federation where only clients can read it, from the one here that has seen most of it."""
        found = sorted(self.path.glob("clients/*/federation.json"), key=lambda path: int(path.parent.name))
        read = [read_record(path, FederationResult) for path in found]
        return max(read, key=lambda result: result.evaluations, default=None)

    def append_metrics(self, line: Evaluation) -> None:
        append_line(self.path / _METRICS, line)

    def metrics(self) -> list[Evaluation]:
        return read_lines(self.path / _METRICS, Evaluation)

    def all_metrics(self) -> list[Evaluation]:
        """As `metrics`, with what only clients could read, from any one on this machine."""
        read: dict[int, Evaluation] = {}
        for path in self.path.glob("clients/*/federation.jsonl"):
            read |= {line.round: line for line in read_lines(path, Evaluation)}
        return [line.read_as(read[line.round]) if line.round in read else line for line in self.metrics()]

    def forget_metrics_after(self, round_id: int) -> None:
        """Drop the lines of rounds that a resumed run will do again."""
        write_lines(self.path / _METRICS, [line for line in self.metrics() if line.round <= round_id])

    def write_summary(self, summary: Summary) -> None:
        write_json(self.path / "summary.json", summary.to_json())

    def write_report(self, page: str) -> None:
        write_whole(self.path / "report.html", page.encode())

    def settings(self) -> str:
        return (self.path / "config.toml").read_text(encoding="utf-8")

    def summary(self) -> Summary | None:
        """None if the run has not come to its end."""
        path = self.path / "summary.json"
        return read_record(path, Summary) if path.exists() else None


def read_config(path: Path) -> RunConfig:
    """The settings a run folder was started with."""
    where = path / "config.toml"
    try:
        text = text_of(where)
    except OSError:
        raise UserError(no_run_there(path)) from None
    except ValueError:
        raise UserError(f"{where}: not a TOML file") from None
    return RunConfig.from_toml(text, str(where))


def write_whole(path: Path, content: bytes, *, private: bool = False) -> None:
    """Write through a neighbour and rename, so that a crash leaves the old file or the new one.

    Nobody can put anything in the neighbour's place: its name is drawn, and it must not exist. A symbolic link at
    `path` is replaced, and what it points to stays. `private`: nobody but the owner of the file can read it.
    """
    draft = path.with_name(f"{path.name[:_KEPT]}.{secrets.token_hex(8)}{DRAFT}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise StorageError.of(problem, path) from None


def write_json(path: Path, value: dict[str, Any], *, private: bool = False) -> None:
    # allow_nan=False: a result that is not a number must not look like one.
    write_whole(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode(), private=private)


def read_json(path: Path) -> dict[str, Any]:
    try:
        value = json_of(text_of(path))
    except (OSError, ValueError):
        raise UserError(f"{path}: cannot be read as JSON") from None
    if not isinstance(value, dict):
        raise UserError(f"{path}: not a JSON object")
    return value


def read_record(path: Path, kind: type[R]) -> R:
    """`UserError` if the file has no such record."""
    return kind.from_json(read_json(path), path)


def append_line(path: Path, record: Record) -> None:
    """The whole line or nothing of it: half a line would swallow the one that a resumed run writes."""
    line = _line(record).encode()
    try:
        with path.open("ab", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            if file.write(line) != len(line):
                file.truncate(end)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as problem:
        raise StorageError.of(problem, path) from None


def read_lines(path: Path, kind: type[R]) -> list[R]:
    """The records in a file with one in each line; none if it does not exist. A line without an end is left out."""
    if not path.exists():
        return []
    try:
        lines = text_of(path).splitlines()
        return [kind.from_json(json_of(line), path) for line in lines if line.endswith("}")]
    except (OSError, ValueError):
        raise UserError(f"{path}: cannot be read as JSON") from None


def write_lines(path: Path, records: Iterable[Record]) -> None:
    write_whole(path, "".join(map(_line, records)).encode())


def _line(record: Record) -> str:
    return json.dumps(record.to_json()) + "\n"
