"""Positions from the server are refused unless they give every name a place of its own inside the union."""

import numpy as np
import numpy.typing as npt
import pytest

from protocols.errors import PeerMisbehaved
from protocols.unions import Positions


def positions(*values: int) -> npt.NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(
    ("size", "own"), [(3, positions(0, 1, 2)), (5, positions(4, 0)), (1, positions()), (9, positions(8))]
)
def test_places_inside_the_union_are_taken(size: int, own: npt.NDArray[np.int64]) -> None:
    checked = Positions.checked(size, own, len(own))
    assert checked.union_size == size
    assert np.array_equal(checked.own, own)
    assert "own" not in repr(checked)


@pytest.mark.parametrize(
    ("size", "own", "names"),
    [
        (3, positions(0, 3), 2),
        (3, positions(-1, 0), 2),
        (3, positions(0, -(2**63)), 2),
        (3, positions(1, 1), 2),
        (3, positions(0, 1), 3),
        (3, positions(0, 1), 1),
        (3, positions(0, 1).reshape(1, 2), 2),
        (3, positions(), 1),
        (3, positions(0), 0),
        (0, positions(0), 1),
        (-1, positions(0), 1),
        (-1, positions(), 0),
    ],
)
def test_other_places_are_refused(size: int, own: npt.NDArray[np.int64], names: int) -> None:
    with pytest.raises(PeerMisbehaved):
        Positions.checked(size, own, names)
