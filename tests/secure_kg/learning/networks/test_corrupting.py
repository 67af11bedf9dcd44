"""False triples: never one of the train part while there is another, all others alike, and from a generator alone."""

import numpy as np
import pytest

from secure_kg.data.graph import Side
from secure_kg.learning.networks.corrupting import Corruption

TRAIN = np.array([[0, 0, 1], [0, 0, 2], [0, 0, 3], [4, 1, 0], [2, 0, 1]])


@pytest.mark.parametrize("side", ["tail", "head"])
def test_no_train_triple_is_drawn_and_all_others_are(side: Side) -> None:
    corruption = Corruption(TRAIN, 5, 2)
    drawn = corruption.draw(TRAIN, side, 400, np.random.default_rng(0))
    column = 2 if side == "tail" else 0
    true = {tuple(triple) for triple in TRAIN.tolist()}
    for triple, entities in zip(TRAIN.tolist(), drawn.tolist(), strict=True):
        false = set()
        for entity in range(5):
            made = list(triple)
            made[column] = entity
            false |= set() if tuple(made) in true else {entity}
        assert set(entities) == false
        counts = np.bincount(entities, minlength=5)[sorted(false)]
        expected = 400 / len(false)
        assert (np.abs(counts - expected) < 6 * np.sqrt(expected)).all()


def test_draws_follow_from_their_generator() -> None:
    corruption = Corruption(TRAIN, 5, 2)
    first, again, other = (corruption.draw(TRAIN, "tail", 50, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_where_every_entity_answers_one_of_them_is_taken() -> None:
    everything = np.array([[h, 0, t] for h in range(3) for t in range(3)])
    drawn = Corruption(everything, 3, 1).draw(everything, "tail", 4, np.random.default_rng(0))
    assert drawn.shape == (9, 4)
    assert set(np.unique(drawn)) <= {0, 1, 2}
