"""Numbers of a few bits each as one stream of bits: no bit of a vector travels that carries nothing.

Entry i takes bits i w to (i + 1) w - 1 of the stream, w being the width, the lowest bit first; bit j of the stream is
bit j mod 8 of byte j // 8. The bits behind the last entry are zero, and a stream in which they are not is refused:
there is one stream for each vector.

64 entries fill exactly w words of 64 bits. So a group of 64 entries is packed by 64 shifts, each of which lands in one
word or in two, and numpy makes each of them for many groups at once.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

Stream = npt.NDArray[np.uint8]
_GROUP: Final = 64
"""Entries."""
_GROUPS: Final = 128
"""Groups at a time, so that they stay in the cache."""


def packed_bytes(entries: int, width: int) -> int:
    """The length of a stream."""
    return -(-entries * width // 8)


def entries_in(length: int, width: int) -> int:
    """How many entries a stream of this length has: less than a byte is left over, so it is one number only."""
    return 8 * length // width


def pack(words: npt.NDArray[Any], width: int) -> Stream:
    """Entries below 2^width as a stream, width < 64. The bits of a larger one would run into its neighbours'."""
    stream = np.empty(packed_bytes(len(words), width), dtype=np.uint8)
    shape, step = (_GROUPS, _GROUP), _GROUPS * _GROUP
    for start in range(0, len(words), step):
        part = words[start : start + step]
        entries = np.zeros(shape, dtype="<u8")
        entries.reshape(-1)[: len(part)] = part
        packed, shifted = np.zeros((width, _GROUPS), dtype="<u8"), np.empty(_GROUPS, dtype="<u8")
        for place, column in enumerate(np.ascontiguousarray(entries.T)):
            word, offset = divmod(place * width, 64)
            np.left_shift(column, np.uint64(offset), out=shifted)
            packed[word] |= shifted
            if offset + width > 64:
                np.right_shift(column, np.uint64(64 - offset), out=shifted)
                packed[word + 1] |= shifted
        first, length = start * width // 8, packed_bytes(len(part), width)
        stream[first : first + length] = np.ascontiguousarray(packed.T).view(np.uint8).reshape(-1)[:length]
    return stream


def unpack(stream: Stream, entries: int, width: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The entries of a stream. `ValueError` if it is longer or shorter, or does not end in zero bits."""
    if stream.dtype != np.uint8 or stream.shape != (packed_bytes(entries, width),):
        raise ValueError(f"{stream.dtype}{stream.shape} is not a stream of {entries} entries of {width} bits")
    if (used := entries * width % 8) and int(stream[-1]) >> used:
        raise ValueError("a stream that does not end in zero bits")
    words, step, mask = np.empty(entries, dtype=dtype), _GROUPS * _GROUP, np.uint64((1 << width) - 1)
    for start in range(0, entries, step):
        first, count = start * width // 8, min(step, entries - start)
        room = np.zeros(_GROUPS * width * 8, dtype=np.uint8)
        taken = stream[first : first + len(room)]
        room[: len(taken)] = taken
        packed = np.ascontiguousarray(room.view("<u8").reshape(_GROUPS, width).T)
        columns, high = np.empty((_GROUP, _GROUPS), dtype="<u8"), np.empty(_GROUPS, dtype="<u8")
        for place, column in enumerate(columns):
            word, offset = divmod(place * width, 64)
            np.right_shift(packed[word], np.uint64(offset), out=column)
            if offset + width > 64:
                np.left_shift(packed[word + 1], np.uint64(64 - offset), out=high)
                column |= high
        columns &= mask
        words[start : start + count] = columns.T.reshape(-1)[:count]
    return words
