"""Combinations of sums that leave single clients: right, and complete where completeness is claimed."""

from fractions import Fraction

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from secure_kg.attacks.differencing import (
    counts_by_differencing,
    isolated_value,
    isolating_differences,
    rows_by_differencing,
)

Participation = npt.NDArray[np.bool_]
SHAPES = st.tuples(st.integers(1, 7), st.integers(2, 6))


@settings(deadline=None)
@given(hnp.arrays(np.bool_, SHAPES), st.integers(2, 4))
def test_what_is_said_to_be_left_is_left(participation: Participation, threshold: int) -> None:
    for one in isolating_differences(participation, threshold):
        assert 0 < len(one.clients) < threshold
        left = [
            sum((factor * int(row[client]) for factor, row in zip(one.coefficients, participation, strict=True)))
            for client in range(participation.shape[1])
        ]
        expected = [Fraction(0)] * participation.shape[1]
        for client, weight in zip(one.clients, one.weights, strict=True):
            expected[client] = weight
        assert left == expected


@settings(deadline=None)
@given(hnp.arrays(np.bool_, SHAPES))
def test_no_single_client_is_overlooked(participation: Participation) -> None:
    matrix = participation.astype(float)
    rank = np.linalg.matrix_rank(matrix)
    units = np.eye(participation.shape[1])
    exposed = {k for k, unit in enumerate(units) if np.linalg.matrix_rank(np.vstack((matrix, unit))) == rank and rank}
    assert {one.clients[0] for one in isolating_differences(participation, 2)} == exposed


def test_a_dropout_and_a_longer_combination() -> None:
    everybody, without_last = [True] * 4, [True, True, True, False]
    assert [one.clients for one in isolating_differences(np.array([everybody, without_last]), 2)] == [(3,)]
    assert isolating_differences(np.array([everybody, everybody]), 2) == []
    # No two of these sums differ in one client, all three together do: (1+2) - (2+3) + (1+3) = 2 · client 1.
    ring = np.array([[True, True, False], [False, True, True], [True, False, True]])
    assert {one.clients for one in isolating_differences(ring, 2)} == {(0,), (1,), (2,)}
    two = isolating_differences(np.array([everybody, [True, True, False, False]]), 3)
    assert {one.clients for one in two} == {(2, 3), (0, 1)}


def test_static_counts_are_found_exactly() -> None:
    counts = {0: np.array([120, 7]), 1: np.array([95, 3]), 2: np.array([131, 9])}
    participation = np.array([[True, True, True], [True, True, False]])
    totals = np.array([sum(counts[c] for c in range(3)), counts[0] + counts[1]])
    result = counts_by_differencing(participation, totals, {2: counts[2]})
    assert result.succeeded
    assert result.scores == {"exact": 1.0}
    same = np.array([[True] * 3] * 2)
    assert not counts_by_differencing(same, np.array([totals[0]] * 2), counts).succeeded


def test_rows_that_change_a_little_are_found_nearly() -> None:
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(4, 200))
    later = rows + draw.normal(scale=0.1, size=rows.shape)
    participation = np.array([[True] * 4, [True, True, True, False]])
    totals = np.array([rows.sum(axis=0), later[:3].sum(axis=0)])
    result = rows_by_differencing(participation, totals, {3: rows[3]})
    assert result.succeeded
    assert result.scores["explained"] > 0.9
    assert result.chance["explained"] < 0.6
    everybody = np.array([[True] * 4] * 2)
    assert not rows_by_differencing(everybody, np.array([totals[0]] * 2), {3: rows[3]}).succeeded


def test_the_isolated_value_is_divided_by_its_weight() -> None:
    ring = np.array([[True, True, False], [False, True, True], [True, False, True]])
    values = np.array([5.0, 11.0, -2.0])
    for one in isolating_differences(ring, 2):
        np.testing.assert_allclose(isolated_value(one, ring @ values), values[one.clients[0]])
