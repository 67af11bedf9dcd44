"""A record of every frame that passed one end of the wire, written as it happens, and chained by hashes.

The file starts with `MAGIC` (its last byte is the format version). Each record is a little-endian head, the phase name,
the frame as it travelled, so the file holds what this party saw and nothing it did not, and a link::

    time in ns since the epoch (u64), direction (u8: 0 received, 1 sent, 2 end), peer (u32), round (u32),
    length of the phase name (u16), length of the frame (u64)
    the phase name, the frame
    link (32 bytes): SHA-256 of the link before it, the head, the phase name and the frame; before the first: of MAGIC

A tap that is closed writes one more record, `end`, without phase and frame. So a record that was changed, left out, put
elsewhere or added is noticed at its link, and a file cut at the end of a record lacks its `end`, as does that of a job
that was ended by force. The chain stands against accidents, and against changes by anybody but the writer of the file,
provided that its last link (`Seal`) is kept elsewhere. Against the writer there are receipts, which the other ends of
the wire keep (`protocols.session.receipts`).

`Transcript` is the reader. What is cut short or damaged is reported where it is met, not guessed. A last record that is
cut short (`CutShort`) is also what a writer leaves that was ended by force.
"""

import hashlib
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from protocols.foundation.errors import DecodeError
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.foundation.wire import MAX_FRAME_BYTES, Frame
from protocols.transport.traffic import Direction

VERSION: Final = 2
MAGIC: Final = b"skg-transcript\x00" + bytes([VERSION])
LINK_BYTES: Final = 32
_HEAD: Final = struct.Struct("<QBIIHQ")
_DIRECTIONS: Final[tuple[Direction, Direction]] = ("received", "sent")
_END: Final = 2


class CutShort(DecodeError):
    """The file ends in the middle of a record."""


class Recorder(Protocol):
    """What a transport tells of the frames that pass it."""

    def write(self, direction: Direction, peer: PartyId, round_id: RoundId, phase: str, frame: Frame) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class TranscriptRecord:
    time_ns: int
    direction: Direction
    peer: PartyId
    round: RoundId
    phase: str
    frame: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Seal:
    """How many frames a transcript holds, and its last link: whoever has kept it notices any other transcript."""

    records: int
    link: bytes


class Tap:
    """Appends records to a file that must not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("xb")
        self._file.write(MAGIC)
        self._file.flush()
        self._link = hashlib.sha256(MAGIC).digest()
        self._records = 0

    def write(self, direction: Direction, peer: PartyId, round_id: RoundId, phase: str, frame: Frame) -> None:
        self._append(_DIRECTIONS.index(direction), peer, round_id, phase, frame)
        self._records += 1

    def close(self) -> None:
        """Idempotent. A file that cannot take its end has none, as that of a job that was ended by force."""
        with suppress(OSError):
            self.seal()

    def seal(self) -> Seal:
        """Write the end of the transcript. What passes afterwards is not recorded."""
        if not self._file.closed:
            self._append(_END, 0, 0, "", b"")
            self._file.close()
        return Seal(self._records, self._link)

    def _append(self, direction: int, peer: int, round_id: int, phase: str, frame: Frame) -> None:
        if self._file.closed:
            return
        name = phase.encode()
        head = _HEAD.pack(time.time_ns(), direction, peer, round_id, len(name), len(frame))
        self._link = _next_link(self._link, head, name, frame)
        try:
            for part in (head, name, frame, self._link):
                self._file.write(part)
            self._file.flush()  # a job that is ended by force must not take the last records with it
        except OSError:
            with suppress(OSError):
                self._file.close()  # half a record may stand at the end, and another one behind it would be damage
            raise


class Transcript:
    """The records of a file, in order. `DecodeError` at the first damage; what came before it is sound."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seal: Seal | None = None
        """After the last record; None as long as the file has no end."""

    def __iter__(self) -> Iterator[TranscriptRecord]:
        self.seal = None
        records, name = 0, self.path.name
        with self.path.open("rb") as file:
            if (magic := file.read(len(MAGIC))) != MAGIC:
                if MAGIC.startswith(magic):
                    raise CutShort(f"{name} ends before its first record")
                raise DecodeError(f"{name} is not a transcript of a known version")
            link = hashlib.sha256(MAGIC).digest()
            while head := file.read(_HEAD.size):
                where = f"{name}, record {records + 1}"
                if self.seal is not None:
                    raise DecodeError(f"{name} goes on after its end")
                if len(head) < _HEAD.size:
                    raise CutShort(f"{where}: cut short")
                time_ns, direction, peer, round_id, name_length, frame_length = _HEAD.unpack(head)
                if direction > _END or frame_length > MAX_FRAME_BYTES:
                    raise DecodeError(f"{where}: malformed")
                phase, frame, sent_link = file.read(name_length), file.read(frame_length), file.read(LINK_BYTES)
                if len(sent_link) < LINK_BYTES:
                    raise CutShort(f"{where}: cut short")
                link = _next_link(link, head, phase, frame)
                if sent_link != link:
                    raise DecodeError(f"{where}: not what was recorded, or not in its place")
                if direction == _END:
                    self.seal = Seal(records, link)
                    continue
                records += 1
                try:
                    phase_name = phase.decode()
                except UnicodeDecodeError:
                    raise DecodeError(f"{where}: malformed") from None
                yield TranscriptRecord(
                    time_ns, _DIRECTIONS[direction], PartyId(peer), RoundId(round_id), phase_name, frame
                )


def read_transcript(path: Path) -> Iterator[TranscriptRecord]:
    """The records in order. `DecodeError` if the file is not a transcript, is cut short or malformed."""
    return iter(Transcript(path))


def frame_hash(frame: Frame) -> str:
    """128 bits of SHA-256: a second frame with the hash of a given one is out of reach."""
    return hashlib.sha256(frame).hexdigest()[:32]


def _next_link(link: bytes, head: bytes, phase: bytes, frame: Frame) -> bytes:
    state = hashlib.sha256(link)
    for part in (head, phase, frame):
        state.update(part)
    return state.digest()
