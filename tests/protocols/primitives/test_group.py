"""The rings obey the laws of their group, and nothing else is taken for a vector of theirs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.primitives.group import Ring, RingVector

RINGS = [Ring(32), Ring(64)]


@st.composite
def ring_and_vectors(draw: st.DrawFn, count: int) -> tuple[Ring, list[list[int]]]:
    ring = draw(st.sampled_from(RINGS))
    length = draw(st.integers(0, 8))
    entry = st.integers(0, 2**ring.bits - 1) | st.sampled_from([0, 1, 2**ring.bits - 1, 2 ** (ring.bits - 1)])
    return ring, [draw(st.lists(entry, min_size=length, max_size=length)) for _ in range(count)]


def vector(ring: Ring, entries: list[int]) -> RingVector:
    return np.array(entries, dtype=ring.dtype)


def plus(ring: Ring, left: RingVector, right: RingVector) -> RingVector:
    total = left.copy()
    ring.add_into(total, right)
    return total


def minus(ring: Ring, left: RingVector, right: RingVector) -> RingVector:
    total = left.copy()
    ring.subtract_into(total, right)
    return total


@given(ring_and_vectors(2))
@settings(deadline=None)
def test_is_arithmetic_modulo_a_power_of_two(drawn: tuple[Ring, list[list[int]]]) -> None:
    ring, (left, right) = drawn
    modulus = 2**ring.bits
    pairs = list(zip(left, right, strict=True))
    assert plus(ring, vector(ring, left), vector(ring, right)).tolist() == [(a + b) % modulus for a, b in pairs]
    assert minus(ring, vector(ring, left), vector(ring, right)).tolist() == [(a - b) % modulus for a, b in pairs]


@given(ring_and_vectors(3))
@settings(deadline=None)
def test_group_laws(drawn: tuple[Ring, list[list[int]]]) -> None:
    ring, entries = drawn
    a, b, c = (vector(ring, values) for values in entries)
    zero = ring.zeros(len(a))
    assert np.array_equal(plus(ring, plus(ring, a, b), c), plus(ring, a, plus(ring, b, c)))
    assert np.array_equal(plus(ring, a, b), plus(ring, b, a))
    assert np.array_equal(plus(ring, a, zero), a)
    assert np.array_equal(plus(ring, a, minus(ring, zero, a)), zero)
    assert np.array_equal(minus(ring, plus(ring, a, b), b), a)
    assert plus(ring, a, b).dtype == ring.dtype


@given(ring_and_vectors(4))
@settings(deadline=None)
def test_masks_that_are_added_once_and_subtracted_once_cancel(drawn: tuple[Ring, list[list[int]]]) -> None:
    ring, entries = drawn
    first, second, mask, other = (vector(ring, values) for values in entries)
    masked = plus(ring, plus(ring, first, mask), other)
    opposite = minus(ring, minus(ring, second, mask), other)
    assert np.array_equal(plus(ring, masked, opposite), plus(ring, first, second))


@pytest.mark.parametrize("bits", [0, 8, 16, 31, 33, 128, -32])
def test_other_widths_are_refused(bits: int) -> None:
    with pytest.raises(ValueError, match="not available"):
        Ring(bits)  # type: ignore[arg-type]


@pytest.mark.parametrize("ring", RINGS)
def test_only_vectors_of_the_ring_pass(ring: Ring) -> None:
    ring.require(ring.zeros(3), 3)
    other = Ring(64 if ring.bits == 32 else 32)
    wrong = [
        ring.zeros(2),
        ring.zeros(3).reshape(1, 3),
        ring.zeros(1).reshape(()),
        other.zeros(3),
        np.zeros(3, dtype=f"<i{ring.element_bytes}"),
        np.zeros(3, dtype=f"<f{ring.element_bytes}"),
        np.zeros(3, dtype=f">u{ring.element_bytes}"),
    ]
    for candidate in wrong:
        with pytest.raises(ValueError, match="is not a vector"):
            ring.require(candidate, 3)


@pytest.mark.parametrize("ring", RINGS)
def test_elements_are_little_endian_and_as_wide_as_the_ring(ring: Ring) -> None:
    assert np.array([1], dtype=ring.dtype).tobytes() == (1).to_bytes(ring.element_bytes, "little")
    assert 8 * ring.element_bytes == ring.bits
