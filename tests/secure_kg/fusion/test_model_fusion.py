"""FedE's model fusion: equations 5 and 6, and a choice that is never worse on validation than either model."""

import numpy as np
import pytest
import torch
from torch import Tensor

from secure_kg.data.graph import ClientGraph, Side
from secure_kg.data.partition import partition
from secure_kg.data.sources import load_source
from secure_kg.evaluation.ranking import FilteredRanking
from secure_kg.foundation.errors import UserError
from secure_kg.fusion.fit import FusionSettings, differences, fit, fusion_loss
from secure_kg.fusion.fusing import fuse, saved_model
from secure_kg.fusion.scores import FEDERATED_ALONE, SINGLE_ALONE, FusedScorer, ScorePair, Weights, rank_each
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.kge import KgeLearner
from secure_kg.models.base import EmbeddingModel, ModelSize
from secure_kg.models.registry import build_model

pytestmark = pytest.mark.long

CPU = torch.device("cpu")
QUICK = FusionSettings(epochs=3, negatives=14)


@pytest.fixture(scope="module")
def graph() -> ClientGraph:
    return partition(load_source("nations"), 2, "triples", 0)[0]


def trained(graph: ClientGraph, rounds: int, seed: int, model: str = "TransE") -> EmbeddingModel:
    torch.set_num_threads(1)
    config = TrainingConfig(model=model, dim=8, negatives=14, margin=4.0, lr=0.02, batch_size=128, local_epochs=1)
    trainer = KgeLearner(graph, config, CPU, seed, 1)
    for number in range(1, rounds + 1):
        trainer.train(number)
    return trainer.model


def constant(graph: ClientGraph) -> EmbeddingModel:
    """Scores every triple alike: all rows are zero."""
    size = ModelSize(len(graph.entities), len(graph.relations), 8, 4.0)
    model = build_model("TransE", size, torch.Generator())
    with torch.no_grad():
        model.entity.zero_()
        model.relation.zero_()
    return model


def test_fused_scores_are_equation_5(graph: ClientGraph) -> None:
    single, federated = trained(graph, 2, 0), trained(graph, 2, 1)
    triples = torch.from_numpy(graph.test)
    sides: tuple[Side, Side] = ("tail", "head")
    for side in sides:
        fused = FusedScorer(ScorePair(single, federated), Weights(2.0, -0.5, 3.0)).scores(triples, side)
        expected = 2.0 * single.scores(triples, side).double() - 0.5 * federated.scores(triples, side).double() + 3.0
        assert torch.equal(fused, expected)


def test_either_model_alone_and_any_bias_rank_as_the_model_does(graph: ClientGraph) -> None:
    single, federated = trained(graph, 3, 0), trained(graph, 5, 1)
    ranking, pair = FilteredRanking(graph, CPU), ScorePair(single, federated)
    tried = [SINGLE_ALONE, FEDERATED_ALONE, Weights(0.0, 7.0, -5.0)]
    sides: tuple[Side, Side] = ("tail", "head")
    for side in sides:
        ranked = rank_each(ranking, pair, tried, graph.test, side, len(graph.entities))
        direct = [ranking.rank(model, graph.test, side) for model in (single, federated, federated)]
        assert ranked == direct


def test_scores_are_computed_once_for_many_weights(graph: ClientGraph) -> None:
    class Counting:
        calls = 0

        def scores(self, triples: Tensor, side: Side) -> Tensor:
            self.calls += 1
            return torch.zeros(len(triples), len(graph.entities))

    counting = Counting()
    tried = [Weights(1.0, float(k)) for k in range(6)]
    rank_each(FilteredRanking(graph, CPU), ScorePair(counting, Counting()), tried, graph.test, "tail", 14)
    assert counting.calls == 1


@pytest.mark.parametrize("which", ["single", "federated"])
def test_a_constant_model_leaves_the_other_ones_ranking(graph: ClientGraph, which: str) -> None:
    good, blank = trained(graph, 20, 0), constant(graph)
    models = (good, blank) if which == "single" else (blank, good)
    fusion = fuse(models, graph, QUICK, 0, 1, CPU)
    assert fusion.test["fused"] == fusion.test[which]
    ranking, pair = FilteredRanking(graph, CPU), ScorePair(*models)
    weights = [epoch.weights for epoch in fusion.epochs]
    assert all(getattr(one, which) > 0 for one in weights)
    ranked = rank_each(ranking, pair, weights, graph.test, "tail", len(graph.entities))
    assert all(one == fusion.test[which].tail for one in ranked)


