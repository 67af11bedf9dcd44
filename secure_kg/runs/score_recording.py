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

from protocols.foundation.identifiers import PartyId, SessionId
from protocols.sums.secagg.params import ThreatModel
from protocols.transport.base import Transport
from secure_kg.foundation.errors import UserError
from secure_kg.runs.recording import seal_record, session_name, start_transcript
from secure_kg.runs.records.scores import ScoreBatch, ScoreSession
from secure_kg.runs.run_folder import read_record, write_json

RECORDS: Final = "scores-*.json"
VERSION: Final = 1


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


@contextmanager
def recorded(folder: Path, record: ScoreSession, transport: Transport) -> Iterator[None]:
    """Record at the server's end what passes in the block. The record is whole if the block ends without a problem."""
    session = SessionId(bytes.fromhex(record.session))
    write_json(record_path(folder, session), record.to_json())
    tap = start_transcript(folder, session)
    tap.path.chmod(0o600)
    transport.attach(tap)
    try:
        yield
    except BaseException:
        tap.close()
        raise
    whole = msgspec.structs.replace(record, transcript=seal_record(tap, tap.seal()))
    write_json(record_path(folder, session), whole.to_json())


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
        for batch in record.batches:
            batch.terms()
            batch.hidden_batch()
    except ValueError as problem:
        raise UserError(f"{found[0]}: not a record of score queries ({problem})") from None
    return record
