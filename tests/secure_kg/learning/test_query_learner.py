"""The learner of queries: its own draws in every round, its blocks, the step of its uploads, and exact resumption."""

import dataclasses

import numpy as np
import pytest
import torch

from secure_kg.data.graph import ClientGraph
from secure_kg.data.partition import partition
from secure_kg.data.pooling import pool
from secure_kg.data.sources import load_source
from secure_kg.foundation.errors import DataError, TrainingDiverged
from secure_kg.learning.pooled_queries import PooledQueryLearner
from secure_kg.learning.query_config import QueryConfig
from secure_kg.learning.query_evaluations import QueryEvaluations
from secure_kg.learning.query_learner import BOTH, ENTITIES, OPERATORS, RELATIONS, QueryLearner

CPU = torch.device("cpu")
SMALL = QueryConfig(dim=8, batch_size=16, local_steps=3, negatives=10, eval_queries=5)


def nations(clients: int = 3) -> list[ClientGraph]:
    return partition(load_source("nations"), clients, "relations", 0)


def learner_of(client: int = 1, config: QueryConfig = SMALL, seed: int = 0) -> QueryLearner:
    return QueryLearner(nations()[client - 1], config, CPU, seed, client)


def test_training_follows_from_seed_client_and_round_alone() -> None:
    one, other = learner_of(), learner_of()
    assert one.train(2) == other.train(2)
    assert one.digest() == other.digest()
    digests = {one.digest()}
    for change in (learner_of(seed=1), learner_of()):
        change.train(3)
        digests.add(change.digest())
    assert len(digests) == 3


def test_operators_begin_alike_at_all_clients_and_rows_do_not() -> None:
    one, other = learner_of(1), learner_of(2)
    np.testing.assert_array_equal(one.export_block(OPERATORS), other.export_block(OPERATORS))
    assert not np.array_equal(one.export_block(ENTITIES)[0], other.export_block(ENTITIES)[0])


def test_names_of_rows_tell_entities_relations_and_inverses_apart() -> None:
    graph = ClientGraph(("a", "b"), ("a",), *[np.array([[0, 0, 1]])] * 3)
    learner = QueryLearner(graph, QueryConfig(dim=4, train_types="1p", eval_queries=1), CPU, 0, 1)
    assert learner.block_names(BOTH) == ("entity a", "entity b", "relation a", "inverse of a")
    assert learner.block_names(ENTITIES) == ("entity a", "entity b")
    assert learner.block_names(RELATIONS) == ("relation a", "inverse of a")
    assert learner.export_block(BOTH).shape == (4, 4)
    with pytest.raises(ValueError, match="no block"):
        learner.export_block("dense")


@pytest.mark.parametrize("block", [BOTH, ENTITIES, RELATIONS, OPERATORS])
def test_blocks_are_copies_and_load_what_they_export(block: str) -> None:
    learner = learner_of()
    rows = learner.export_block(block) + 1
    assert not np.array_equal(learner.export_block(block), rows)
    learner.load_block(block, rows)
    np.testing.assert_array_equal(learner.export_block(block), rows)
    with pytest.raises(ValueError, match="must have shape"):
        learner.load_block(block, rows[:, :-1])


def test_an_upload_takes_a_step_from_where_the_round_began() -> None:
    learner = learner_of(config=dataclasses.replace(SMALL, step=2.0))
    began = learner.export_block(BOTH)
    np.testing.assert_array_equal(learner.contributed_block(BOTH), began)  # nothing trained yet
    learner.train(2)
    trained = learner.export_block(BOTH)
    np.testing.assert_allclose(learner.contributed_block(BOTH), began + 2 * (trained - began), atol=1e-6)
    np.testing.assert_array_equal(learner.contributed_block(OPERATORS), learner.export_block(OPERATORS))
    learner.load_block(BOTH, trained)
    np.testing.assert_array_equal(learner.contributed_block(BOTH), trained)


def test_without_a_step_an_upload_is_the_row_itself() -> None:
    learner = learner_of()
    learner.train(2)
    np.testing.assert_array_equal(learner.contributed_block(BOTH), learner.export_block(BOTH))


def test_a_saved_state_goes_on_to_the_last_bit() -> None:
    whole = learner_of()
    whole.train(1)
    state = whole.state()
    whole.train(2)
    resumed = learner_of()
    resumed.load_state(state)
    resumed.train(2)
    assert resumed.digest() == whole.digest()
    assert resumed.evaluate("test") == whole.evaluate("test")
    best = whole.parameters_state()
    whole.train(3)
    whole.load_parameters(best)
    assert whole.digest() == resumed.digest()


def test_queries_of_an_evaluation_are_hard_and_drawn_once() -> None:
    learner = learner_of()
    for part in ("valid", "test"):
        asked = learner.evaluations.of(part)
        assert [one.kind for one in asked] == list(SMALL.tested)
        assert all((one.judged.hard.counts > 0).all() and len(one.rows) == 5 for one in asked)
        again = QueryEvaluations(nations()[0], SMALL, 0, 1).of(part)
        for one, other in zip(asked, again, strict=True):
            np.testing.assert_array_equal(one.rows, other.rows)
    trained = learner.train(2)
    metrics = learner.evaluate("valid", trained)
    assert metrics.examples == 5 * len(SMALL.tested)
    assert metrics.loss == pytest.approx(trained.loss)


def test_a_small_graph_is_judged_by_the_queries_that_it_has() -> None:
    line = np.array([[0, 0, 1], [1, 0, 2], [2, 0, 3]])
    graph = ClientGraph(tuple("abcde"), ("r",), line, np.array([[3, 0, 4]]), np.array([[0, 0, 4]]))
    learner = QueryLearner(graph, QueryConfig(dim=4, batch_size=2, local_steps=1, eval_queries=100), CPU, 0, 1)
    counts = {one.kind: len(one.rows) for one in learner.evaluations.of("valid")}
    assert 0 < counts["1p"] < 100
    learner.train(1)
    assert learner.evaluate("valid").examples == sum(counts.values())


def test_a_graph_without_any_query_to_train_on_is_refused() -> None:
    graph = ClientGraph(("a", "b"), ("r",), np.array([[0, 0, 1]]), *[np.zeros((0, 3), np.int64)] * 2)
    with pytest.raises(DataError, match="no query of type 3i"):
        QueryLearner(graph, QueryConfig(dim=4, train_types="3i"), CPU, 0, 1)


def test_divergence_is_told() -> None:
    learner = learner_of()
    learner.load_block(BOTH, np.full_like(learner.export_block(BOTH), np.nan))
    with pytest.raises(TrainingDiverged, match="round 4"):
        learner.train(4)


def test_a_pool_is_judged_by_each_members_own_queries() -> None:
    graphs = nations()
    pooled = PooledQueryLearner(pool(graphs), SMALL, CPU, 0)
    pooled.train(1)
    total = pooled.evaluate("test")
    rows = dict(zip(pooled.block_names(BOTH), pooled.export_block(BOTH), strict=True))
    for number, (graph, found) in enumerate(zip(graphs, pooled.member_results("test"), strict=True), start=1):
        alone = QueryLearner(graph, SMALL, CPU, 0, number)
        alone.load_block(BOTH, np.stack([rows[name] for name in alone.block_names(BOTH)]))
        alone.load_block(OPERATORS, pooled.export_block(OPERATORS))
        assert alone.evaluate("test") == found
    assert total.examples == sum(found.examples for found in pooled.member_results("test"))
