"""Packets: several short frames to one peer that travel as one message, where every message has a price.

A packet, little endian::

    marker u8, version u8, number of frames u16, bytes of each frame u32 each, the frames one after the other

No frame of the wire begins with the marker, which stands where frames have their version. Of other frames one that
does travels as a packet of its own, so that nothing is taken for what it is not. A frame in a packet is handed on as it
is: if it has the form of a packet again it is no message, and refused as such.

Bounded: a packet has at most `MOST_FRAMES` frames and, with its head, `MOST_BYTES` bytes; one of another size than its
head tells, and one that is empty or has empty frames, is refused (`DecodeError`).
"""

import struct
from collections.abc import Sequence
from typing import Final

from protocols.foundation.errors import DecodeError
from protocols.foundation.wire import Frame

MARKER: Final = 0xB7
_VERSION: Final = 1
_HEAD: Final = struct.Struct("<BBH")
_LENGTH_BYTES: Final = 4
MOST_FRAMES: Final = 16
FRAME_BYTES: Final = 1 << 16
"""Of all frames together."""
MOST_BYTES: Final = FRAME_BYTES + _HEAD.size + _LENGTH_BYTES * MOST_FRAMES


def is_packet(message: Frame) -> bool:
    """Whether it begins like one."""
    return len(message) > 0 and message[0] == MARKER


def join(frames: Sequence[Frame]) -> Frame:
    """One message of these frames."""
    lengths = [len(frame) for frame in frames]
    if not 1 <= len(frames) <= MOST_FRAMES or not all(lengths) or sum(lengths) > FRAME_BYTES:
        raise ValueError(f"no packet of {len(frames)} frames with {sum(lengths)} bytes")
    head = _HEAD.pack(MARKER, _VERSION, len(frames)) + struct.pack(f"<{len(frames)}I", *lengths)
    return b"".join([head, *frames])


def split(message: Frame) -> list[Frame]:
    """The frames of a packet; `DecodeError` for what `join` cannot have made."""
    if not _HEAD.size <= len(message) <= MOST_BYTES:
        raise DecodeError(f"a packet of {len(message)} bytes")
    marker, version, count = _HEAD.unpack_from(message)
    if marker != MARKER or version != _VERSION:
        raise DecodeError("not a packet of a known version")
    start = _HEAD.size + _LENGTH_BYTES * count
    if not 1 <= count <= MOST_FRAMES or len(message) < start:
        raise DecodeError(f"a packet of {count} frames")
    lengths = struct.unpack_from(f"<{count}I", message, _HEAD.size)
    if not all(lengths) or start + sum(lengths) != len(message):
        raise DecodeError("a packet whose frames do not fill it")
    frames, view = list[Frame](), memoryview(message)
    for length in lengths:
        frames.append(bytearray(view[start : start + length]))
        start += length
    return frames
