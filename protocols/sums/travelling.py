"""Vectors of a sum of numbers as they travel, and back: for whoever reads messages and takes no part in the sum."""

from collections.abc import Collection
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protocols.primitives.group import NARROWEST, WIDEST, GroupVector, Ring
from protocols.primitives.packing import Stream, pack, packed_bytes, unpack
from protocols.sums.interface import MeanGrid, SumLayout

RING_BITS: Final = (NARROWEST, WIDEST)
"""The narrowest and the widest ring."""


def is_packed(ring_bits: int) -> bool:
    """Whether vectors of a ring travel as a stream of bits."""
    return Ring(ring_bits).packed


def travelled(vector: npt.NDArray[Any], ring_bits: int) -> GroupVector:
    """All elements of a vector that has travelled. `ValueError` if it is no vector of this ring."""
    ring = Ring(ring_bits)
    return ring.from_wire(vector, ring.length_on_wire(vector))


def added_in_clear(inputs: Collection[npt.NDArray[Any]], layout: SumLayout | None) -> npt.NDArray[Any]:
    """Vectors that have travelled in clear, added up in the ring of their sum, or where that is unknown as words.
    `ValueError` if one is no vector of that sum."""
    if layout is None:
        words: npt.NDArray[Any] = sum(inputs, np.zeros_like(next(iter(inputs))))
        return words
    total: npt.NDArray[Any] = layout.group.zeros(layout.entries)
    for vector in inputs:
        layout.group.add_into(total, layout.group.from_wire(vector, layout.entries))
    return total


def pack_means(rows: npt.NDArray[np.float32], grid: MeanGrid) -> Stream:
    """Means on a grid as a stream of its bits: how many units each is, counted from the least that there can be."""
    scaled = rows.reshape(-1).astype(np.float64) * (1 << grid.fraction_bits)
    return pack(scaled.astype(np.int64) + (1 << (grid.bits - 1)), grid.bits)


def unpack_means(stream: Stream, entries: int, grid: MeanGrid) -> npt.NDArray[np.float32]:
    """The same means again, flat, to the last bit. `ValueError` for a stream of another length, or with bits left."""
    units = unpack(stream, entries, grid.bits, np.dtype("<u4")).astype(np.int64) - (1 << (grid.bits - 1))
    means: npt.NDArray[np.float32] = (units / (1 << grid.fraction_bits)).astype(np.float32)
    return means


def mean_bytes(entries: int, grid: MeanGrid) -> int:
    """The length of such a stream."""
    return packed_bytes(entries, grid.bits)
