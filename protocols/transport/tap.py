"""A record of every frame that passed one end of the wire, written as it happens.

The file starts with `MAGIC` (its last byte is the format version). Each record is a little-endian head, the phase name
and the frame as it travelled, so the file holds what this party saw and nothing it did not::

    time in ns since the epoch (u64), direction (u8: 0 received, 1 sent), peer (u32), round (u32),
    length of the phase name (u16), length of the frame (u64)

`read_transcript` is the reader. A record cut short by a crash is reported, not guessed.
"""

import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from protocols.errors import DecodeError
from protocols.identifiers import PartyId, RoundId
from protocols.transport.traffic import Direction
from protocols.wire import MAX_FRAME_BYTES, Frame

MAGIC: Final = b"skg-transcript\x00\x01"
_HEAD: Final = struct.Struct("<QBIIHQ")
_DIRECTIONS: Final[tuple[Direction, Direction]] = ("received", "sent")


@dataclass(frozen=True, slots=True)
class TranscriptRecord:
    time_ns: int
    direction: Direction
    peer: PartyId
    round: RoundId
    phase: str
    frame: bytes = field(repr=False)


class Tap:
    """Appends records to a file that must not exist yet."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb")
        self._file.write(MAGIC)

    def write(self, direction: Direction, peer: PartyId, round_id: RoundId, phase: str, frame: Frame) -> None:
        name = phase.encode()
        self._file.write(
            _HEAD.pack(time.time_ns(), _DIRECTIONS.index(direction), peer, round_id, len(name), len(frame))
        )
        self._file.write(name)
        self._file.write(frame)
        self._file.flush()  # a job that is ended by force must not take the last records with it

    def close(self) -> None:
        self._file.close()


def read_transcript(path: Path) -> Iterator[TranscriptRecord]:
    """The records in order. `DecodeError` if the file is not a transcript, is cut short or malformed."""
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise DecodeError(f"{path.name} is not a transcript of a known version")
        while head := file.read(_HEAD.size):
            if len(head) < _HEAD.size:
                raise DecodeError(f"{path.name} is cut short")
            time_ns, direction, peer, round_id, name_length, frame_length = _HEAD.unpack(head)
            if direction >= len(_DIRECTIONS) or frame_length > MAX_FRAME_BYTES:
                raise DecodeError(f"{path.name} has a malformed record")
            name, frame = file.read(name_length), file.read(frame_length)
            if len(name) < name_length or len(frame) < frame_length:
                raise DecodeError(f"{path.name} is cut short")
            try:
                phase = name.decode()
            except UnicodeDecodeError:
                raise DecodeError(f"{path.name} has a malformed record") from None
            yield TranscriptRecord(time_ns, _DIRECTIONS[direction], PartyId(peer), RoundId(round_id), phase, frame)
