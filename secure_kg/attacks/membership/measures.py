"""Measures of a membership attack: how well its scores part members from others.

AUC is the probability that a member scores above an other one, ties counting half. Its interval is DeLong's
(DeLong et al. 1988, as ranks: Sun and Xu 2014). On balanced sets whoever always answers yes has an F1 of 2/3, so
every F1 stands beside that of always-yes. `f1` takes its threshold from triples that the attacker knows to be no
members; `best_f1` takes the best of all thresholds, which needs the truth: DP-FLames (section 5) reports that one.
"""

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float64]
"""[targets]: larger means more likely a member."""

_LEVEL: Final = 1.959964
"""Of the normal distribution: 95 % lie within."""
LOW_RATE: Final = 0.01
"""The rate of false positives at which the true ones are told."""
KNOWN_RATE: Final = 0.1
"""The threshold of `f1` is such that this share of known non-members lies above it."""
_POINTS: Final = 100


@dataclass(frozen=True, slots=True)
class Measures:
    """What an attack achieved on one set of targets."""

    members: int
    others: int
    auc: float
    low: float
    """Lower end of the 95 % interval of `auc`."""
    high: float
    tpr: float
    """Rate of true positives at a rate of false ones of 1 % at most."""
    f1: float | None
    """None: there were no known non-members to take a threshold from."""
    best_f1: float
    always_yes: float
    """The F1 of whoever always answers yes."""
    roc: tuple[tuple[float, float], ...] = field(repr=False)
    """Points (rate of false positives, rate of true ones), ascending."""


def measure(members: Scores, others: Scores, known: Scores | None = None) -> Measures:
    """`members`, `others`: scores of targets by the truth. `known`: scores of known non-members."""
    if not len(members) or not len(others):
        raise ValueError("an attack is measured on members and others, at least one of each")
    members, others = _finite(members), _finite(others)
    auc, error = auc_and_error(members, others)
    f1 = None
    if known is not None and len(known):
        f1 = f1_at(members, others, float(np.quantile(_finite(known), 1 - KNOWN_RATE)))
    count, total = len(members), len(members) + len(others)
    return Measures(
        count,
        len(others),
        auc,
        max(0.0, auc - _LEVEL * error),
        min(1.0, auc + _LEVEL * error),
        true_positives_at(members, others, LOW_RATE),
        f1,
        best_f1(members, others),
        2 * count / (total + count),
        roc_points(members, others),
    )


def auc_and_error(members: Scores, others: Scores) -> tuple[float, float]:
    """The AUC and its standard error. If no pair stands the wrong way round, the error is that of one which does."""
    below = _placements(members, others)
    above = 1.0 - _placements(others, members)
    auc = float(below.mean())
    variance = sum(float(one.var(ddof=1)) / len(one) for one in (below, above) if len(one) > 1)
    if variance == 0.0:
        variance = (1.0 / min(len(members), len(others))) ** 2
    return auc, math.sqrt(variance)


def true_positives_at(members: Scores, others: Scores, rate: float) -> float:
    """The share of members above a threshold that at most `rate` of the others pass."""
    ordered = np.sort(others)[::-1]
    return float((members > ordered[int(rate * len(others))]).mean())


def f1_at(members: Scores, others: Scores, threshold: float) -> float:
    """F1 of answering yes to every score of at least `threshold`."""
    hits, false = int((members >= threshold).sum()), int((others >= threshold).sum())
    return 2 * hits / (hits + false + len(members))


def best_f1(members: Scores, others: Scores) -> float:
    """The F1 at the best of all thresholds."""
    thresholds = np.unique(np.concatenate((members, others)))
    hits = len(members) - np.searchsorted(np.sort(members), thresholds)
    false = len(others) - np.searchsorted(np.sort(others), thresholds)
    return float((2 * hits / (hits + false + len(members))).max())


def roc_points(members: Scores, others: Scores) -> tuple[tuple[float, float], ...]:
    """About a hundred points of the curve, from (0, 0) to (1, 1)."""
    thresholds = np.unique(np.concatenate((members, others)))[::-1]
    step = max(1, len(thresholds) // _POINTS)
    chosen = np.append(thresholds[::step], thresholds[-1])
    right = 1 - np.searchsorted(np.sort(members), chosen) / len(members)
    false = 1 - np.searchsorted(np.sort(others), chosen) / len(others)
    return ((0.0, 0.0), *((float(x), float(y)) for x, y in zip(false, right, strict=True)))


def _placements(of: Scores, among: Scores) -> Scores:
    """For each of `of` the share of `among` below it, ties counting half."""
    ordered = np.sort(among)
    below, up_to = np.searchsorted(ordered, of, "left"), np.searchsorted(ordered, of, "right")
    placed: Scores = (below + up_to) / (2 * len(among))
    return placed


def _finite(scores: Scores) -> Scores:
    """A ratio may have no value: then it says nothing for membership."""
    return np.nan_to_num(np.asarray(scores, dtype=np.float64), nan=-np.inf, posinf=np.inf, neginf=-np.inf)
