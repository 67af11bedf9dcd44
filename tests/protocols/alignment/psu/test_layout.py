"""The size of a table follows from the bound alone, and tags are spread over it evenly."""

import hashlib
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.alignment.psu.layout import MAX_THIRD, MIN_THIRD, TableLayout, _cube_root
from tests.support.set_unions import random_tags, unresolved

pytestmark = pytest.mark.long

# About a million tags for each size.
TRIALS = {1: 100_000, 2: 100_000, 5: 100_000, 12: 80_000, 46: 20_000, 237: 5_000, 1000: 1_000, 14_541: 100}


@given(st.integers(0, 1 << 22))
def test_a_larger_bound_never_has_a_smaller_table(bound: int) -> None:
    layout, larger = TableLayout.for_bound(bound), TableLayout.for_bound(bound + 1)
    assert MIN_THIRD <= layout.third <= larger.third
    assert layout.cells == 3 * layout.third >= 1.22 * bound
    assert layout.entries == 4 * layout.cells


def test_sizes_are_the_documented_ones() -> None:
    """All parties compute them, so they may not change by the way."""
    bounds = (0, 1, 45, 46, 237, 1000, 14_541, 1 << 20)
    assert [TableLayout.for_bound(bound).third for bound in bounds] == [128, 128, 128, 129, 386, 1008, 6202, 431965]


@given(st.integers(0, 1 << 60) | st.integers(1, 1 << 20).flatmap(lambda root: st.integers(root**3 - 1, root**3 + 1)))
def test_cube_roots_are_rounded_up_exactly(number: int) -> None:
    root = _cube_root(number)
    assert max(root - 1, -1) ** 3 < number <= root**3


def test_large_tables_have_little_more_cells_than_peeling_needs() -> None:
    assert TableLayout.for_bound(14_541).cells < 1.3 * 14_541
    assert TableLayout.for_bound(1 << 20).cells < 1.25 * (1 << 20)


@pytest.mark.parametrize("third", [-1, 0, MAX_THIRD + 1])
def test_sizes_out_of_range_are_refused(third: int) -> None:
    with pytest.raises(ValueError, match="a third of"):
        TableLayout(third)


def test_a_negative_bound_is_refused() -> None:
    with pytest.raises(ValueError, match="union of -1"):
        TableLayout.for_bound(-1)


@given(st.integers(1, 1000) | st.just(MAX_THIRD), st.binary(max_size=8), st.integers(0, 2**32))
def test_a_tag_has_one_cell_in_each_third(third: int, salt: bytes, seed: int) -> None:
    layout = TableLayout(third, salt)
    cells = layout.cells_of(*random_tags(20, seed).T)
    assert cells.shape == (3, 20)
    assert (cells // third == np.arange(3)[:, None]).all()
    assert np.array_equal(cells, layout.cells_of(*random_tags(20, seed).T))


def test_cells_are_the_documented_hash() -> None:
    """Computed with Python's integers: all parties must agree on it to the bit."""

    def constant(number: int) -> int:
        fields = [b"secure-kg/psu/table/1", struct.pack("<2Q", number, 1000), b"salt"]
        encoded = b"".join(struct.pack("<I", len(field)) + field for field in fields)
        return int.from_bytes(hashlib.sha256(encoded).digest()[:8], "little")

    def mix(word: int) -> int:
        word %= 2**64
        word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
        return word ^ word >> 31

    tags = [(1, 2), (2**61 - 2, 0), *((int(first), int(second)) for first, second in random_tags(100, 3))]
    expected = []
    for first, second in tags:
        word = mix(mix(first + constant(0)) + second + constant(1))
        expected.append([(mix(word + constant(2 + third)) >> 32) * 1000 // 2**32 + 1000 * third for third in range(3)])
    assert TableLayout(1000, b"salt").cells_of(*np.array(tags, dtype=np.uint64).T).T.tolist() == expected


@pytest.mark.parametrize("tags", ["random", "counted"])
def test_cells_are_spread_evenly_and_independently(tags: str) -> None:
    """Also for tags that are not random at all: the mixing alone does it."""
    count, third = 1 << 16, 16
    counted = np.column_stack((np.arange(count), np.arange(count) // 7)).astype(np.uint64)
    cells = TableLayout(third).cells_of(*(random_tags(count, 1) if tags == "random" else counted).T)
    combined = (cells % third * np.array([[1], [third], [third**2]])).sum(axis=0)
    observed = np.bincount(combined, minlength=third**3)
    expected = count / third**3
    statistic = ((observed - expected) ** 2).sum() / expected
    freedom = third**3 - 1
    assert abs(statistic - freedom) < 8 * (2 * freedom) ** 0.5


def test_another_salt_or_size_moves_the_tags() -> None:
    first, second = random_tags(1000, 2).T
    layout = TableLayout(100)
    places = layout.cells_of(first, second) % 100
    for other in (TableLayout(100, b"x"), TableLayout(200)):
        same = (other.cells_of(first, second) % 100 == places).all(axis=0)
        assert same.sum() < 5


def failures(size: int, layout: TableLayout, trials: int) -> int:
    """How many of so many random unions cannot be peeled: all at once, each in a table of its own."""
    cells = layout.cells_of(*random_tags(size * trials, seed=size).T)
    owner = np.arange(size * trials) // size
    return len(np.unique(owner[unresolved(cells + owner * layout.cells)]))


@pytest.mark.parametrize(("size", "trials"), TRIALS.items())
def test_a_union_as_large_as_the_bound_is_nearly_always_peeled(size: int, trials: int) -> None:
    """One failure in 1000 at most. (The seeds are fixed, so this does not fail by chance.)"""
    assert failures(size, TableLayout.for_bound(size), trials) <= trials / 1000


def test_small_tables_with_as_few_cells_per_tag_as_large_ones_would_fail() -> None:
    assert failures(12, TableLayout(6), 1000) > 100
