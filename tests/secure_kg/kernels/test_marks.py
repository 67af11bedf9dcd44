"""Candidates of a group are different, and those that numpy's own generator would draw."""

import numpy as np
import pytest

from secure_kg.kernels.marks import make_distinct


@pytest.mark.parametrize(("entities", "m"), [(14541, 256), (135, 100), (10, 9), (2, 1)])
def test_draws_are_those_of_numpy(entities: int, m: int) -> None:
    ours, theirs, taken = np.random.default_rng(3), np.random.default_rng(3), np.zeros(entities, dtype=np.bool_)
    for _ in range(20):
        drawn = ours.integers(0, np.arange(entities - m, entities), (3, m), endpoint=True)
        make_distinct(drawn, entities, taken)
        assert drawn.tolist() == [theirs.choice(entities, m, replace=False, shuffle=False).tolist() for _ in range(3)]
        assert not taken.any()
