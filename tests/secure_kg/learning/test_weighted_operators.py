"""Operators by weights: plain means of contributions give the weighted mean, and false ones are refused."""

import numpy as np
import pytest

from protocols.foundation.errors import PeerMisbehaved
from secure_kg.learning.learner import Rows
from secure_kg.learning.weighted_operators import MOST_TRIPLES, contributed, exported, mean_of


def mean(parts: list[Rows]) -> Rows:
    return np.mean(np.stack(parts).astype(np.float64), axis=0).astype(np.float32)


def test_the_mean_counts_every_triple_once() -> None:
    operators = [np.array([[value, -value, 1.0]], dtype=np.float32) for value in (1.0, 4.0)]
    found = mean_of(mean([contributed(one, triples) for one, triples in zip(operators, (100, 300), strict=True)]))
    np.testing.assert_allclose(found, [[3.25, -3.25, 1.0]], rtol=1e-6)


def test_a_client_with_very_many_triples_counts_no_more_than_the_most() -> None:
    row = np.array([[2.0]], dtype=np.float32)
    assert contributed(row, 50 * MOST_TRIPLES).tolist() == contributed(row, MOST_TRIPLES).tolist() == [[2.0, 1.0]]


def test_what_a_model_has_before_any_mean_comes_back_as_it_is() -> None:
    row = np.array([[0.5, -3.0]], dtype=np.float32)
    np.testing.assert_array_equal(mean_of(exported(row, weighted=True)), row)
    assert exported(row, weighted=False) is row


@pytest.mark.parametrize("weight", [0.0, -1.0, 2.0, 1e-30, float("nan")])
def test_false_weights_are_refused(weight: float) -> None:
    with pytest.raises(PeerMisbehaved, match="without their weights"):
        mean_of(np.array([[1.0, weight]], dtype=np.float32))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_operators_that_are_no_numbers_are_refused(value: float) -> None:
    with pytest.raises(PeerMisbehaved, match="without their weights"):
        mean_of(np.array([[1.0, value, 0.5]], dtype=np.float32))
