"""The made-up scores of a measurement, the same in every process, and what every batch must come to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.bundles import ScoreBackend
from protocols.foundation.digests import digest
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.scores.batches import ATTEMPTS
from protocols.scores.interface import Answer, Scores
from protocols.scores.plain import in_clear
from protocols.scores.ranking import Ranking, rank
from protocols.scores.terms import ScoreTerms
from secure_kg.foundation.seeds import generator

ASKER: Final = PartyId(1)
_SPREAD: Final = 0.25
"""Small beside the bound: float32 scores above 2 lie on the grid of the fixed point, and would show no error at all."""
_TABLE: Final = b"benchmarks.scores"
"""Scores are made up, and every batch counts as the first of a table of its own."""


@dataclass(frozen=True)
class Workload:
    """Every client holds a random `share` of the entities and scores them at random."""

    entities: int
    clients: int
    queries: int
    top: int
    share: float
    seed: int
    least: int | None = None
    """How many scorers must hold a position; None: what each backend has by default."""
    dimensions: int = 128
    """How many numbers a row of the table has that is scored with: clients keep a budget of opened means by it."""

    @property
    def parties(self) -> tuple[PartyId, ...]:
        return tuple(PartyId(number) for number in range(1, self.clients + 1))

    def terms(self, bundle: ScoreBackend, number: int = 0) -> ScoreTerms:
        """Of the batch with this number. Attempts of a batch take rounds of their own."""
        return ScoreTerms(
            round=RoundId(1 + ATTEMPTS * number),
            clients=self.parties,
            asker=ASKER,
            positions=self.entities,
            queries=self.queries,
            top=self.top,
            least=min(bundle.default_least if self.least is None else self.least, self.clients - 1),
            table=digest(_TABLE, number.to_bytes(8, "little")),
        )

    @cached_property
    def scores(self) -> Mapping[PartyId, Scores]:
        made = {}
        for party in self.parties:
            draw = generator(self.seed, f"scores of client {party}")
            held = np.flatnonzero(draw.random(self.entities) < self.share)
            made[party] = Scores(held, draw.normal(0, _SPREAD, (self.queries, len(held))).astype(np.float32))
        return made


@dataclass(frozen=True)
class Truth:
    """What a batch must come to, computed in clear and in one place."""

    ranking: Ranking = field(repr=False)
    """In fixed point, as every backend has it."""
    means: npt.NDArray[np.float64] = field(repr=False)
    """[queries, entities]: of the scores before their encoding; NaN where nobody gives one."""

    @classmethod
    def of(cls, work: Workload, terms: ScoreTerms) -> "Truth":
        sums = in_clear(dict(work.scores), terms)
        return cls(rank(sums, frozenset(), terms), _exact_means(work, terms))

    def same_ranking(self, answer: Answer) -> bool:
        ours, theirs = self.ranking.positions, answer.ranking.positions
        return len(ours) == len(theirs) and all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))

    def error(self, answer: Answer) -> float:
        """The largest error of an answer against scores that were never rounded.

        Of an opened mean: how far it is from that position's mean. Where positions alone are opened: how far the mean
        of the position at each rank is from the mean that belongs there.
        """
        worst, opened = 0.0, answer.ranking.means
        for query, positions in enumerate(answer.ranking.positions):
            exact = self.means[query][positions]
            if opened is not None:
                other = opened[query]
            else:
                given = self.means[query][~np.isnan(self.means[query])]
                other = -np.sort(-given)[: len(positions)]
            worst = max(worst, float(np.abs(exact - other).max(initial=0.0)))
        return worst


def _exact_means(work: Workload, terms: ScoreTerms) -> npt.NDArray[np.float64]:
    sums = np.zeros((work.queries, work.entities))
    counts = np.zeros(work.entities, dtype=np.int64)
    for party in terms.scorers:
        _add(sums, counts, work.scores[party], terms)
    few = counts < terms.least
    sums[:, few], counts[few] = 0.0, 0
    _add(sums, counts, work.scores[terms.asker], terms)
    means: npt.NDArray[np.float64] = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return means


def _add(sums: npt.NDArray[np.float64], counts: npt.NDArray[np.int64], scores: Scores, terms: ScoreTerms) -> None:
    sums[:, scores.held] += np.clip(scores.values.astype(np.float64), -terms.bound, terms.bound)
    counts[scores.held] += 1
