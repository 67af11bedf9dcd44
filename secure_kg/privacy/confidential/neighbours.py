"""Neighbouring graphs: the rank of a confidential statement with it in training, and without it (section 4.7).

Each statement is taken out of C by itself. Without noise the two trainings differ in that statement alone. With noise
they differ by their noise too. So a third training, again with the statement, tells what noise alone does: if the rank
moves no more without the statement than in a repetition, the model does not give the statement away by its rank.
"""

import statistics
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from secure_kg.data.graph import TripleArray
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.seeds import generator
from secure_kg.models.base import EmbeddingModel
from secure_kg.privacy.accounting.accountant import Budget
from secure_kg.privacy.confidential.arms import Arm
from secure_kg.privacy.confidential.tracing import raw_ranks


def neighbour_rows(arm: Arm, budget: Budget | None, statements: int, seed: int) -> dict[str, Any]:
    """Ranks of some confidential statements, drawn by a fixed seed, under one arm: mean of both sides, no filter."""
    secret = arm.statements.confidential
    if not 1 <= statements <= len(secret):
        raise UserError(f"{statements} neighbouring graphs: there are {len(secret)} confidential statements")
    chosen = np.sort(generator(0, "neighbouring graphs").choice(len(secret), statements, replace=False))
    # Without noise a training can be told from no repetition of it.
    always = arm.trained(seed) if budget is None else None
    lines = []
    for place in chosen.tolist():
        one = secret[place : place + 1]
        fewer = replace(arm.statements, confidential=np.delete(secret, place, axis=0))
        there = _rank(always or arm.trained(seed, budget), one)
        again = there if always else _rank(arm.trained(seed, budget), one)
        lines.append(_Ranks(there, again, _rank(replace(arm, statements=fewer).trained(seed, budget), one)))
    return {
        "arm": arm.name,
        "epsilon": None if budget is None else budget.epsilon,
        "statements": statements,
        "with": statistics.median(line.with_it for line in lines),
        "without": statistics.median(line.without for line in lines),
        "moved": statistics.mean(line.without - line.with_it for line in lines),
        "moved_by_noise": statistics.mean(line.again - line.with_it for line in lines),
        "better_with": statistics.mean(_better(line.with_it, line.without) for line in lines),
        "ranks": [{"with": line.with_it, "again": line.again, "without": line.without} for line in lines],
    }


@dataclass(frozen=True, slots=True)
class _Ranks:
    """Of one statement."""

    with_it: float
    again: float
    without: float


def _better(one: float, other: float) -> float:
    return 0.5 if one == other else float(one < other)


def _rank(model: EmbeddingModel, triple: TripleArray) -> float:
    return float(raw_ranks(model, triple)[0])
