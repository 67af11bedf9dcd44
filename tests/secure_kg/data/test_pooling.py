"""All clients' graphs as one: names decide what is the same, and every client finds its triples again."""

import numpy as np

from secure_kg.data.graph import ClientGraph
from secure_kg.data.partition import partition
from secure_kg.data.pooling import pool
from secure_kg.data.sources import load_source
from secure_kg.data.triples import PARTS, NamedTriples
from secure_kg.data.vocabulary import decode


def rows(named: NamedTriples) -> list[tuple[str, str, str]]:
    return list(zip(named.heads, named.relations, named.tails, strict=True))


def names(graph: ClientGraph, triples: np.ndarray) -> list[tuple[str, str, str]]:
    return rows(decode(graph.entities, graph.relations, triples))


def test_the_pool_is_the_union_of_the_parts() -> None:
    graphs = partition(load_source("umls"), 4, "relations", 0)
    pooled = pool(graphs)
    for part in PARTS:
        expected = {triple for graph in graphs for triple in names(graph, graph.part(part))}
        found = names(pooled.graph, pooled.graph.part(part))
        assert len(found) == len(set(found))
        assert set(found) == expected
    assert pooled.graph.entities == tuple(sorted({name for graph in graphs for name in graph.entities}))
    assert pooled.trained_elsewhere == 0


def test_every_member_finds_its_own_triples_in_their_order() -> None:
    graphs = partition(load_source("nations"), 3, "triples", 1)
    pooled = pool(graphs)
    for graph, member in zip(graphs, pooled.members, strict=True):
        for part in PARTS:
            assert names(pooled.graph, member.in_pool(part)) == names(graph, graph.part(part))


def test_triples_of_several_clients_count_once_and_heard_answers_are_counted() -> None:
    def graph(train: list[list[int]], test: list[list[int]]) -> ClientGraph:
        arrays = [np.array(part, dtype=np.int64).reshape(-1, 3) for part in (train, [[1, 0, 0]], test)]
        return ClientGraph(("a", "b"), ("r",), *arrays)

    pooled = pool([graph([[0, 0, 1]], [[1, 0, 1]]), graph([[0, 0, 1], [1, 0, 1]], [[0, 0, 0]])])
    assert pooled.graph.train.tolist() == [[0, 0, 1], [1, 0, 1]]
    assert pooled.trained_elsewhere == 1
