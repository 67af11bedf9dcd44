"""Rows of entities from scores that are opened, or from the best positions (`secure_kg.attacks.extraction`).

Attacker:  the asker. It lets points of its own choice be scored, as the last step of a question does.
Has:       the mean score of every position that enough others hold, or the best positions.
Gains:     from means all these rows. Distances are squared first: holders of an averaged row have it alike, so a mean
           over them is the distance itself.
Without:   the asker has the rows of its own entities by itself. Of others it takes the mean row.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.foundation.errors import SumAbandoned
from protocols.scores.ranking import Ranking
from secure_kg.attacks.extraction import TOLERANCE, Extraction, Rows, Similarity, rows_from_means, rows_from_positions
from secure_kg.attacks.questions.curious import Curious, as_asker
from secure_kg.attacks.questions.parties import Parties
from secure_kg.foundation.seeds import generator
from secure_kg.models.queries.shapes import Score

_LENGTH: Final = 30.0
"""Of a chosen point: so far away that distances rank like inner products, and within the bound of scores."""


@dataclass(frozen=True, slots=True)
class RowsOpened:
    """Rows of entities that others hold, as computed from answers."""

    queries: int
    """That were answered."""
    positions: int
    """Of which there is anything in the answers."""
    computed: int
    lacked: int
    """How many of the positions the asker has no row of by itself."""
    computed_lacked: int
    explained: float
    """Share of the variance of rows, up to scale."""


def chosen_points(dim: int, count: int, seed: int) -> npt.NDArray[np.float32]:
    drawn = generator(seed, "chosen points").normal(size=(count, dim))
    points: npt.NDArray[np.float32] = (_LENGTH / math.sqrt(dim) * drawn).astype(np.float32)
    return points


def opened(parties: Parties, points: npt.NDArray[np.float32]) -> list[Ranking]:
    """One session: as many answers as others give."""

    def ask(curious: Curious) -> list[Ranking]:
        found = list[Ranking]()
        for point in points:
            try:
                found.append(curious.best(point))
            except SumAbandoned:
                break
        return found

    return as_asker(parties, ask)


def attack_scores(parties: Parties, queries: int, seed: int = 0) -> RowsOpened:
    """Means or positions, by the backend of `parties`."""
    points = chosen_points(parties.public.dim, queries, seed)
    answers = opened(parties, points)
    asked = points[: len(answers)].astype(np.float64)
    if not answers:
        return RowsOpened(0, 0, 0, 0, 0, 0.0)
    if answers[0].means is None:
        return from_positions(parties, points, [one.positions[0] for one in answers])
    places = np.sort(answers[0].positions[0])
    means = np.stack([_by_position(one, parties.public.union)[places] for one in answers])
    return scored(parties, places, rows_from_means(asked, *_linear(means, parties.public.score)), len(answers))


def from_positions(
    parties: Parties, points: npt.NDArray[np.float32], answers: Sequence[npt.NDArray[np.int64]]
) -> RowsOpened:
    """An estimate from the best positions of each point."""
    asked = points[: len(answers)].astype(np.float64)
    guess = rows_from_positions(asked, answers, parties.public.union)
    return scored(parties, np.arange(parties.public.union), guess, len(answers))


def positions_in_clear(parties: Parties, points: npt.NDArray[np.float32]) -> list[npt.NDArray[np.int64]]:
    """What `topk` answers, computed by somebody who has everything: for more points than sessions have time for."""
    found = list[npt.NDArray[np.int64]]()
    for point in points:
        sums, counts = np.zeros(parties.public.union), np.zeros(parties.public.union)
        for one in parties.knowledge.values():
            scores = one.scores(point[None])
            sums[scores.held] += scores.values[0]
            counts[scores.held] += 1
        means = np.where(counts > 0, sums / np.maximum(counts, 1), -np.inf)
        best = np.argsort(-means, kind="stable")[: parties.public.top]
        found.append(best[counts[best] > 0].astype(np.int64))
    return found


def _by_position(ranking: Ranking, union: int) -> npt.NDArray[np.float64]:
    if ranking.means is None:
        raise ValueError("this backend opens no means")
    row = np.full(union, np.nan)
    row[ranking.positions[0]] = ranking.means[0]
    return row


def _linear(means: npt.NDArray[np.float64], score: Score) -> tuple[npt.NDArray[np.float64], Similarity]:
    """As equations in the rows."""
    if score == "dot":
        return means, "inner product"
    return (-np.square(means) if score == "l2" else means), "squared distance"


def scored(parties: Parties, places: npt.NDArray[np.int64], guess: Rows, queries: int) -> RowsOpened:
    """`guess`: [places]; only positions that another client holds count."""
    truth: dict[int, npt.NDArray[np.float64]] = {}
    for one in parties.others.values():
        rows = one.entity_rows(one.vocabulary.entities, for_others=False).values
        truth |= dict(zip(one.positions.own.tolist(), rows.astype(np.float64), strict=True))
    kept = [number for number, place in enumerate(places.tolist()) if place in truth]
    right = np.stack([truth[int(places[number])] for number in kept])
    found, own = Extraction.score(guess[kept], right), set(parties.own.positions.own.tolist())
    lacks = np.array([int(places[number]) not in own for number in kept], dtype=np.bool_)
    exact = np.abs(guess[kept] - right).max(axis=1) <= TOLERANCE
    return RowsOpened(
        queries, len(kept), int(exact.sum()), int(lacks.sum()), int((exact & lacks).sum()), found.explained
    )
