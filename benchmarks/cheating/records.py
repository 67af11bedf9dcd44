"""Servers that cheat and then show their auditor another record: edited, cut, or with receipts cut to fit."""

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Final

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.sessions import LiesAndDies, poisoned
from benchmarks.cheating.stage import Stage, stage_config
from benchmarks.cheating.tables import POISON, SameLie, config_of_tables
from protocols.foundation import wire
from protocols.foundation.errors import DecodeError
from protocols.foundation.identifiers import SessionId
from protocols.transport.tap import LINK_BYTES, MAGIC, Tap, TranscriptRecord, frame_hash, read_transcript
from protocols.transport.traffic import Direction
from secure_kg.audit.view.read import Recording
from secure_kg.federation.plan.messages import SharedRows
from secure_kg.runs.recording import seal_record
from secure_kg.runs.run_folder import read_json, write_json

_LIE_IN: Final = 3
HEAD_BYTES: Final = 27
"""Of a record in a transcript (`protocols.transport.tap`)."""


def _lied(path: Path) -> tuple[Stage, SameLie]:
    stage, cheat = Stage(path, config_of_tables()), SameLie(_LIE_IN)
    stage.perform(cheat)
    return stage, cheat


def _played(stage: Stage) -> Played:
    return Played(stage, poisoned(stage.last) > 0, {"clients_poisoned": poisoned(stage.last)})


def _rewrite(stage: Stage, cheat: SameLie) -> set[str]:
    """The true means in place of the poisoned ones, in a transcript with a fresh chain and a summary that fits it.

    Returns the hashes of what was taken out.
    """
    transcript = next(stage.run.glob("transcript-*.bin"))
    session = Recording(transcript).session
    if session is None:
        raise RuntimeError("a transcript without a session")
    records, removed = list(read_transcript(transcript)), set[str]()
    transcript.unlink()
    tap = Tap(transcript)
    for record in records:
        frame = record.frame
        if _is_lie(frame, session) and cheat.true is not None:
            removed.add(frame_hash(frame))
            frame = bytes(wire.encode(cheat.true, session, record.round))
        tap.write(record.direction, record.peer, record.round, record.phase, frame)
    seal = tap.seal()
    summary = stage.run / "summary.json"
    if summary.exists():
        write_json(summary, {**read_json(summary), "transcript": seal_record(tap, seal).to_json()})
    return removed


def _is_lie(frame: bytes, session: SessionId) -> bool:
    try:
        message = wire.decode(frame, session=session).message
    except DecodeError:
        return False  # a greeting
    return isinstance(message, SharedRows) and bool((message.rows == POISON).any())


def edited_transcript(path: Path) -> Played:
    stage, cheat = _lied(path)
    _rewrite(stage, cheat)
    return _played(stage)


def cut_receipts(path: Path) -> Played:
    """Besides, every receipt ends before the frames that were replaced, as if its client had ended there."""
    stage, cheat = _lied(path)
    removed = _rewrite(stage, cheat)
    for receipt in stage.run.glob("clients/*/receipt-*.json*"):
        if receipt.suffix == ".jsonl":
            lines = receipt.read_text(encoding="utf-8").splitlines(keepends=True)
            whole = itertools.takewhile(lambda line: not any(one in line for one in removed), lines)
            receipt.write_text("".join(whole), encoding="utf-8")
            continue
        kept = read_json(receipt)
        received = list(itertools.takewhile(lambda one: one not in removed, map(str, kept["received"])))
        sent = [str(one) for one in kept["sent"]][: len(received)]
        write_json(receipt, {**kept, "received": received, "sent": sent, "final": False})
    return _played(stage)


def cut_and_resumed(path: Path) -> Played:
    """The record ends before the lie everywhere, as if all had been killed there, and the job goes on honestly."""
    stage = Stage(path, stage_config(eval_every=4))
    first = stage.perform(LiesAndDies(_LIE_IN))
    passed = Counter((int(record.peer), record.direction) for record in _cut_before_lie(stage))
    for receipt in stage.run.glob("clients/*/receipt-*.jsonl"):
        _cut_receipt(receipt, passed)
    second = stage.perform(Cheat())
    took = poisoned(first)
    return Played(stage, took > 0, {"clients_poisoned": took, "run_went_on": second.outcome is not None})


def _cut_receipt(receipt: Path, passed: Counter[tuple[int, Direction]]) -> None:
    """Marks stay whose frames are all in the transcript. `passed`: by client and direction, as the server sees it."""
    number, (head, *marks) = int(receipt.parent.name), receipt.read_bytes().splitlines(keepends=True)
    kept, sent, received = [head], 0, 0
    for mark in marks:
        content = json.loads(mark)
        sent, received = sent + len(content["sent"]), received + len(content["received"])
        if sent > passed[number, "received"] or received > passed[number, "sent"]:
            break
        kept.append(mark)
    receipt.write_bytes(b"".join(kept))


def _cut_before_lie(stage: Stage) -> list[TranscriptRecord]:
    """The transcript without its end; what is left of it."""
    transcript = next(stage.run.glob("transcript-*.bin"))
    session = Recording(transcript).session
    records = [] if session is None else list(read_transcript(transcript))
    honest = list(itertools.takewhile(lambda record: session is None or not _is_lie(record.frame, session), records))
    kept = sum(HEAD_BYTES + len(record.phase.encode()) + len(record.frame) + LINK_BYTES for record in honest)
    transcript.write_bytes(transcript.read_bytes()[: len(MAGIC) + kept])
    return honest


def without_end(path: Path) -> Played:
    """The transcript ends before the poisoned rows were sent, as if the job had been ended by force."""
    stage, _ = _lied(path)
    _cut_before_lie(stage)
    return _played(stage)
