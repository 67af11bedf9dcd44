"""Queries across graphs lie in no single one, and are ranked over the means of what clients hold."""

import numpy as np
import pytest
import torch

from secure_kg.data.graph import ClientGraph
from secure_kg.data.pooling import Pool, pool
from secure_kg.evaluation.cross_graph import can_cross, cross_graph_queries, joined
from secure_kg.evaluation.query_ranking import answer_ranks
from secure_kg.foundation.errors import DataError
from secure_kg.foundation.seeds import generator
from secure_kg.models.queries.model import QueryModel, QueryModelSize
from secure_kg.models.queries.shapes import EncoderShape
from secure_kg.queries.clients import QueryClients
from secure_kg.queries.structures import EIGHT, STRUCTURES

CLIENTS, DIM = 3, 4


@pytest.fixture(scope="module")
def pooled() -> Pool:
    """Client k has entities 10 k to 10 k + 39 of 60, and two relations of its own."""
    graphs = []
    for client in range(CLIENTS):
        rng = generator(3, "triples", client)
        triples = np.unique(rng.integers(0, [40, 2, 40], size=(300, 3)), axis=0)
        triples = triples[rng.permutation(len(triples))]
        names = tuple(f"e{10 * client + number:02}" for number in range(40))
        relations = tuple(f"r{2 * client + number}" for number in range(2))
        graphs.append(ClientGraph(names, relations, triples[60:], triples[30:60], triples[:30]))
    return pool(graphs)


def models_of(pooled: Pool) -> list[QueryModel]:
    """Each with rows of its own, and all with the same operators."""
    found = []
    for number, member in enumerate(pooled.members):
        size = QueryModelSize(len(member.graph.entities), len(member.graph.relations), "gqe", EncoderShape(DIM))
        generators = torch.Generator().manual_seed(number), torch.Generator().manual_seed(99)
        found.append(QueryModel(size, *generators))
    return found


def size_of(pooled: Pool) -> tuple[int, int]:
    return len(pooled.graph.entities), len(pooled.graph.relations)


def test_one_atom_crosses_nothing() -> None:
    assert [kind for kind in EIGHT if not can_cross(kind)] == ["1p"]


@pytest.mark.parametrize("part", ["valid", "test"])
def test_no_client_holds_all_relations_of_a_query(pooled: Pool, part: str) -> None:
    clients = QueryClients.of_pool(pooled)
    found = cross_graph_queries(clients, "valid" if part == "valid" else "test", EIGHT, 20, 0)
    assert [one.kind for one in found] == [kind for kind in EIGHT if kind != "1p"]
    for one in found:
        assert len(one.rows) == 20
        assert clients.holders.cross_graph(STRUCTURES[one.kind], one.rows).all()
        assert (one.judged.hard.counts > 0).all()


def test_parts_and_seeds_have_queries_of_their_own(pooled: Pool) -> None:
    clients = QueryClients.of_pool(pooled)
    draws = [cross_graph_queries(clients, "test", ["2i"], 20, seed)[0].rows for seed in (0, 0, 1)]
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[0], draws[2])
    assert not np.array_equal(draws[0], cross_graph_queries(clients, "valid", ["2i"], 20, 0)[0].rows)


def test_a_joined_row_is_the_mean_over_those_that_have_it(pooled: Pool) -> None:
    models = models_of(pooled)
    made = joined(pooled.members, models, *size_of(pooled))
    rows = made.rows.detach().numpy()
    for name, holders in (("e05", [0]), ("e15", [0, 1]), ("e35", [0, 1, 2])):
        own = [models[k].rows[pooled.members[k].graph.entities.index(name)].detach().numpy() for k in holders]
        expected = np.mean(np.stack(own).astype(np.float64), axis=0).astype(np.float32)
        np.testing.assert_array_equal(rows[pooled.graph.entities.index(name)], expected)
    label = size_of(pooled)[0] + 2 * pooled.graph.relations.index("r3") + 1
    np.testing.assert_array_equal(rows[label], models[1].rows[40 + 3].detach().numpy())


def test_rows_that_all_holders_have_alike_stay_as_they_are(pooled: Pool) -> None:
    whole = QueryModel(
        QueryModelSize(*size_of(pooled), "gqe", EncoderShape(DIM)), torch.Generator(), torch.Generator()
    )
    models = models_of(pooled)
    for member, model in zip(pooled.members, models, strict=True):
        labels = (2 * member.relations[:, None] + np.arange(2)).reshape(-1)
        places = np.concatenate((member.entities, size_of(pooled)[0] + labels))
        with torch.no_grad():
            model.rows.copy_(whole.rows[torch.from_numpy(places)])
            model.operators.copy_(whole.operators)
    made = joined(pooled.members, models, *size_of(pooled))
    assert torch.equal(made.rows, whole.rows)
    (evaluation,) = cross_graph_queries(QueryClients.of_pool(pooled), "test", ["pi"], 10, 0)
    np.testing.assert_array_equal(answer_ranks(made, evaluation, 8), answer_ranks(whole, evaluation, 8))


def test_clients_with_operators_of_their_own_cannot_be_joined(pooled: Pool) -> None:
    models = models_of(pooled)
    with torch.no_grad():
        models[2].operators[0] += 1
    with pytest.raises(DataError, match="operators differ"):
        joined(pooled.members, models, *size_of(pooled))
