"""What the server of a run has seen, message by message."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from protocols.foundation import wire
from protocols.foundation.identifiers import SessionId
from protocols.transport.tap import read_transcript


@dataclass(frozen=True)
class Seen:
    direction: str
    peer: int
    round: int
    phase: str
    message: wire.Message
    frame: bytes


def seen_by_server(run: Path) -> list[Seen]:
    """Everything in all transcripts of a run, in order."""
    paths = sorted(run.glob("transcript-*.bin"), key=lambda path: path.stat().st_mtime_ns)
    return [seen for path in paths for seen in _read(path)]


def _read(path: Path) -> Iterator[Seen]:
    for record in read_transcript(path):
        session = SessionId(bytes(record.frame[8:24]))
        message = wire.decode(record.frame, session=session).message
        yield Seen(record.direction, record.peer, record.round, record.phase, message, bytes(record.frame))


def vectors_in(message: wire.Message) -> list[npt.NDArray[Any]]:
    """The arrays among a message's fields."""
    values = (getattr(message, name) for name in message.__struct_fields__)
    return [value for value in values if isinstance(value, np.ndarray)]
