"""Figures of all arms on one division of a graph: link prediction, tracing, clusters, and the statement of privacy."""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from secure_kg.data.graph import ClientGraph, TripleArray
from secure_kg.evaluation.ranking import FilteredRanking
from secure_kg.foundation.errors import TrainingDiverged, UserError
from secure_kg.foundation.progress import tracked
from secure_kg.foundation.seeds import generator
from secure_kg.models.base import EmbeddingModel
from secure_kg.privacy.accounting.accountant import Budget
from secure_kg.privacy.confidential.arms import CLEAR_ARMS, MOST_NOISE, PRIVATE_ARMS, Arm
from secure_kg.privacy.confidential.clustering import Clusterings
from secure_kg.privacy.confidential.marking import Divided
from secure_kg.privacy.confidential.tracing import Traced, traced
from secure_kg.privacy.training_config import PrivateTrainingConfig

Models = dict[int, EmbeddingModel]
"""By seed."""


@dataclass(frozen=True, slots=True)
class Work:
    """What is trained, and how often."""

    graph: ClientGraph
    statements: Divided
    config: PrivateTrainingConfig
    rate: float
    seeds: Sequence[int]
    most_noise: float = MOST_NOISE

    def arm(self, name: str) -> Arm:
        return Arm(name, self.graph, self.statements, self.config, self.rate, self.most_noise)

    def trainings(self, budgets: Sequence[Budget]) -> Iterator[tuple[Arm, Budget | None, Models | None]]:
        """All arms, the private ones for each budget. Without models: it diverged by its noise, which is a result."""
        plans: list[tuple[str, Budget | None]] = [(name, None) for name in CLEAR_ARMS]
        private = [name for name in PRIVATE_ARMS if self.arm(name).noised_steps > 0]
        plans += [(name, budget) for budget in budgets for name in private]
        if not self.statements.protects:
            plans.append(("DPKGE", None))
        for name, budget in tracked(plans, "arms trained"):
            arm = self.arm(name)
            try:
                models: Models | None = {seed: arm.trained(seed, budget) for seed in self.seeds}
            except TrainingDiverged:
                if budget is None:
                    raise UserError(f"{name} diverged without any noise: give a smaller --rate") from None
                models = None
            yield arm, budget, models


@dataclass(frozen=True, slots=True)
class Judged:
    """What the models are judged by."""

    part: Literal["valid", "test"] = "test"
    """Ranked statements, which are the held-out ones of tracing as well."""
    most: int = 2000
    """Statements of each kind that are traced."""
    clusters: tuple[int, ...] = ()
    """Numbers of clusters of entity rows that are compared with those of NDP."""

    def ranking(self, graph: ClientGraph) -> FilteredRanking:
        """Known statements are left out of ranks. Whoever chooses by valid ones does not know those of test."""
        if self.part == "valid":
            graph = replace(graph, test=graph.test[:0])
        return FilteredRanking(graph, torch.device("cpu"))


def arm_figures(
    work: Work, budgets: Sequence[Budget], judged: Judged
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """One row for each arm, and for the private ones for each epsilon, means over seeds; and rows of clusters."""
    held_out = work.graph.part(judged.part)
    ranking = judged.ranking(work.graph)
    samples = _some(work.statements.confidential, judged.most, "traced"), _some(held_out, judged.most, "held out")
    clusterings = Clusterings(judged.clusters)
    without_privacy: dict[int, Traced] = {}
    rows = []
    for arm, budget, models in work.trainings(budgets):
        epsilon = None if budget is None else budget.epsilon
        if models is None:
            rows.append(_nothing(arm.name) | _account(arm, budget))
            continue
        clusterings.add(arm.name, epsilon, {seed: one.entity.detach().numpy() for seed, one in models.items()})
        metrics = [ranking.rank(model, held_out, "both").metrics() for model in models.values()]
        row: dict[str, Any] = {key: statistics.mean(one[key] for one in metrics) for key in metrics[0]}
        row |= {"arm": arm.name, "diverged": False, **_no_tracing()}
        if len(samples[0]) > 0:
            found = {seed: traced(model, *samples) for seed, model in models.items()}
            without_privacy = without_privacy or found  # NDP is the first arm
            row |= _tracing(found, None if arm.name == "NDP" else without_privacy)
        rows.append(row | _account(arm, budget))
    return rows, clusterings.rows()


def _tracing(found: dict[int, Traced], without_privacy: dict[int, Traced] | None) -> dict[str, Any]:
    aucs = [one.auc for one in found.values()]
    figures: dict[str, Any] = {"tracing_auc": statistics.mean(aucs), "tracing_auc_by_seed": aucs}
    # Of several p the one in the middle; a mean would be that of the largest.
    figures["tracing_p"] = statistics.median(one.p for one in found.values())
    if without_privacy is None:
        return figures | {"papers_p": None}
    return figures | {"papers_p": statistics.median(one.papers_p(without_privacy[seed]) for seed, one in found.items())}


def _no_tracing() -> dict[str, Any]:
    return dict.fromkeys(("tracing_auc", "tracing_p", "papers_p"))


def _nothing(name: str) -> dict[str, Any]:
    return {"arm": name, "diverged": True, **dict.fromkeys(("mrr", "hits@10", "mean_rank")), **_no_tracing()}


def _account(arm: Arm, budget: Budget | None) -> dict[str, Any]:
    if budget is None:
        return {"epsilon": None, "noise": None}
    statement = arm.statement(budget, "whatever its user looked at")
    return {
        "epsilon": budget.epsilon,
        "noise": statement.noise,
        "auc_bound": _auc_bound(statement.noise, statement.steps) if statement.sampling == 1 else None,
        "in_words": statement.in_words(),
        "statement": statement.to_json(),
    }


def _auc_bound(noise: float, steps: int) -> float:
    """The largest AUC of any tracing of one statement, member against not: Φ(μ / √2), full batches."""
    return statistics.NormalDist().cdf(math.sqrt(steps) / noise / math.sqrt(2))


def _some(triples: TripleArray, most: int, name: str) -> TripleArray:
    """At most so many, drawn by a fixed seed."""
    if len(triples) <= most:
        return triples
    return triples[generator(0, "tracing", name).choice(len(triples), most, replace=False)]
