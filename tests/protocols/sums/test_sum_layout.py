"""The public layout of a sum refuses what could overflow; a contribution that does not fit it never leaves."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation.errors import EncodingOverflow, SumAbandoned
from protocols.primitives.fixed_point import FixedPoint
from protocols.primitives.group import Ring
from protocols.sums.interface import Contribution, SumLayout

LAYOUT = SumLayout(real_entries=2, count_entries=1, bound=4.0, max_count=10, parties=3, ring_bits=32)


def test_a_layout_gives_ring_codec_and_length() -> None:
    assert LAYOUT.entries == 3
    assert LAYOUT.group == Ring(32)
    assert LAYOUT.codec == FixedPoint.widest(Ring(32), 4.0, 3)
    assert replace(LAYOUT, ring_bits=64).group == Ring(64)


@pytest.mark.parametrize(
    "change",
    [
        {"real_entries": -1},
        {"count_entries": -1},
        {"max_count": -1},
        {"bound": 0.0},
        {"bound": float("nan")},
        {"bound": float("inf")},
        {"bound": 1e300},
        {"bound": 2.0**31},
        {"parties": 0},
        {"parties": 2**31},
        {"max_count": 2**31 // 3 + 1},
        {"parties": 1, "max_count": 2**31},
        {"ring_bits": 64, "max_count": 2**63 // 3 + 1},
        {"real_entries": 0, "max_count": 2**31},
    ],
    ids=str,
)
def test_layouts_that_could_overflow_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(EncodingOverflow):
        replace(LAYOUT, **change)  # type: ignore[arg-type]


def test_the_largest_counts_that_fit_are_admitted() -> None:
    largest = (2**31 - 1) // 3
    layout = replace(LAYOUT, max_count=largest)
    assert layout.parties * largest < 2**31 <= layout.parties * (largest + 1)


def test_a_sum_of_counts_alone_needs_no_bound() -> None:
    assert SumLayout(0, 1, bound=0.0, max_count=1, parties=2, ring_bits=32).entries == 1


def contribution(real: list[float], counts: list[int]) -> Contribution:
    return Contribution(np.array(real), np.array(counts, dtype=np.int64))


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(0, 10))
@settings(deadline=None)
def test_a_contribution_that_fits_passes(value: float, count: int) -> None:
    contribution([value, 0.0], [count]).check(LAYOUT)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (contribution([1.0], [1]), "shape"),
        (contribution([1.0, 2.0, 3.0], [1]), "shape"),
        (contribution([1.0, 2.0], []), "shape"),
        (contribution([1.0, 2.0], [1, 1]), "shape"),
        (Contribution(np.zeros((2, 1)), np.zeros(1, dtype=np.int64)), "shape"),
        (Contribution(np.zeros(2), np.zeros((1, 1), dtype=np.int64)), "shape"),
        (contribution([1.0, 2.0], [11]), "outside 0..10"),
        (contribution([1.0, 2.0], [-1]), "outside 0..10"),
        (contribution([1.0, float("nan")], [1]), "not finite"),
        (contribution([float("inf"), 1.0], [1]), "not finite"),
        (contribution([float("-inf"), 1.0], [1]), "not finite"),
    ],
)
def test_a_contribution_that_does_not_fit_is_refused(wrong: Contribution, problem: str) -> None:
    with pytest.raises(EncodingOverflow, match=problem):
        LAYOUT.encode(wrong)


def test_contributions_do_not_show_their_values() -> None:
    assert repr(contribution([0.12345, 1.0], [7])) == "Contribution()"


# --- reading a sum --------------------------------------------------------------------------------------------------


def test_the_largest_possible_sum_is_read() -> None:
    total = LAYOUT.group.zeros(LAYOUT.entries)
    for _ in range(LAYOUT.parties):
        LAYOUT.group.add_into(total, LAYOUT.encode(contribution([4.0, -4.0], [10])).vector)
    read = LAYOUT.decode(total)
    assert (read.real.tolist(), read.counts.tolist()) == ([12.0, -12.0], [30])


@pytest.mark.parametrize("count", [31, 2**31, 2**32 - 1])
def test_counts_that_no_contributions_give_are_no_sum(count: int) -> None:
    total = np.array([0, 0, count], dtype=LAYOUT.group.dtype)
    with pytest.raises(SumAbandoned, match="larger than its contributions can be"):
        LAYOUT.decode(total)


@pytest.mark.parametrize("ring_bits", [32, 64])
def test_masks_that_did_not_cancel_are_no_sum(ring_bits: int) -> None:
    """The chance that noise passes for three small counts is (31 / 2^32)^3."""
    layout = replace(LAYOUT, count_entries=3, ring_bits=ring_bits)  # type: ignore[arg-type]
    noise = np.random.default_rng(0).integers(0, 2**ring_bits, layout.entries, dtype=layout.group.dtype)
    with pytest.raises(SumAbandoned):
        layout.decode(noise)
