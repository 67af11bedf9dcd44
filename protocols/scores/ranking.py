"""Ranking of positions by mean score over their holders, exactly.

The mean of a position is S / c, with S the sum of the encoded scores and c the number of those who gave one. Means are
compared as the whole numbers S L / c, where L = lcm(1..n). Of equal means the lower position comes first. A position
with c = 0 is no answer.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from protocols.scores.terms import ScoreTerms

Positions = npt.NDArray[np.int64]
Keys = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ranking:
    """What the asker reads of a batch. Kept out of reprs."""

    positions: tuple[Positions, ...] = field(repr=False)
    """Of each query the best positions, best first: `top` of them, or all that have a score."""
    contributors: frozenset[int]
    """Whose scores are in it, the asker's aside."""
    means: tuple[npt.NDArray[np.float64], ...] | None = field(default=None, repr=False)
    """Of each query the mean scores of these positions, where the backend opens them."""


@dataclass(frozen=True, slots=True)
class ScoreSums:
    """Sums of encoded scores [queries, positions], and how many clients gave one [positions]."""

    sums: npt.NDArray[np.int64] = field(repr=False)
    counts: npt.NDArray[np.int64] = field(repr=False)

    def plus(self, other: "ScoreSums") -> "ScoreSums":
        return ScoreSums(self.sums + other.sums, self.counts + other.counts)


def keys_of(sums: ScoreSums, terms: ScoreTerms) -> Keys:
    """[queries, positions]: mean times L; of positions without a score 0."""
    weights = np.where(sums.counts > 0, terms.common_multiple // np.maximum(sums.counts, 1), 0)
    keys: Keys = sums.sums * weights
    return keys


def rank(sums: ScoreSums, contributors: frozenset[int], terms: ScoreTerms) -> Ranking:
    """The answer to a batch from opened sums."""
    answers = np.flatnonzero(sums.counts > 0)
    keys = keys_of(sums, terms)
    best = tuple(answers[_best(row[answers], terms.top)] for row in keys)
    unit = terms.codec.unit / terms.common_multiple
    means = tuple(row[positions] * unit for row, positions in zip(keys, best, strict=True))
    return Ranking(best, contributors, means)


def _best(keys: Keys, top: int) -> Positions:
    """Indices of the `top` largest keys, largest first, of equal ones the first."""
    candidates: Positions = np.arange(len(keys))
    if top < len(keys):
        least = np.partition(keys, len(keys) - top)[len(keys) - top]
        candidates = np.flatnonzero(keys >= least)
    order = np.argsort(-keys[candidates], kind="stable")
    return candidates[order[:top]]
