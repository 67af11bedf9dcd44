"""Filtered ranking against a loop over triples and candidates, and against PyKEEN."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from secure_kg.data.graph import ClientGraph, Side
from secure_kg.evaluation import ranking
from secure_kg.evaluation.ranking import FilteredRanking, Sides, torch_count
from secure_kg.evaluation.sums import RankingSums
from secure_kg.foundation.errors import TrainingDiverged
from secure_kg.models.base import EmbeddingModel, ModelSize
from secure_kg.models.registry import build_model
from secure_kg.models.shapes import MODELS

CPU = torch.device("cpu")


def random_graph(seed: int, entities: int = 7, relations: int = 2, triples: int = 30) -> ClientGraph:
    rng = np.random.default_rng(seed)
    drawn = np.stack([rng.integers(0, n, triples) for n in (entities, relations, entities)], axis=1)
    unique = rng.permutation(np.unique(drawn, axis=0))
    train, valid, test = np.split(unique, [len(unique) // 2, 3 * len(unique) // 4])
    names = tuple(f"e{i:02}" for i in range(entities)), tuple(f"r{i:02}" for i in range(relations))
    return ClientGraph(*names, train, valid, test)


def model_with_ties(name: str, graph: ClientGraph, seed: int) -> EmbeddingModel:
    """Rows of small whole numbers: many scores are equal, and exactly so in every order of summation."""
    size = ModelSize(len(graph.entities), len(graph.relations), 2, 4.0, train=graph.train)
    model = build_model(name, size, torch.Generator().manual_seed(seed))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randint(-1, 2, parameter.shape, generator=generator))
        if name == "RotatE":  # quarter turns are not exact in floating point
            model.relation.zero_()
    return model


def slow_rank(model: EmbeddingModel, graph: ClientGraph, triple: tuple[int, int, int], side: Side) -> float:
    known = {tuple(row) for row in np.concatenate((graph.train, graph.valid, graph.test)).tolist()}
    h, r, t = triple
    best = worst = 1
    relation = model.relation_rows(torch.tensor([r]), model.relation[r : r + 1])[0]
    own = model.score(model.entity[h], relation, model.entity[t]).item()
    for candidate in range(len(graph.entities)):
        other = (h, r, candidate) if side == "tail" else (candidate, r, t)
        if other in known or other == triple:
            continue
        score = model.score(model.entity[other[0]], relation, model.entity[other[2]]).item()
        best += score > own
        worst += score >= own
    return (best + worst) / 2


def slow_sums(model: EmbeddingModel, graph: ClientGraph, sides: Sides) -> RankingSums:
    each: tuple[Side, ...] = ("tail", "head") if sides == "both" else (sides,)
    ranks = [slow_rank(model, graph, (h, r, t), side) for h, r, t in graph.test.tolist() for side in each]
    hits = [sum(rank <= k for rank in ranks) for k in (1, 3, 10, 5)]
    return RankingSums(len(ranks), sum(1 / rank for rank in ranks), *hits, doubled_ranks=int(2 * sum(ranks)))


def assert_same(found: RankingSums, expected: RankingSums) -> None:
    assert found.reciprocal == pytest.approx(expected.reciprocal)
    assert replace(found, reciprocal=0.0) == replace(expected, reciprocal=0.0)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("sides", ["tail", "head", "both"])
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_ranks_with_ties_equal_the_slow_ones(name: str, sides: Sides, seed: int) -> None:
    graph = random_graph(seed)
    model = model_with_ties(name, graph, seed)
    assert_same(FilteredRanking(graph, CPU).rank(model, graph.test, sides), slow_sums(model, graph, sides))


@pytest.mark.parametrize("block", [1, 3, 20])
@pytest.mark.parametrize("name", ["TransE", "DistMult"])
def test_blocks_change_nothing(name: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(0)
    model = model_with_ties(name, graph, 0)
    monkeypatch.setattr(ranking, "_MOST_QUERIES", block)
    assert_same(FilteredRanking(graph, CPU).rank(model, graph.test, "both"), slow_sums(model, graph, "both"))


@pytest.mark.parametrize("megabytes", [1, 3])
def test_blocks_of_scores_stay_within_the_budget(megabytes: int) -> None:
    sizes = []

    class Recorder:
        def scores(self, triples: torch.Tensor, side: Side) -> torch.Tensor:
            scores = torch.zeros(len(triples), 70_000)
            sizes.append(scores.numel() * scores.element_size())
            return scores

    names = tuple(map(str, range(70_000)))
    triples = np.stack([np.arange(50), np.zeros(50), np.arange(50)], axis=1).astype(np.int64)
    graph = ClientGraph(names, ("r",), triples, triples[:0], triples[:0])
    FilteredRanking(graph, CPU, megabytes).rank(Recorder(), triples)
    assert 0 < max(sizes) <= megabytes * 2**20


@pytest.mark.parametrize("name", MODELS)
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_the_torch_route_counts_the_same(name: str, seed: int) -> None:
    """In double precision distances come from torch; `torch_count` is what counts on a GPU."""
    graph = random_graph(seed)
    model = model_with_ties(name, graph, seed)
    fast = FilteredRanking(graph, CPU).rank(model, graph.test, "both")
    double = FilteredRanking(graph, CPU)
    assert_same(double.rank(model.double(), graph.test, "both"), fast)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            double,
            "_count",
            lambda scores, triples, side, answers: torch_count(
                scores, answers.truth, *double._known[side].look_up(triples)
            ),
        )
        assert_same(double.rank(model, graph.test, "both"), fast)


def test_all_scores_equal_is_chance_not_a_hit() -> None:
    graph = random_graph(1, entities=5, triples=1)
    model = model_with_ties("DistMult", graph, 0)
    with torch.no_grad():
        model.entity.zero_()
    lonely = np.array([[0, 0, 1]], dtype=np.int64)
    empty = ClientGraph(graph.entities, graph.relations, lonely[:0], lonely[:0], lonely)
    assert FilteredRanking(empty, CPU).rank(model, lonely) == RankingSums(1, 1 / 3, 0, 1, 1, 1, 6)


def test_no_triples_give_empty_sums() -> None:
    graph = random_graph(2)
    assert FilteredRanking(graph, CPU).rank(model_with_ties("TransE", graph, 0), graph.test[:0]) == RankingSums()


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_scores_that_are_not_finite_raise(value: float) -> None:
    graph = random_graph(3)
    model = model_with_ties("TransE", graph, 0)
    with torch.no_grad():
        model.entity[3, 0] = value
    with pytest.raises(TrainingDiverged, match="not finite"):
        FilteredRanking(graph, CPU).rank(model, graph.test)


@pytest.mark.parametrize("seed", range(3))
def test_pykeen_gives_the_same_realistic_ranks(seed: int) -> None:
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.models import TransE
    from pykeen.triples import CoreTriplesFactory

    graph = random_graph(seed, entities=20, triples=120)
    ours = model_with_ties("TransE", graph, seed)
    parts = [torch.from_numpy(part) for part in (graph.train, graph.valid, graph.test)]
    factory = CoreTriplesFactory(parts[0], num_entities=20, num_relations=2)
    theirs = TransE(triples_factory=factory, embedding_dim=2, scoring_fct_norm=1)
    with torch.no_grad():
        next(theirs.entity_representations[0].parameters()).copy_(ours.entity)
        next(theirs.relation_representations[0].parameters()).copy_(ours.relation)
    result = RankBasedEvaluator(filtered=True).evaluate(
        theirs, parts[2], batch_size=8, additional_filter_triples=parts[:2], use_tqdm=False
    )
    every: tuple[Sides, ...] = ("tail", "head", "both")
    for sides in every:
        metrics = FilteredRanking(graph, CPU).rank(ours, graph.test, sides).metrics()
        assert metrics["mrr"] == pytest.approx(result.get_metric(f"{sides}.realistic.inverse_harmonic_mean_rank"))
        for k in (1, 3, 10):
            assert metrics[f"hits@{k}"] == pytest.approx(result.get_metric(f"{sides}.realistic.hits_at_{k}"))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("norm", [1, 2])
def test_scores_that_overflow_raise(name: str, norm: int) -> None:
    graph = random_graph(3)
    size = ModelSize(len(graph.entities), len(graph.relations), 4, 4.0, norm, graph.train)
    model = build_model(name, size, torch.Generator().manual_seed(0))
    with torch.no_grad():
        model.entity.mul_(1e38)
        model.relation.add_(1.0)
    with pytest.raises(TrainingDiverged, match="not finite"):
        FilteredRanking(graph, CPU).rank(model, graph.test, "both")


@pytest.mark.parametrize("name", ["DistMult", "ComplEx", "RESCAL", "TransE"])
@pytest.mark.parametrize("queries", [1, 2, 7])
@pytest.mark.parametrize("dim", [17, 64])
def test_equal_rows_tie_however_few_queries_there_are(name: str, queries: int, dim: int) -> None:
    names = tuple(f"e{i:04}" for i in range(1003))
    rng = np.random.default_rng(dim)
    triples = np.stack([rng.integers(500, 1003, queries), np.zeros(queries), np.arange(queries)], axis=1).astype(
        np.int64
    )
    graph = ClientGraph(names, ("r",), triples, triples[:0], triples[:0])
    model = build_model(name, ModelSize(1003, 1, dim, 4.0, train=triples), torch.Generator().manual_seed(1))
    with torch.no_grad():
        model.entity[400:500] = model.entity[:100]  # a twin of every answer
        halves = FilteredRanking(graph, CPU)._ranks(model, torch.from_numpy(triples), "tail") % 1
    assert (halves == 0.5).all()  # an odd number of ties, the twin, moves a rank by a half