def test_the_loss_is_equation_6() -> None:
    rng = np.random.default_rng(0)
    positive, negative, weights = rng.normal(size=(50, 2)), rng.normal(size=(50, 2)), np.array([3.0, 1.5])
    scores, others = positive @ weights + 4.0, negative @ weights + 4.0
    expected = np.maximum(0.0, 2.0 - scores + others).mean()
    pairs = torch.from_numpy(positive - negative)
    w = torch.from_numpy(weights).requires_grad_()
    loss = fusion_loss(w, pairs, 2.0)
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-12)
    loss.backward()
    inside = 2.0 - scores + others > 0
    gradient = -((positive - negative) * inside[:, None]).mean(0)  # the hinge has no slope beyond the margin
    assert w.grad is not None
    assert w.grad.tolist() == pytest.approx(gradient.tolist(), rel=1e-12)
    assert 0 < inside.sum() < 50


def test_pairs_are_of_a_train_triple_and_a_triple_that_is_none(graph: ClientGraph) -> None:
    single, federated = trained(graph, 1, 0), trained(graph, 1, 1)
    pairs = differences((single, federated), graph, graph.train, 10**6, np.random.default_rng(0), CPU)
    known = {tuple(triple) for triple in graph.train.tolist()}
    expected = []
    with torch.no_grad():
        scores = [model.scores(torch.from_numpy(graph.train), "tail").numpy() for model in (single, federated)]
    for row, (h, r, t) in enumerate(graph.train.tolist()):
        others = [other for other in range(len(graph.entities)) if (h, r, other) not in known]
        expected += [[float(one[row, t] - one[row, other]) for one in scores] for other in others]
    assert len(pairs) == len(expected)
    found = pairs[pairs[:, 0].argsort()].numpy()
    wanted = np.array(expected)[np.argsort(np.array(expected)[:, 0], kind="stable")]
    assert np.allclose(found[:, 0], wanted[:, 0], atol=1e-5)
    assert pairs.sum(0).tolist() == pytest.approx(wanted.sum(0).tolist(), rel=1e-4, abs=1e-2)


def test_the_fit_lowers_the_loss_whatever_the_scales() -> None:
    rng = np.random.default_rng(1)
    informative = rng.normal(1.0, 1.0, size=2000)
    noise = rng.normal(0.0, 1.0, size=2000)
    plain = torch.from_numpy(np.column_stack((noise, informative)))
    stretched = plain * torch.tensor([1000.0, 0.01], dtype=torch.float64)
    settings = FusionSettings(beta=10.0, epochs=10)
    first, second = fit(plain, settings), fit(stretched, settings)
    assert first[-1].loss < first[0].loss
    assert abs(first[-1].weights.single) < 0.1 * first[-1].weights.federated
    for one, other in zip(first, second, strict=True):
        assert other.loss == pytest.approx(one.loss, rel=1e-9)
        assert other.weights.federated == pytest.approx(100 * one.weights.federated, rel=1e-6)
    assert fit(plain[:0], settings) == []


@pytest.mark.parametrize("model", ["TransE", "DistMult"])
def test_the_choice_is_never_worse_on_validation(graph: ClientGraph, model: str) -> None:
    for rounds in ((0, 8), (8, 6)):
        single, federated = trained(graph, rounds[0], 0, model), trained(graph, rounds[1], 1, model)
        fusion = fuse((single, federated), graph, QUICK, 0, 1, CPU)
        assert fusion.valid_mrr["fused"] >= max(fusion.valid_mrr["single"], fusion.valid_mrr["federated"])
        ranking = FilteredRanking(graph, CPU)
        scorer = FusedScorer(ScorePair(single, federated), fusion.weights)
        assert ranking.rank(scorer, graph.valid).metrics()["mrr"] == fusion.valid_mrr["fused"]
        assert ranking.rank(scorer, graph.test, "both") == fusion.test["fused"].both
        assert ranking.rank(single, graph.test) == fusion.test["single"].tail
        again = fuse((single, federated), graph, QUICK, 0, 1, CPU)
        assert again.weights == fusion.weights


def test_a_saved_model_must_fit_the_graph(graph: ClientGraph) -> None:
    config = TrainingConfig(dim=8)
    arrays = {"entity": np.zeros((len(graph.entities), 8), np.float32), "relation": np.zeros((3, 8), np.float32)}
    with pytest.raises(UserError, match="data have changed"):
        saved_model(arrays, config, graph, CPU)
