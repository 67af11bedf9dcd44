"""Sums over nearly equal sets of clients, subtracted from each other.

Attacker: the server, which reads sums and knows who is in each of them.
Has:      totals of several sums and their sets of contributors, which differ where clients drop out or are drawn.
Does:     looks for linear combinations in which all but a few clients cancel. For quantities that do not change between
          the sums (numbers of test triples) the combination of the totals is then exactly those clients' value; for
          ones that change little (rows) nearly so.
Gains:    what one client contributed, though no sum was over fewer than the bound.
Paper:    named as a limit of secure aggregation since Bonawitz et al. 2017; So et al. 2023 ("Securing Secure
          Aggregation") work it out over rounds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from secure_kg.attacks.result import AttackResult, Rate, explains_more
from secure_kg.attacks.static_perturbation import explained

Participation = npt.NDArray[np.bool_]
"""Shape (sums, clients): who is in which sum."""

_PATTERNS_IN_PAIRS: Final = 2000
"""With more different sets than that, pairwise differences are left to the elimination."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """A combination of sums in which only some clients remain."""

    coefficients: tuple[Fraction, ...] = field(repr=False)
    """[sums]: factors of the totals."""
    clients: tuple[int, ...]
    """Columns of the participation that are left, in ascending order."""
    weights: tuple[Fraction, ...]
    """[clients]: with which factors they remain."""


def isolating_differences(participation: Participation, threshold: int) -> list[Isolation]:
    """Combinations that leave at least one and fewer than `threshold` clients; for each set of clients the first found.

    Tried in this order: single sums, differences of two, the reduced row echelon form over the rationals. With a
    threshold of 2 the list is complete: if any combination leaves one client alone, its unit vector lies in the row
    space, and a unit vector there is a row of the reduced form. For larger thresholds the least number of clients that
    can be left is the minimum distance of a code, which nobody computes fast; then the list may lack some.
    """
    sums = np.asarray(participation, dtype=np.bool_)
    if sums.ndim != 2:
        raise ValueError("participation has the shape (sums, clients)")
    if threshold < 2 or not sums.size:
        return []
    patterns, first = np.unique(sums, axis=0, return_index=True)
    found: dict[tuple[int, ...], Isolation] = {}
    for row, coefficients in _combinations(patterns.astype(np.int64), threshold):
        left = tuple(int(column) for column in np.flatnonzero(row))
        if 0 < len(left) < threshold and left not in found:
            spread = [Fraction(0)] * len(sums)
            for pattern, factor in coefficients.items():
                spread[int(first[pattern])] = factor
            found[left] = Isolation(tuple(spread), left, tuple(Fraction(row[column]) for column in left))
    return list(found.values())


def isolated_value(isolation: Isolation, totals: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """What the combination makes of totals [sums, ...]: the weighted sum of the remaining clients' contributions.

    If one client is left, divided by its weight: its contribution itself.
    """
    factors = np.array([float(factor) for factor in isolation.coefficients])
    value: npt.NDArray[np.float64] = np.tensordot(factors, totals.astype(np.float64), axes=1)
    return value / float(isolation.weights[0]) if len(isolation.clients) == 1 else value


def counts_by_differencing(
    participation: Participation, totals: npt.NDArray[np.int64], truth: Mapping[int, npt.NDArray[np.int64]]
) -> AttackResult:
    """Totals [sums, m] of counts that stay the same, such as numbers of test triples.

    `truth`: for each client, by column, its counts [m]. Score `exact`: for how many of these clients all counts were
    found to the last one; chance: that the clients' mean in the first sum is right for them.
    """
    alone = {one.clients[0]: one for one in isolating_differences(participation, 2)}
    mean = np.rint(totals[0] / max(int(participation[0].sum()), 1)) if len(totals) else np.zeros(0)
    guessed = sum(bool(np.array_equal(mean, counts)) for counts in truth.values())
    hits = sum(
        bool(np.array_equal(np.rint(isolated_value(alone[client], totals)), counts))
        for client, counts in truth.items()
        if client in alone
    )
    rate = Rate(hits, len(truth), guessed / max(len(truth), 1))
    return AttackResult(
        "differencing-counts",
        "Counts of single clients from differences of sums",
        "aggregate",
        "the sums of a run and who is in each of them",
        {"exact": rate.value},
        {"exact": rate.chance},
        hits > guessed,  # an exact value needs no statistics: it is not guessed by luck
        f"By subtracting sums over different clients the server gets the exact counts of {hits} of {len(truth)} "
        "clients.",
        {"clients": len(truth), "sums": len(totals), "isolated": len(alone)},
    )


def rows_by_differencing(
    participation: Participation, totals: npt.NDArray[np.floating], truth: Mapping[int, npt.NDArray[np.floating]]
) -> AttackResult:
    """Totals [sums, ...] of values that change between the sums, such as rows.

    `truth`: for each client, by column, its contribution [...] to any of the sums. Score `explained`: the squared
    correlation of what is isolated with it, the mean over the clients that can be isolated; chance: that of the mean
    contribution of the first sum, which the server is meant to have.
    """
    alone = {one.clients[0]: one for one in isolating_differences(participation, 2) if one.clients[0] in truth}
    mean = totals[0].astype(np.float64) / max(int(participation[0].sum()), 1) if len(totals) else np.zeros(0)
    scores = [explained(truth[client].astype(np.float64), isolated_value(one, totals)) for client, one in alone.items()]
    usual = [explained(truth[client].astype(np.float64), mean) for client in alone]
    score, chance = (float(np.mean(values)) if values else 0.0 for values in (scores, usual))
    return AttackResult(
        "differencing-rows",
        "Rows of single clients from differences of sums",
        "aggregate",
        "the sums of a run and who is in each of them",
        {"explained": score},
        {"explained": chance},
        bool(alone) and explains_more(score, int(mean.size), chance),
        f"Differences of sums leave {len(alone)} clients by themselves and explain {score:.2%} of the variance of "
        f"their values; the mean over everybody explains {chance:.2%}.",
        {"clients": len(truth), "sums": len(totals), "isolated": len(alone)},
    )


def _combinations(patterns: npt.NDArray[np.int64], threshold: int) -> Iterator[tuple[Any, dict[int, Fraction]]]:
    """Candidates as a row over the clients and factors by pattern; patterns [n, clients] are different."""
    for number in np.flatnonzero(patterns.sum(axis=1) < threshold).tolist():
        yield patterns[number], {number: Fraction(1)}
    if len(patterns) <= _PATTERNS_IN_PAIRS:
        for one in range(len(patterns)):
            apart = (patterns[one + 1 :] != patterns[one]).sum(axis=1)
            for other in (one + 1 + np.flatnonzero(apart < threshold)).tolist():
                difference = patterns[one] - patterns[other]
                sign = 1 if difference[np.flatnonzero(difference)[0]] > 0 else -1
                yield sign * difference, {one: Fraction(sign), other: Fraction(-sign)}
    reduced = reduced_rows(patterns)
    clients = patterns.shape[1]
    for row in reduced:
        yield row[:clients], _factors(row[clients:])
    if threshold > 2:
        for first, second in combinations(reduced, 2):
            for row in (first + second, first - second):
                yield row[:clients], _factors(row[clients:])


def reduced_rows(patterns: npt.NDArray[np.int64]) -> list[npt.NDArray[np.object_]]:
    """The reduced row echelon form of [patterns | identity] over the rationals, without rows that are dependent.

    Each row [clients + patterns] has what remains of the clients, and from which patterns it is made.
    """
    basis: list[tuple[int, npt.NDArray[np.object_]]] = []
    clients = patterns.shape[1]
    for number, pattern in enumerate(patterns):
        row = np.full(clients + len(patterns), Fraction(0), dtype=object)
        row[:clients] = [Fraction(int(entry)) for entry in pattern]
        row[clients + number] = Fraction(1)
        for pivot, earlier in basis:
            if row[pivot]:
                row = row - row[pivot] * earlier
        nonzero = np.flatnonzero(row[:clients] != 0)
        if not len(nonzero):
            continue
        pivot = int(nonzero[0])
        row = row / row[pivot]
        basis = [(at, other - other[pivot] * row if other[pivot] else other) for at, other in basis]
        basis.append((pivot, row))
    return [row for _, row in sorted(basis, key=lambda entry: entry[0])]


def _factors(row: Sequence[Fraction] | npt.NDArray[np.object_]) -> dict[int, Fraction]:
    return {number: factor for number, factor in enumerate(row) if factor}
