"""Figures of all arms on one division of a graph: link prediction, tracing, and the statement of privacy."""

import math
import statistics
from collections.abc import Sequence
from typing import Any

import torch

from secure_kg.data.graph import ClientGraph, TripleArray
from secure_kg.evaluation.ranking import FilteredRanking
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
    chosen = [(name, None) for name in CLEAR_ARMS]
    plans: list[tuple[str, Budget | None]] = [*chosen]
    plans += [(name, Budget(epsilon, delta)) for epsilon in epsilons for name in PRIVATE_ARMS]
    rows = []
    for name, budget in plans:
        arm = Arm(name, *work)
        metrics, aucs, ps = [], [], []
        for seed in seeds:
            model = arm.trained(seed, budget)
            metrics.append(ranking.rank(model, graph.test, "both").metrics())
            found = traced(model, *samples)
            aucs.append(found.auc)
            if name == "NDP":
                without_privacy[seed] = found
            else:
                ps.append(found.papers_p(without_privacy[seed]))
        row: dict[str, Any] = {"arm": name, "tracing_auc": statistics.mean(aucs), "tracing_auc_by_seed": aucs}
        row |= {key: statistics.mean(one[key] for one in metrics) for key in metrics[0]}
        # Of several p the one in the middle; a mean would be that of the largest.
        row["papers_p"] = statistics.median(ps) if ps else None
        rows.append(row | _account(arm, budget))
    return rows


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
