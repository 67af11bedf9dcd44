"""Edges of a graph: triples as they are, ways of two edges by brute force, and how many of them a node keeps."""

import numpy as np
import pytest

from secure_kg.models.networks import edges as edges_module
from secure_kg.models.networks.edges import Edges, edges_of

Edge = tuple[int, int, tuple[int, ...]]

RELATIONS = 3


def drawn(triples: int, entities: int, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    return np.column_stack([random.integers(size, size=triples) for size in (entities, RELATIONS, entities)])


def listed(edges: Edges) -> list[Edge]:
    """Node, source and relations of every edge."""
    kinds = [tuple(r for r in kind if r < RELATIONS) for kind in edges.relations.tolist()]
    walked = zip(edges.nodes.tolist(), edges.sources.tolist(), edges.kinds.tolist(), strict=True)
    return [(node, source, kinds[kind]) for node, source, kind in walked]


def by_hand(train: np.ndarray) -> list[Edge]:
    triples = {(int(h), int(r), int(t)) for h, r, t in train}
    joined = {(h, t) for h, _, t in triples}
    found: dict[tuple[int, int], tuple[int, int, int]] = {}
    for h, r, x in triples:
        for y, s, t in triples:
            if x == y and h != t and (h, t) not in joined:
                found[h, t] = min(found.get((h, t), (x, r, s)), (x, r, s))
    single: list[Edge] = [(t, h, (r,)) for h, r, t in triples]
    return single + [(t, h, (r, s)) for (h, t), (_, r, s) in found.items()]


@pytest.mark.parametrize("paths", [4_000_000, 7])
def test_edges_are_triples_and_ways_of_two_of_them(paths: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edges_module, "_PATHS", paths)  # so that there are many blocks, too
    train = drawn(60, 25)
    edges = edges_of(train, 25, RELATIONS, 1000, np.random.default_rng(0))
    assert sorted(listed(edges)) == sorted(by_hand(train))
    assert any(len(kind) == 2 for _, _, kind in listed(edges))


def test_edges_stand_node_by_node() -> None:
    edges = edges_of(drawn(60, 25), 25, RELATIONS, 1000, np.random.default_rng(0))
    for node in range(25):
        own = edges.nodes[edges.starts[node] : edges.starts[node + 1]]
        assert (own == node).all()
    assert edges.starts[-1] == len(edges.nodes)


def test_repeated_triples_are_one_edge() -> None:
    train = drawn(20, 10)
    once, twice = (
        edges_of(part, 10, RELATIONS, 100, np.random.default_rng(0)) for part in (train, np.tile(train, (2, 1)))
    )
    assert listed(once) == listed(twice)


def test_a_node_keeps_so_many_ways_of_two_edges_and_all_its_triples() -> None:
    train = drawn(200, 30)
    whole = listed(edges_of(train, 30, RELATIONS, 1000, np.random.default_rng(0)))
    few = listed(edges_of(train, 30, RELATIONS, 3, np.random.default_rng(0)))
    assert set(few) < set(whole)
    for node in range(30):
        had, has = ([edge for edge in found if edge[0] == node] for found in (whole, few))
        assert [edge for edge in has if len(edge[2]) == 1] == [edge for edge in had if len(edge[2]) == 1]
        pairs = sum(len(edge[2]) == 2 for edge in had)
        assert sum(len(edge[2]) == 2 for edge in has) == min(3, pairs)
    assert few != listed(edges_of(train, 30, RELATIONS, 3, np.random.default_rng(1)))  # which, is drawn


def test_without_ways_of_two_edges() -> None:
    train = drawn(30, 12)
    found = listed(edges_of(train, 12, RELATIONS, 0, np.random.default_rng(0)))
    assert sorted(found) == sorted({(int(t), int(h), (int(r),)) for h, r, t in train})


def test_a_chain_without_any_second_way() -> None:
    train = np.array([[0, 0, 1], [1, 1, 0]])  # there and back leads to oneself
    assert listed(edges_of(train, 2, RELATIONS, 10, np.random.default_rng(0))) == [(0, 1, (1,)), (1, 0, (0,))]
