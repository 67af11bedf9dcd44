"""Correlated randomness from a dealer: what ranks ask for, and what the dealer answers.

Every rank shares a keystream with the dealer. All shares of a tuple come from these streams, except one: the first
rank's share of what depends on the rest, which the dealer computes and sends. A request is a tensor of whole numbers,
never a pickled object as in CrypTen; the dealer checks it before it computes anything.

    kind      streams, in this order               the dealer sends
    product   a, b; c of all ranks but the first   a b - (the other shares of c)
    square    a; c of all ranks but the first      a^2 - (the other shares of c)
    and       a, b; c of all ranks but the first   (a & b) ^ (the other shares of c)
    wraps     a; c of all ranks but the first      (how often the shares of a wrap) - (the other shares of c)
    bit       one bit; c of all but the first      (the bit, xor of all) - (the other shares of c)

This module needs numpy only.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.foundation.errors import PeerMisbehaved
from protocols.primitives.prg import Keystream

Words: TypeAlias = npt.NDArray[np.uint64]
Shape: TypeAlias = tuple[int, ...]

AXES: Final = 6
REQUEST_ENTRIES: Final = 1 + 2 * (1 + AXES)
LARGEST: Final = 1 << 28
"""Entries of the largest tensor that a request may name: 2 GiB."""


class Kind(IntEnum):
    """What a request is for."""

    END = 0
    PRODUCT = 1
    SQUARE = 2
    AND = 3
    WRAPS = 4
    BIT = 5


def request(kind: Kind, first: Sequence[int] = (), second: Sequence[int] = ()) -> list[int]:
    """A request as whole numbers: the kind, then of each shape its number of axes and their lengths."""
    entries = [int(kind)]
    for shape in (first, second):
        if len(shape) > AXES:
            raise ValueError(f"a tensor of {len(shape)} axes: the dealer knows {AXES}")
        entries += [len(shape), *map(int, shape), *[0] * (AXES - len(shape))]
    return entries


def read_request(entries: Sequence[int]) -> tuple[Kind, Shape, Shape]:
    """`PeerMisbehaved` for what is no request."""
    try:
        if len(entries) != REQUEST_ENTRIES:
            raise ValueError("not a request")
        kind = Kind(entries[0])
        shapes = [_shape(entries[start : start + 1 + AXES]) for start in (1, 2 + AXES)]
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise PeerMisbehaved("a request to the dealer that is none") from None
    return kind, shapes[0], shapes[1]


def _shape(entries: Sequence[int]) -> Shape:
    axes, lengths = entries[0], entries[1:]
    if not 0 <= axes <= AXES or len(lengths) != AXES or any(lengths[axes:]):
        raise ValueError("not a shape")
    size = 1
    for length in lengths[:axes]:
        if not 0 <= length <= LARGEST:
            raise ValueError("not a length")
        size *= length
    if size > LARGEST:
        raise ValueError("too large a tensor")
    return tuple(lengths[:axes])


class Deal:
    """The dealer's side of one group. `keys`: one for each rank, in their order."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self._streams = [Keystream(key) for key in keys]

    def answer(self, kind: Kind, first: Shape, second: Shape) -> Words:
        """The first rank's share of what depends on the others' draws."""
        with np.errstate(over="ignore"):  # numpy warns of single numbers that wrap, as all do here
            return self._answer(kind, first, second)

    def _answer(self, kind: Kind, first: Shape, second: Shape) -> Words:
        if kind is Kind.PRODUCT:
            a, b = self._sum(first), self._sum(second)
            return self._less_others(a * b)
        if kind is Kind.AND:
            x, y = self._xor(first), self._xor(second)
            both = x & y
            return both ^ self._xor(both.shape, self._streams[1:])
        if kind is Kind.SQUARE:
            a = self._sum(first)
            return self._less_others(a * a)
        if kind is Kind.WRAPS:
            return self._less_others(wraps_of([_draw(stream, first) for stream in self._streams]))
        if kind is Kind.BIT:
            return self._less_others(self._xor(first) & np.uint64(1))
        raise ValueError("the end is no request for randomness")

    def _sum(self, shape: Shape, streams: Sequence[Keystream] | None = None) -> Words:
        total: Words = np.zeros(shape, dtype=np.uint64)
        for stream in self._streams if streams is None else streams:
            total += _draw(stream, shape)
        return total

    def _xor(self, shape: Shape, streams: Sequence[Keystream] | None = None) -> Words:
        total: Words = np.zeros(shape, dtype=np.uint64)
        for stream in self._streams if streams is None else streams:
            total ^= _draw(stream, shape)
        return total

    def _less_others(self, secret: Words) -> Words:
        return secret - self._sum(secret.shape, self._streams[1:])


def wraps_of(shares: Sequence[Words]) -> Words:
    """How often a sum of signed shares leaves the ring: upwards +1, downwards -1."""
    wraps: npt.NDArray[np.int64] = np.zeros(shares[0].shape, dtype=np.int64)
    total: npt.NDArray[np.int64] = np.zeros(shares[0].shape, dtype=np.int64)
    for share in shares:
        signed = share.view(np.int64)
        new = total + signed
        wraps += ((total > 0) & (signed > 0) & (new < 0)).astype(np.int64)
        wraps -= ((total < 0) & (signed < 0) & (new >= 0)).astype(np.int64)
        total = new
    return wraps.view(np.uint64)


def _draw(stream: Keystream, shape: Shape) -> Words:
    return stream.words(int(np.prod(shape, dtype=np.int64))).reshape(shape)
