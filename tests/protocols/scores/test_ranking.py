"""Ranking by exact means, against Python's fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.scores.ranking import ScoreSums, keys_of, rank
from protocols.scores.terms import ScoreTerms
from tests.support.score_batches import terms_of


def by_fractions(sums: list[int], counts: list[int], top: int) -> list[tuple[int, Fraction]]:
    """Position and mean, the largest mean first, of equal ones the lower position."""
    means = [(position, Fraction(s, c)) for position, (s, c) in enumerate(zip(sums, counts, strict=True)) if c]
    return sorted(means, key=lambda one: (-one[1], one[0]))[:top]


def ranked(sums: list[int], counts: list[int], terms: ScoreTerms) -> list[int]:
    made = ScoreSums(np.array([sums], dtype=np.int64), np.array(counts, dtype=np.int64))
    return rank(made, frozenset(), terms).positions[0].tolist()


@settings(max_examples=200, deadline=None)
@given(
    st.integers(3, 12),
    st.integers(1, 30),
    st.lists(st.tuples(st.sampled_from([-6, -2, -1, 0, 1, 2, 3, 6, 2**28]), st.integers(0, 12)), min_size=1),
)
def test_is_that_of_exact_fractions(clients: int, top: int, entries: list[tuple[int, int]]) -> None:
    terms = terms_of(clients, len(entries), top=top)
    counts = [min(count, clients) for _, count in entries]
    sums = [min(total, terms.largest_sum) if count else 0 for (total, _), count in zip(entries, counts, strict=True)]
    assert ranked(sums, counts, terms) == [position for position, _ in by_fractions(sums, counts, top)]


def test_means_are_those_of_the_positions() -> None:
    terms = terms_of(3, 4, top=3)
    unit = terms.codec.unit
    made = ScoreSums(np.array([[6, -6, 9, 0]]), np.array([2, 3, 3, 0]))
    ranking = rank(made, frozenset({2}), terms)
    assert ranking.positions[0].tolist() == [0, 2, 1]
    assert ranking.means is not None
    assert ranking.means[0] == pytest.approx([3 * unit, 3 * unit, -2 * unit], abs=0)
    assert ranking.contributors == {2}


def test_the_largest_key_does_not_overflow() -> None:
    terms = terms_of(12, 2)
    largest = terms.largest_sum // 12
    keys = keys_of(ScoreSums(np.array([[largest, -largest]]), np.array([1, 1])), terms)
    assert keys.tolist() == [[largest * 27720, -largest * 27720]]


def test_nothing_of_it_is_printed() -> None:
    terms = terms_of(3, 2)
    made = ScoreSums(np.array([[77, 78]]), np.array([1, 1]))
    assert "77" not in repr(made)
    assert "means" not in repr(rank(made, frozenset(), terms))
