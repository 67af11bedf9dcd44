"""Negatives: only own entities, all different, and every true train triple marked, no other."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from secure_kg.data.graph import ClientGraph, Side
from secure_kg.learning.negatives import NegativeSampler
from secure_kg.models.base import rows_per_group

CPU = torch.device("cpu")
triples = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 2), st.integers(0, 8)), min_size=1, max_size=60)


def graph_of(train: list[tuple[int, int, int]]) -> ClientGraph:
    none = np.empty((0, 3), dtype=np.int64)
    names = tuple("abcdefghi"), tuple("rst")
    return ClientGraph(*names, np.array(train, dtype=np.int64), none, none)


@given(triples, st.integers(1, 12), st.integers(1, 40), st.sampled_from(["tail", "head"]), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_exactly_the_true_train_triples_are_marked(
    train: list[tuple[int, int, int]], negatives: int, share: int, side: Side, seed: int
) -> None:
    graph = graph_of(train)
    batch = torch.from_numpy(graph.train)[: len(train) // 2 + 1]
    sampler = NegativeSampler(graph, negatives, share, CPU)
    drawn = sampler.draw(batch, side, np.random.default_rng(seed))
    assert torch.equal(drawn.false_negative, sampler._marks_by_torch(batch, side, drawn.entities))
    groups = drawn.entities.tolist()
    for candidates in groups:
        assert len(set(candidates)) == len(candidates) == min(negatives, 9)
        assert set(candidates) <= set(range(9))
    rows = rows_per_group(len(batch), len(groups))
    assert rows <= share
    known = set(train)
    for row, (h, r, t) in enumerate(batch.tolist()):
        for column, entity in enumerate(groups[row // rows]):
            corrupted = (h, r, entity) if side == "tail" else (entity, r, t)
            assert bool(drawn.false_negative[row, column]) == (corrupted in known)


def test_every_entity_is_drawn_sooner_or_later() -> None:
    sampler, rng = NegativeSampler(graph_of([(0, 0, 1)]), 3, 1, CPU), np.random.default_rng(0)
    batch = torch.tensor([[0, 0, 1]])
    counts = np.zeros(9)
    for _ in range(900):
        counts[sampler.draw(batch, "tail", rng).entities[0].numpy()] += 1
    assert (abs(counts - 300) < 100).all()


def test_as_many_negatives_as_entities_takes_them_all() -> None:
    sampler = NegativeSampler(graph_of([(0, 0, 1)]), 9, 1, CPU)
    drawn = sampler.draw(torch.tensor([[0, 0, 1]]), "head", np.random.default_rng(0))
    assert drawn.entities.tolist() == [list(range(9))]
