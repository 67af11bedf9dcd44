"""How well guessed tails of triples match the true ones: Hits@k and the area under the curve, by head.

Other true tails of a head are left out of the ranking. Candidates that a guess knows nothing of are tied below all
others; of ties the mean rank counts.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from secure_kg.foundation.seeds import generator

Scores = npt.NDArray[np.float64]
"""[heads, candidates]; -inf: nothing is known."""
Truth = npt.NDArray[np.bool_]
"""[heads, candidates]: which are tails."""
TOP: Final = 10
_DRAWS: Final = 2000


@dataclass(frozen=True, slots=True)
class Guessed:
    """Over all true tails of a relation."""

    hits: float
    """Share of true tails among the `TOP` best."""
    auc: float
    """Probability that a true tail stands before another candidate."""


def guessed(scores: Scores, hidden: Truth, true: Truth) -> Guessed:
    """`hidden`: the tails to be found; `true`: all tails, known ones included."""
    hits, areas = list[float](), list[float]()
    for row, wanted, tails in zip(scores, hidden, true, strict=True):
        others = row[~tails]
        for score in row[wanted]:
            before, ties = float((others > score).sum()), float((others == score).sum())
            hits.append(float(np.clip((TOP - before) / (ties + 1), 0, 1)))  # ties stand in random order
            areas.append(1 - (before + ties / 2) / max(len(others), 1))
    return Guessed(float(np.mean(hits)), float(np.mean(areas)))


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over trials and where it lies in 95 of 100 draws of the trials with replacement."""

    mean: float
    low: float
    high: float
    trials: int

    @classmethod
    def of(cls, values: npt.ArrayLike, seed: int = 0) -> "Interval":
        found = np.asarray(values, dtype=np.float64)
        drawn = generator(seed, "bootstrap").integers(len(found), size=(_DRAWS, len(found)))
        low, high = np.quantile(found[drawn].mean(axis=1), (0.025, 0.975))
        return cls(float(found.mean()), float(low), float(high), len(found))
