"""Words of 64 bits and fewer: keystreams as arrays, permutations from keystreams, and the order of bits in a tree."""

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.primitives.group import Ring
from protocols.primitives.prg import add_keystream

Words: TypeAlias = npt.NDArray[np.uint64]
AnyWords: TypeAlias = npt.NDArray[Any]
"""Unsigned words of 8, 16, 32 or 64 bits."""
RING: Final = Ring(64)
_SWAPS: Final = (
    (np.uint64(31), np.uint64(0x00000000AAAAAAAA)),
    (np.uint64(14), np.uint64(0x0000CCCC0000CCCC)),
    (np.uint64(4), np.uint64(0x00F000F000F000F0)),
)
"""Shifts and masks that swap bits 0 and 5, 1 and 4, 2 and 3 of the number of a bit."""


def keystream(key: bytes, count: int, dtype: npt.DTypeLike = np.uint64) -> AnyWords:
    """`count` pseudorandom words of a single-use key."""
    kind = np.dtype(dtype)
    words = RING.zeros(-(-count * kind.itemsize // 8))
    add_keystream(key, words, RING)
    return words.view(kind)[:count]


def permutation(key: bytes, length: int) -> npt.NDArray[np.int64]:
    """A permutation of 0..length-1, uniform for a uniform keystream.

    The order of distinct independent words is uniform exactly. If two are equal, which of 75,000 happens once in 2^32,
    the next words of the stream are taken.
    """
    blocks = 1
    while True:
        words = keystream(key, blocks * length)[(blocks - 1) * length :]
        order: npt.NDArray[np.int64] = np.argsort(words)
        ordered = words[order]
        if not (ordered[1:] == ordered[:-1]).any():
            return order
        blocks += 1


def in_tree_order(words: Words) -> Words:
    """Bit i of each word moves to where the six bits of i, read backwards, point.

    A pair of neighbouring bits then stands 32 apart, a pair of neighbouring pairs 16 apart, and so on: each level of a
    binary tree over the bits combines the upper half of a word with its lower half.
    """
    result = words.copy()
    for shift, mask in _SWAPS:
        moved = (result ^ (result >> shift)) & mask
        result ^= moved ^ (moved << shift)
    return result
