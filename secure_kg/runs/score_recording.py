"""Recording of a session of score queries: what its server saw, and what the parties had agreed on.

scores-S.json        the public parameters of session S and of its batches; at its end with the transcript's last link
transcript-S.bin     every frame that the server received and sent (`protocols.transport.tap`)

A folder holds one session. `python -m launch.audit` reads it. The transcript is for its owner's eyes only: of
a selection it has the seeds of all masks, and a client that is handed it reads every other client's scores.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import PartyId, SessionId
from protocols.sums.secagg.params import ThreatModel
from protocols.transport.base import Transport
from secure_kg.foundation.errors import UserError
from secure_kg.runs.recording import seal_record, session_name, start_transcript
from secure_kg.runs.records.events import TranscriptEnd
from secure_kg.runs.records.scores import ScoreBatch, ScoreSession
from secure_kg.runs.run_folder import read_record, write_json

RECORDS: Final = "scores-*.json"
VERSION: Final = 2
"""2: dealt randomness is bound to the set-up of the session. A record of 1 is refused: it was another program's."""


def record_path(folder: Path, session: SessionId) -> Path:
    return folder / f"scores-{session_name(session)}.json"


def require_unused(folder: Path) -> None:
    """`UserError` if the folder holds a session already, or cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UserError(f"{folder}: cannot be made ({problem.strerror})") from None
    if next(folder.glob(RECORDS), None) is not None:
        raise UserError(f"{folder}: holds a session of score queries already")


def of_session(
    session: SessionId,
    parties: Sequence[PartyId],
    model: ThreatModel,
    batches: Sequence[ScoreBatch],
    *,
    dimensions: int = 0,
    allow_extraction: bool = False,
) -> ScoreSession:
    """The record of a session that is about to begin."""
    return ScoreSession(
        version=VERSION,
        session=session.hex(),
        parties=sorted(int(party) for party in parties),
        adversary=model.server,
        max_corrupt=model.corrupt,
        max_dropout=model.dropout,
        min_survivors=2,
        allow_extraction=allow_extraction,
        dimensions=dimensions,
        batches=list(batches),
    )


def announced(record: ScoreSession, asker: PartyId, greeting: bytes = b"") -> ScoreSession:
    """The same where the asker's announcements say which batch comes next. `greeting`: what keys are bound to."""
    return msgspec.structs.replace(record, announced_by=int(asker), greeting=greeting.hex())


class SessionRecord:
    """The record of a session under way. Batches that become known as they come are added before they begin."""

    def __init__(self, folder: Path, record: ScoreSession) -> None:
        self._path = record_path(folder, SessionId(bytes.fromhex(record.session)))
        self.record = record
        self._write()

    def add(self, batch: ScoreBatch) -> None:
        self.record = msgspec.structs.replace(self.record, batches=[*self.record.batches, batch])
        self._write()

    def end(self, transcript: TranscriptEnd) -> None:
        self.record = msgspec.structs.replace(self.record, transcript=transcript)
        self._write()

    def _write(self) -> None:
        write_json(self._path, self.record.to_json())


@contextmanager
def recorded(folder: Path, record: ScoreSession, transport: Transport) -> Iterator[SessionRecord]:
    """Record at the server's end what passes in the block. The record is whole if the block ends without a problem."""
    written = SessionRecord(folder, record)
    tap = start_transcript(folder, SessionId(bytes.fromhex(record.session)))
    tap.path.chmod(0o600)
    transport.attach(tap)
    try:
        yield written
    except BaseException:
        tap.close()
        raise
    written.end(seal_record(tap, tap.seal()))


def read_session(folder: Path) -> ScoreSession | None:
    """The one in `folder`; None if there is none. `UserError` for several, or for a file that is no such record."""
    found = sorted(folder.glob(RECORDS))
    if len(found) > 1:
        raise UserError(f"{folder}: holds {len(found)} sessions of score queries; an audit is of one")
    if not found:
        return None
    record = read_record(found[0], ScoreSession)
    try:
        if record.version != VERSION:
            raise ValueError(f"version {record.version}")
        if record_path(folder, SessionId(bytes.fromhex(record.session))) != found[0]:
            raise ValueError("of another session than its name says")
        bytes.fromhex(record.greeting)
        if not record.parties or any(party < 1 for party in record.parties):
            raise ValueError("parties that are none")
        for batch in record.batches:
            batch.terms()
            batch.hidden_batch()
            batch.hidden_tables()
    except (ValueError, OverflowError, ProtocolError) as problem:
        raise UserError(f"{found[0]}: not a record of score queries ({problem})") from None
    return record
