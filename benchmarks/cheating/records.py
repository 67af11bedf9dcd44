"""Servers that cheat and then show their auditor another record: edited, cut, or with receipts cut to fit."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.cheating.entry import Played
from benchmarks.cheating.sessions import poisoned
from benchmarks.cheating.stage import Stage
from benchmarks.cheating.tables import POISON, SameLie, config_of_tables
from protocols import wire
from protocols.identifiers import SessionId
from protocols.transport.tap import Tap, frame_hash, read_transcript
from secure_kg.audit.read import Recording
from secure_kg.federation.messages import SharedRows
from secure_kg.federation.recording import seal_record
from secure_kg.federation.run_folder import read_json, write_json

_LIE_IN: Final = 3


def _lied(path: Path) -> Stage:
    stage = Stage(path, config_of_tables())
    stage.perform(SameLie(_LIE_IN))
    return stage


def _played(stage: Stage) -> Played:
    return Played(stage, poisoned(stage.last) > 0, {"clients_poisoned": poisoned(stage.last)})


def _rewrite(stage: Stage) -> set[str]:
    """The poisoned rows are replaced by the means of the round before, in a transcript with a fresh chain.

    Returns the hashes of what was taken out.
    """
    transcript = next(stage.run.glob("transcript-*.bin"))
    session = Recording(transcript).session
    if session is None:
        raise RuntimeError("a transcript without a session")
    frames, removed = list(read_transcript(transcript)), set[str]()
    honest = None
    for record in frames:  # the last true table before the lie
        message = _message(record.frame, session)
        if isinstance(message, SharedRows) and not (message.rows == POISON).all():
            honest = message
        elif isinstance(message, SharedRows):
            break
    transcript.unlink()
    tap = Tap(transcript)
    for record in frames:
        message, frame = _message(record.frame, session), record.frame
        if isinstance(message, SharedRows) and (message.rows == POISON).all() and honest is not None:
            removed.add(frame_hash(frame))
            frame = bytes(wire.encode(SharedRows(honest.rows, message.averaged), session, record.round))
        tap.write(record.direction, record.peer, record.round, record.phase, frame)
    seal = tap.seal()
    summary = stage.run / "summary.json"
    if summary.exists():
        write_json(summary, {**read_json(summary), "transcript": seal_record(tap, seal)})
    return removed


def _message(frame: bytes, session: SessionId) -> wire.Message | None:
    try:
        return wire.decode(frame, session=session).message
    except wire.DecodeError:
        return None  # a greeting


def edited_transcript(path: Path) -> Played:
    stage = _lied(path)
    _rewrite(stage)
    return _played(stage)


def cut_receipts(path: Path) -> Played:
    """Besides, every receipt ends before the frames that were replaced, as if the client had ended there."""
    stage = _lied(path)
    removed = _rewrite(stage)
    for receipt in stage.run.glob("clients/*/receipt-*.json"):
        kept = read_json(receipt)
        received = [str(one) for one in kept["received"]]
        cut = next((index for index, one in enumerate(received) if one in removed), len(received))
        sent = [str(one) for one in kept["sent"]][:cut]
        write_json(receipt, {**kept, "received": received[:cut], "sent": sent, "final": False})
    return _played(stage)


def without_end(path: Path) -> Played:
    """The transcript ends before the poisoned rows were sent, as if the job had been ended by force."""
    stage = _lied(path)
    transcript = next(stage.run.glob("transcript-*.bin"))
    session = Recording(transcript).session
    content = transcript.read_bytes()
    for record in read_transcript(transcript):
        message = _message(record.frame, session) if session is not None else None
        if isinstance(message, SharedRows) and (message.rows == POISON).all():
            cut = content.index(record.frame)
            head = len(record.phase.encode()) + 27
            transcript.write_bytes(content[: cut - head])
            break
    return _played(stage)


PLAYS: Final[dict[str, Callable[[Path], Played]]] = {
    "edited-transcript": edited_transcript,
    "cut-receipts": cut_receipts,
    "transcript-without-end": without_end,
}
