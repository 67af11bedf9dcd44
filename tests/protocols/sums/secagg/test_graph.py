"""The masking graph: everyone computes the same one, and it has the shape the parameters were reckoned for."""

import random
from collections import Counter
from hashlib import sha256

import pytest

from protocols.foundation.identifiers import PartyId
from protocols.sums.secagg.graph import MaskingGraph

LABEL = b"one sum"


def parties(*numbers: int) -> list[PartyId]:
    return [PartyId(number) for number in numbers]


def edges(graph: MaskingGraph, clients: list[PartyId]) -> set[tuple[PartyId, PartyId]]:
    return {(u, v) for u in clients for v in graph.neighbours(u)}


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7, 20, 21])
def test_it_is_regular_symmetric_and_connected_for_every_degree(count: int) -> None:
    clients = parties(*range(3, 3 + 5 * count, 5))
    degrees = {*range(2, count, 2), count - 1}
    for degree in degrees:
        graph = MaskingGraph(clients, degree, LABEL)
        assert graph.degree == degree
        for client in clients:
            around = graph.neighbours(client)
            assert len(set(around)) == len(around) == degree
            assert list(around) == sorted(around)
            assert client not in around
            assert set(around) <= set(clients)
        found = edges(graph, clients)
        assert found == {(v, u) for u, v in found}
        reached, edge = set(), {clients[0]}
        while edge:
            reached |= edge
            edge = {v for u in edge for v in graph.neighbours(u)} - reached
        assert reached == set(clients)


@pytest.mark.parametrize("count", [2, 3, 8, 9])
def test_the_complete_graph_joins_everyone_to_everyone_else(count: int) -> None:
    clients = parties(*range(1, count + 1))
    graph = MaskingGraph(clients, count - 1, LABEL)
    assert all(graph.neighbours(u) == tuple(v for v in clients if v != u) for u in clients)


def test_it_is_the_circulant_graph_on_the_order_of_the_hashes() -> None:
    """Reckoned anew from the encoding, which all implementations must share."""
    clients = parties(*range(1, 31))
    encoded = b"secure-kg/secagg/masking-graph/1" + len(LABEL).to_bytes(8, "little") + LABEL
    ring = sorted(clients, key=lambda party: sha256(encoded + party.to_bytes(8, "little")).digest())
    graph = MaskingGraph(clients, 6, LABEL)
    for place, client in enumerate(ring):
        expected = {ring[(place + step) % 30] for step in (-3, -2, -1, 1, 2, 3)}
        assert set(graph.neighbours(client)) == expected


def test_it_stays_the_same_over_versions() -> None:
    graph = MaskingGraph(parties(*range(1, 13)), 4, LABEL)
    assert [graph.neighbours(PartyId(party)) for party in (1, 2, 12)] == [(3, 5, 11, 12), (6, 8, 9, 10), (1, 3, 5, 7)]


def test_it_does_not_depend_on_the_order_in_which_participants_are_given() -> None:
    clients = parties(*range(1, 41))
    shuffled = list(clients)
    random.Random(5).shuffle(shuffled)
    given = [clients, shuffled, tuple(reversed(clients)), frozenset(clients), dict.fromkeys(shuffled)]
    assert len({frozenset(edges(MaskingGraph(each, 6, LABEL), clients)) for each in given}) == 1


def test_it_differs_between_labels_and_between_sets_of_participants() -> None:
    clients = parties(*range(1, 41))
    labels = [b"", b"\x00", b"\x00\x00", LABEL, b"another sum", LABEL + b"\x00"]
    assert len({frozenset(edges(MaskingGraph(clients, 6, label), clients)) for label in labels}) == len(labels)
    fewer = MaskingGraph(clients[1:], 6, LABEL)
    assert edges(fewer, clients[1:]) != {
        pair for pair in edges(MaskingGraph(clients, 6, LABEL), clients) if 1 not in pair
    }


def test_over_labels_every_pair_is_as_often_neighbours_as_any_other() -> None:
    """Each of the 66 pairs of 12 clients has probability 4/11: 728 of 2,000 labels, standard deviation 21.5."""
    clients = parties(*range(1, 13))
    counts: Counter[tuple[PartyId, PartyId]] = Counter()
    for number in range(2000):
        counts.update(edges(MaskingGraph(clients, 4, number.to_bytes(4, "big")), clients))
    assert len(counts) == 12 * 11
    assert 728 - 5 * 21.5 < min(counts.values()) <= max(counts.values()) < 728 + 5 * 21.5


@pytest.mark.parametrize(
    ("count", "degree", "reason"),
    [
        (5, 5, "5 participants cannot have 5"),
        (5, 0, "cannot have 0"),
        (5, -2, "cannot have -2"),
        (1, 0, "cannot have 0"),
        (0, 0, "cannot have 0"),
        (6, 3, "3 is neither even"),
        (5, 1, "1 is neither even"),
    ],
)
def test_a_degree_that_cannot_be_is_refused(count: int, degree: int, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        MaskingGraph(parties(*range(1, count + 1)), degree, LABEL)


@pytest.mark.parametrize("degree", [2, 4])
def test_foreign_and_doubled_participants_are_refused(degree: int) -> None:
    graph = MaskingGraph(parties(1, 2, 3, 4, 5), degree, LABEL)
    with pytest.raises(ValueError, match="client 6 is no participant"):
        graph.neighbours(PartyId(6))
    with pytest.raises(ValueError, match="named twice"):
        MaskingGraph(parties(1, 2, 3, 4, 4, 5), degree, LABEL)


@pytest.mark.timeout(10)
def test_ten_thousand_participants_are_cheap() -> None:
    clients = parties(*range(1, 10_001))
    graph = MaskingGraph(clients, 90, LABEL)
    assert sum(len(graph.neighbours(client)) for client in clients) == 900_000
