"""Rows of a trained table from answers to chosen queries: what opened means give away, and what positions alone do.

Attacker:  the asker of score queries (`protocols.scores`). It chooses queries and knows how a score is made of a query
           and a row.
Has:       the mean scores of all positions, or nothing but the best positions of each query, in order.
Gains:     from means, every row: holders of an entity have the same row after aggregation, so a mean over holders is
           the score of that row, and one equation in it. Inner products are linear in the row. Squared distances are
           linear in the row and its squared length: one unknown more. Least squares solves for all rows at once.
           From positions, an estimate: the rank of a position stands in for its score, in normal scores, and the same
           system is solved with a penalty on long rows. No row comes out exactly, but the estimate gets better with
           every query and every answer. It is the direction of rows that shows: scale and mean are lost.

What the budget of opened means (`protocols.scores.budget`) does: with fewer queries than numbers in a row the system
has no unique solution, and what is orthogonal to all queries stays open.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from secure_kg.attacks.result import AttackResult, Rate, explains_more

Rows = npt.NDArray[np.float64]
"""[positions, width]."""
Queries = npt.NDArray[np.float64]
"""[queries, width]."""
Similarity = Literal["inner product", "squared distance"]

MORE_QUERIES: Final = 16
"""Beyond the width of a row: so many make the system well conditioned."""
TOLERANCE: Final = 1e-3
"""A row counts as recovered if no number of it is off by more."""
_PENALTY: Final = 1.0
"""Of long rows, in the estimate from ranks, as a multiple of the mean squared length of a query's component."""


def scores_of(rows: Rows, queries: Queries, similarity: Similarity) -> npt.NDArray[np.float64]:
    """[queries, positions]: as clients compute them. A distance counts as its negative."""
    products: npt.NDArray[np.float64] = queries @ rows.T
    if similarity == "inner product":
        return products
    of_queries, of_rows = (np.square(vectors).sum(axis=1) for vectors in (queries, rows))
    scores: npt.NDArray[np.float64] = 2 * products - of_queries[:, None] - of_rows[None, :]
    return scores


def chosen_queries(width: int, count: int, draw: np.random.Generator) -> Queries:
    """Random ones: linearly independent, as far as there are dimensions."""
    return draw.normal(size=(count, width))


def rows_from_means(queries: Queries, means: npt.NDArray[np.float64], similarity: Similarity) -> Rows:
    """`means`: [queries, positions]. The shortest solution, where there are several."""
    if similarity == "inner product":
        return _least_squares(queries, means)
    system = np.hstack([2 * queries, -np.ones((len(queries), 1))])
    return _least_squares(system, means + np.square(queries).sum(axis=1)[:, None])[:, :-1]


def _least_squares(system: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> Rows:
    solved: Rows = np.linalg.lstsq(system, right, rcond=None)[0].T.astype(np.float64)
    return solved


def rows_from_positions(queries: Queries, answers: Sequence[npt.NDArray[np.int64]], positions: int) -> Rows:
    """An estimate from the best positions of each query, best first."""
    assumed = np.zeros((len(queries), positions))
    for row, best in zip(assumed, answers, strict=True):
        ranks = (np.arange(len(best)) + 0.5) / positions
        high = np.array([NormalDist().inv_cdf(1 - rank) for rank in ranks])
        row[:] = -high.sum() / max(positions - len(best), 1)  # all scores of a query have mean zero
        row[best] = high
    width = queries.shape[1]
    penalty = _PENALTY * width * np.square(queries).mean()
    solved: Rows = np.linalg.solve(queries.T @ queries + penalty * np.eye(width), queries.T @ assumed).T
    return solved


@dataclass(frozen=True, slots=True)
class Extraction:
    """A guess of rows beside the rows."""

    recovered: int
    """Rows of which no number is off by more than `TOLERANCE`."""
    recovered_by_guessing: int
    """The same of a guess that takes the mean row for every row."""
    positions: int
    rms_error: float
    rms_of_mean_row: float
    correlation: float
    """Of all numbers of the guess with those of the rows, each less its column's mean: blind to scale."""
    guess: Rows = field(repr=False)

    @classmethod
    def score(cls, guess: Rows, truth: Rows) -> "Extraction":
        mean = truth.mean(axis=0, keepdims=True)
        left, right = (guess - guess.mean(axis=0)).reshape(-1), (truth - mean).reshape(-1)
        norm = float(np.linalg.norm(left) * np.linalg.norm(right))
        return cls(
            _within(guess, truth),
            _within(np.broadcast_to(mean, truth.shape), truth),
            len(truth),
            _rms(guess - truth),
            _rms(mean - truth),
            float(left @ right) / norm if norm else 0.0,
            guess,
        )

    @property
    def share(self) -> float:
        return self.recovered / self.positions

    @property
    def explained(self) -> float:
        """Share of the variance of rows, up to scale."""
        return max(0.0, self.correlation) ** 2


def _within(guess: Rows, truth: Rows) -> int:
    return int((np.abs(guess - truth).max(axis=1) <= TOLERANCE).sum())


def _rms(error: Rows) -> float:
    return float(np.sqrt(np.square(error).mean()))


def extraction_result(found: Extraction, queries: int, from_what: str, id: str) -> AttackResult:
    """Whether rows came out exactly. Scores: `rows`, the share recovered, and `explained`, of the variance of rows."""
    rate = Rate(found.recovered, found.positions, found.recovered_by_guessing / found.positions)
    return AttackResult(
        id,
        f"Trained rows from {from_what}",
        "aggregate",
        f"{queries} queries of its own choice, and {from_what}",
        {"rows": rate.value, "explained": found.explained},
        {"rows": rate.chance, "explained": 0.0},
        rate.beats_chance,
        f"{found.recovered} of {found.positions} rows were computed from {queries} queries to within {TOLERANCE:g} "
        f"(rms error {found.rms_error:.1e}; taking the mean row for every row: {found.rms_of_mean_row:.1e}).",
        {"rows": found.positions, "queries": queries},
    )


def estimate_result(found: Extraction, queries: int, from_what: str, id: str) -> AttackResult:
    """Whether an estimate has the direction of rows, though no row exactly: by the share of variance explained."""
    width = found.guess.shape[1]
    noise = 1.0 / (found.positions * width)
    return AttackResult(
        id,
        f"Estimate of trained rows from {from_what}",
        "aggregate",
        f"{queries} queries of its own choice, and {from_what}",
        {"explained": found.explained},
        {"explained": noise},
        found.correlation > 0 and explains_more(found.explained, found.positions * width, noise),
        f"An estimate from {queries} queries explains {found.explained:.1%} of the variance of rows, up to scale. More "
        "queries and more answers per query make it better.",
        {"rows": found.positions, "queries": queries},
    )
