"""Scores of one client: what is refused, and how they are rounded."""

import numpy as np
import numpy.typing as npt
import pytest

from protocols.foundation.errors import EncodingOverflow
from protocols.scores.interface import Scores, encode, no_scores
from tests.support.score_batches import terms_of

TERMS = terms_of(3, 5, queries=2)


def scores_of(held: list[int], values: npt.ArrayLike) -> Scores:
    return Scores(np.array(held, dtype=np.int64), np.array(values, dtype=np.float32))


@pytest.mark.parametrize(
    "held", [[-1, 2], [2, 5], [3, 2], [2, 2], [0, 1, 2]], ids=["negative", "outside", "order", "twice", "shape"]
)
def test_positions_that_are_none_are_refused(held: list[int]) -> None:
    with pytest.raises(ValueError, match=r"position|scores of shape"):
        encode(scores_of(held, [[1.0, 2.0], [3.0, 4.0]]), TERMS)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises(EncodingOverflow, match="finite"):
        encode(scores_of([0, 2], [[1.0, 2.0], [value, 4.0]]), TERMS)


def test_cells_are_rounded_values_in_their_places() -> None:
    values = [[1.0, -2.5, 16.0], [0.1, -0.1, 1e-9]]
    encoded = encode(scores_of([0, 2, 4], values), TERMS)
    scale = TERMS.codec.scale
    expected = [[round(float(np.float32(value)) * scale) for value in row] for row in values]
    assert encoded.cells[:, [0, 2, 4]].tolist() == expected
    assert encoded.cells[:, [1, 3]].tolist() == [[0, 0], [0, 0]]
    assert encoded.held.tolist() == [True, False, True, False, True]
    assert encoded.clipped == 0


def test_clipped_values_are_counted() -> None:
    encoded = encode(scores_of([1, 3], [[17.0, 2.0], [-1e30, 16.0]]), TERMS)
    assert encoded.clipped == 2
    largest = round(16.0 * TERMS.codec.scale)
    assert encoded.cells[:, 1].tolist() == [largest, -largest]


def test_who_holds_nothing_adds_nothing() -> None:
    sums = encode(no_scores(TERMS), TERMS).sums
    assert not sums.sums.any()
    assert not sums.counts.any()
