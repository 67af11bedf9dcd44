"""Figures of all arms on one division of a graph: link prediction, tracing, and the statement of privacy."""

import math
import statistics
from collections.abc import Sequence
from typing import Any

import torch

from secure_kg.data.graph import ClientGraph, TripleArray
from secure_kg.evaluation.ranking import FilteredRanking
from secure_kg.foundation.errors import TrainingDiverged, UserError
from secure_kg.foundation.seeds import generator
from secure_kg.privacy.accounting.accountant import Budget
from secure_kg.privacy.confidential.arms import CLEAR_ARMS, PRIVATE_ARMS, Arm
from secure_kg.privacy.confidential.marking import Divided
from secure_kg.privacy.confidential.tracing import Traced, traced
from secure_kg.privacy.training_config import PrivateTrainingConfig

Work = tuple[ClientGraph, Divided, PrivateTrainingConfig, float]
"""Graph, its division, settings, rate."""


def arm_figures(
    work: Work, budgets: tuple[Sequence[float], float], seeds: Sequence[int], most: int
) -> list[dict[str, Any]]:
    """One row for each arm, and for the private ones for each epsilon; means over seeds.

    `budgets`: epsilons, and one delta. `most`: statements of each kind that are traced.
    """
    graph, division, _, _ = work
    ranking = FilteredRanking(graph, torch.device("cpu"))
    samples = _some(division.confidential, most, "traced"), _some(graph.test, most, "held out")
    without_privacy: dict[int, Traced] = {}
    epsilons, delta = budgets
    plans: list[tuple[str, Budget | None]] = [(name, None) for name in CLEAR_ARMS]
    plans += [(name, Budget(epsilon, delta)) for epsilon in epsilons for name in PRIVATE_ARMS]
    rows = []
    for name, budget in plans:
        arm = Arm(name, *work)
        try:
            models = {seed: arm.trained(seed, budget) for seed in seeds}
        except TrainingDiverged:
            if budget is None:
                raise UserError(f"{name} diverged without any noise: give a smaller --rate") from None
            rows.append(_nothing(name) | _account(arm, budget))  # noise may be too much for a rate, which is a result
            continue
        found = {seed: traced(model, *samples) for seed, model in models.items()}
        if name == "NDP":
            without_privacy = found
        metrics = [ranking.rank(model, graph.test, "both").metrics() for model in models.values()]
        aucs = [one.auc for one in found.values()]
        row: dict[str, Any] = {key: statistics.mean(one[key] for one in metrics) for key in metrics[0]}
        row |= {"arm": name, "diverged": False, "tracing_auc": statistics.mean(aucs), "tracing_auc_by_seed": aucs}
        # Of several p the one in the middle; a mean would be that of the largest.
        ps = [one.papers_p(without_privacy[seed]) for seed, one in found.items()]
        rows.append(row | {"papers_p": None if name == "NDP" else statistics.median(ps)} | _account(arm, budget))
    return rows


def _nothing(name: str) -> dict[str, Any]:
    figures = dict.fromkeys(("mrr", "hits@10", "mean_rank", "tracing_auc", "papers_p"))
    return {"arm": name, "diverged": True, **figures}


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
