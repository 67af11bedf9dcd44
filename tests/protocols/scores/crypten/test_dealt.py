"""Tuples of the dealer: what ranks draw and what it sends belong together, and it answers requests only."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.foundation.errors import PeerMisbehaved
from protocols.primitives.prg import Keystream
from protocols.scores.crypten.dealt import AXES, LARGEST, Deal, Kind, Shape, Words, read_request, request, wraps_of

SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)
RANKS = st.integers(2, 5)


def keys_of(ranks: int) -> list[bytes]:
    return [bytes([rank + 1]) * 32 for rank in range(ranks)]


def drawn(stream: Keystream, shape: Shape) -> Words:
    return stream.words(int(np.prod(shape, dtype=np.int64))).reshape(shape)


def shares_of(ranks: int, kind: Kind, *shapes: Shape) -> list[list[Words]]:
    """What each rank has of a tuple: its draws, then its share of what depends on them."""
    first, second = (*shapes, ())[:2]
    dealt = Deal(keys_of(ranks)).answer(kind, first, second)
    outcome = np.broadcast_shapes(*shapes)
    tuples = []
    for rank, key in enumerate(keys_of(ranks)):
        stream = Keystream(key)
        draws = [drawn(stream, shape) for shape in shapes]
        tuples.append([*draws, dealt if rank == 0 else drawn(stream, outcome)])
    return tuples


def total(shares: Sequence[Words]) -> Words:
    return np.sum(np.stack(shares), axis=0, dtype=np.uint64)


def xor(shares: Sequence[Words]) -> Words:
    return np.bitwise_xor.reduce(np.stack(shares), axis=0)


@pytest.mark.filterwarnings("ignore:overflow encountered in scalar")
@given(RANKS, SHAPES)
def test_products_squares_and_conjunctions(ranks: int, shape: Shape) -> None:
    a, b, c = (total(shares) for shares in zip(*shares_of(ranks, Kind.PRODUCT, shape, shape), strict=True))
    assert np.array_equal(c, a * b)
    a, c = (total(shares) for shares in zip(*shares_of(ranks, Kind.SQUARE, shape), strict=True))
    assert np.array_equal(c, a * a)
    a, b, c = (xor(shares) for shares in zip(*shares_of(ranks, Kind.AND, shape, shape), strict=True))
    assert np.array_equal(c, a & b)


def test_shapes_are_broadcast() -> None:
    a, b, c = (total(shares) for shares in zip(*shares_of(3, Kind.PRODUCT, (2, 1, 3), (4, 1)), strict=True))
    assert c.shape == (2, 4, 3)
    assert np.array_equal(c, a * b)


@given(RANKS, st.integers(0, 20))
def test_bits_and_wraps(ranks: int, count: int) -> None:
    bits, sums = zip(*shares_of(ranks, Kind.BIT, (count,)), strict=True)
    assert np.array_equal(total(sums), xor(bits) & np.uint64(1))
    parts, wraps = zip(*shares_of(ranks, Kind.WRAPS, (count,)), strict=True)
    whole = sum(part.view(np.int64).astype(object) for part in parts)
    left = total(parts).view(np.int64).astype(object)
    assert ((whole - left) == total(wraps).view(np.int64).astype(object) * 2**64).all()


def test_wraps_in_both_directions() -> None:
    top = np.array([2**62, -(2**62) - 1, 5], dtype=np.int64).view(np.uint64)
    assert wraps_of([top, top]).view(np.int64).tolist() == [1, -1, 0]


@given(st.sampled_from(list(Kind)), SHAPES)
def test_a_request_is_read_as_it_was_made(kind: Kind, shape: Shape) -> None:
    assert read_request(request(kind, shape, shape)) == (kind, shape, shape)


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [9, *request(Kind.AND)[1:]],
        [-1, *request(Kind.AND)[1:]],
        request(Kind.AND, (3,), (3,))[:-1],
        [*request(Kind.AND, (3,)), 0],
        [3, AXES + 1, *[1] * AXES, 0, *[0] * AXES],
        [3, -1, *[0] * AXES, 0, *[0] * AXES],
        [3, 1, 2, 1, *[0] * (AXES - 2), 0, *[0] * AXES],
        request(Kind.AND, (-1,), (3,)),
        request(Kind.AND, (LARGEST, 2), (1,)),
        request(Kind.AND, (1 << 62, 1 << 62), (1,)),
        request(Kind.PRODUCT, (3,), (4,)),
    ],
)
def test_what_is_no_request_is_refused(entries: list[int]) -> None:
    with pytest.raises(PeerMisbehaved, match="that is none"):
        read_request(entries)


def test_a_tensor_of_too_many_axes_is_not_asked_for() -> None:
    with pytest.raises(ValueError, match="axes"):
        request(Kind.AND, (1,) * (AXES + 1))


def test_the_end_is_no_request_for_randomness() -> None:
    with pytest.raises(ValueError, match="the end"):
        Deal(keys_of(2)).answer(Kind.END, (), ())
