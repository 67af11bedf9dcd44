"""Under `--transcript`: the server's record of what it saw, and the clients' receipts, by which it can be checked.

transcript-S.bin        in the run's folder, by the server: every frame it received and sent in session S
settings-S.toml         in the run's folder, by the server: the settings of session S
receipt-S.jsonl         in each client's folder: the hashes of the frames it sent and received (`session.receipts`)

When a line of a receipt is written is the client's own rule, not the server's: after the keys of a session, after every
message that it has handled, and when it stops, whatever the reason. Lines are given to the operating system one by one
and not forced to the disk: a client that is killed loses at most the line under way, a machine that loses its power
perhaps the last seconds.
"""

import contextlib
import os
from pathlib import Path
from typing import Final

from protocols.foundation.identifiers import RoundId, SessionId
from protocols.session.receipts import Head, Receipt, Sign
from protocols.transport.tap import Seal, Tap
from secure_kg.foundation.errors import StorageError, UserError
from secure_kg.runs.records.events import TranscriptEnd

RECEIPTS: Final = "receipt-*.jsonl"
_GREETING: Final = 2
"""Frames a client receives if the session ends with its beginning: `Welcome`, and why it is over."""


def session_name(session: SessionId) -> str:
    """Short enough for a file name; sessions of one run do not share it by chance."""
    return session.hex()[:8]


def transcript_path(run: Path, session: SessionId) -> Path:
    return run / f"transcript-{session_name(session)}.bin"


def settings_path(run: Path, session: SessionId) -> Path:
    return run / f"settings-{session_name(session)}.toml"


def receipt_path(client_folder: Path, session: SessionId) -> Path:
    return client_folder / f"receipt-{session_name(session)}.jsonl"


def start_transcript(run: Path, session: SessionId) -> Tap:
    return Tap(transcript_path(run, session))


def seal_record(tap: Tap, seal: Seal) -> TranscriptEnd:
    """For the summary: by this a transcript that was written anew is told from the one of the run."""
    return TranscriptEnd(file=tap.path.name, frames=seal.records, last_link=seal.link.hex())


class ReceiptKeeper(Receipt):
    """A client's receipt of one session in its own file, which is only ever appended to.

    The file is made as soon as the client was sent more than a greeting and a last word: a job that ends there has left
    nothing by which a folder would count as used.
    """

    def __init__(self) -> None:
        super().__init__()
        self._path: Path | None = None
        self._unwritten = b""
        self._made = False

    def open(self, folder: Path, head: Head, sign: Sign | None) -> None:
        """Where the lines go. Nothing is written yet."""
        self._path, self._unwritten = receipt_path(folder, head.session), self.begin(head, sign)

    def keep(self, round_id: RoundId, *, final: bool = False) -> None:
        """Write down what has passed since the last time. `UserError` if that fails; nothing more is written then."""
        if self._path is None or self.passed["received"] <= _GREETING:
            return
        # Until it is written: half a line may stand at the end, and another one behind it would be damage.
        path, self._path = self._path, None
        self._unwritten += self.mark(round_id, final)
        try:
            self._append(path)
        except OSError as problem:
            raise StorageError.of(problem, path) from None
        self._path = None if final else path

    def stop(self, round_id: RoundId) -> None:
        """As `keep`, for a client that stops: what it stops for must not be hidden by a receipt that fails."""
        with contextlib.suppress(UserError):
            self.keep(round_id)

    def _append(self, path: Path) -> None:
        if not self._unwritten:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        # Made anew: a server that gives two sessions one name must not get them into one receipt.
        new = 0 if self._made else os.O_CREAT | os.O_EXCL
        file = os.open(path, os.O_WRONLY | os.O_APPEND | new, 0o600)
        self._made = True
        try:
            while self._unwritten:
                self._unwritten = self._unwritten[os.write(file, self._unwritten) :]
        finally:
            os.close(file)
