"""One client's fusion: fit, choose by its own validation triples, test. It needs its own graph and its own two models.

Train triples are those that both models were fitted to, so weights that suit them need not suit new ones. The choice
is therefore among all epochs and, as epoch 0, either model alone, by validation MRR: what is chosen is never worse on
validation than the better of the two.
"""

from dataclasses import dataclass

import torch

from secure_kg.data.graph import ClientGraph
from secure_kg.evaluation.ranking import FilteredRanking
from secure_kg.evaluation.sums import RankingSums
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.seeds import generator
from secure_kg.fusion.fit import Epoch, FusionSettings, differences, fit
from secure_kg.fusion.scores import FEDERATED_ALONE, SINGLE_ALONE, ScorePair, Weights, rank_each
from secure_kg.learning.config import TrainingConfig
from secure_kg.models.base import EmbeddingModel, ModelSize
from secure_kg.models.registry import build_model
from secure_kg.runs.checkpoint import Arrays
from secure_kg.runs.records.record import Figures

MODELS = ("single", "federated", "fused")


@dataclass(frozen=True, slots=True)
class Ranked:
    """Test results of one model."""

    tail: RankingSums
    both: RankingSums

    def __add__(self, other: "Ranked") -> "Ranked":
        return Ranked(self.tail + other.tail, self.both + other.both)

    def record(self) -> Figures:
        """Tail-side figures at the top level, both sides below."""
        return {**self.tail.metrics(), "both_sides": self.both.metrics()}


@dataclass(frozen=True, slots=True)
class Fusion:
    """What one client got. `epoch` 0: one of the models alone was the best on validation."""

    epoch: int
    weights: Weights
    epochs: list[Epoch]
    valid_mrr: dict[str, float]
    test: dict[str, Ranked]

    @property
    def chosen(self) -> str:
        return {SINGLE_ALONE: "single alone", FEDERATED_ALONE: "federated alone"}.get(
            self.weights, f"epoch {self.epoch}"
        )


def saved_model(arrays: Arrays, config: TrainingConfig, graph: ClientGraph, device: torch.device) -> EmbeddingModel:
    """The model of a finished run, on the graph it was trained on."""
    numbers = len(graph.entities), len(graph.relations)
    size = ModelSize(*numbers, config.dim, config.margin, config.norm, graph.train)
    model = build_model(config.model, size, torch.Generator())
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name not in arrays or arrays[name].shape != tuple(parameter.shape):
                raise UserError("the saved model does not fit the client's graph: its data have changed")
            parameter.copy_(torch.from_numpy(arrays[name]))
    return model.to(device)


def fuse(
    models: tuple[EmbeddingModel, EmbeddingModel],
    graph: ClientGraph,
    settings: FusionSettings,
    seed: int,
    client: int,
    device: torch.device,
) -> Fusion:
    """`models`: the client's own and the federated one."""
    pair, ranking = ScorePair(*models), FilteredRanking(graph, device)
    rng = generator(seed, "fusion", client)
    pairs = differences(models, graph, graph.part(settings.fit_on), settings.negatives, rng, device)
    epochs = fit(pairs, settings)
    candidates = [FEDERATED_ALONE, SINGLE_ALONE, *(epoch.weights for epoch in epochs)]
    ranked = rank_each(ranking, pair, candidates, graph.valid, "tail", len(graph.entities))
    mrr = [one.metrics()["mrr"] for one in ranked]
    best = max(range(len(mrr)), key=mrr.__getitem__)  # the first of equals: the simpler one
    chosen = [SINGLE_ALONE, FEDERATED_ALONE, candidates[best]]
    tails, heads = (
        rank_each(ranking, pair, chosen, graph.test, side, len(graph.entities)) for side in ("tail", "head")
    )
    return Fusion(
        epoch=max(0, best - 1),
        weights=candidates[best],
        epochs=epochs,
        valid_mrr=dict(zip(MODELS, (mrr[1], mrr[0], mrr[best]), strict=True)),
        test={name: Ranked(tail, tail + head) for name, tail, head in zip(MODELS, tails, heads, strict=True)},
    )
