"""A server that sends a client more than any message of the run can have."""

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.cheating.entry import Played
from benchmarks.cheating.meddling import Cheat
from benchmarks.cheating.stage import VICTIM, Stage, stage_config, thread_name
from benchmarks.cheating.unions import substituted
from protocols.foundation import wire
from protocols.foundation.errors import DecodeError
from protocols.foundation.identifiers import PartyId
from secure_kg.federation.plan.messages import SharedRows

HUGE: Final = 64 * 1024 * 1024
"""Bytes. The true message has two thousand; the limit of its kind, for the largest of runs, is a gigabyte."""


class HugeFrame(Cheat):
    """The victim's rows come with as many more as no union of the run could have."""

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        if to == VICTIM and isinstance(message, SharedRows):
            width = message.rows.shape[1]
            rows = HUGE // (4 * width)
            return (SharedRows(np.zeros((rows, width), dtype=np.float32), np.zeros(rows, dtype=np.uint32)),)
        return (message,)


def huge_frame(path: Path) -> Played:
    """Its success: that the victim unpacks the message before it refuses it."""
    stage, unpacked = Stage(path, stage_config(rounds=2)), list[int]()
    honest = wire.decode

    def watched(frame: wire.Frame, **more: Any) -> wire.Envelope:
        mine = threading.current_thread().name == thread_name(VICTIM) and len(frame) >= HUGE
        try:
            envelope = honest(frame, **more)
        except DecodeError as problem:
            if mine and "exceeds the limit" not in str(problem):
                unpacked.append(len(frame))
            raise
        if mine:
            unpacked.append(len(frame))
        return envelope

    with substituted(wire, "decode", watched):
        stage.perform(HugeFrame())
    return Played(stage, bool(unpacked), {"frame_bytes": HUGE, "unpacked_bytes": max(unpacked, default=0)})
