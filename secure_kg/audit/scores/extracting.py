"""Extraction of the trained table, tried on what the server of a score session read (`secure_kg.attacks.extraction`).

A server that reads queries and scores in clear solves for the rows of each scorer. Whether it has them is told by
queries that it does not use: rows that are right give the scores of those as well. That takes no client's table. Under
all other backends the server reads neither queries nor scores, and there is nothing to try it on.
"""

from dataclasses import dataclass, field
from typing import Final, get_args

import numpy as np
import numpy.typing as npt

from protocols.scores.layout import ScoreLayout
from protocols.scores.plain import ClearQueries, ClearScores
from secure_kg.attacks.extraction import Similarity, rows_from_means, scores_of
from secure_kg.attacks.result import AttackResult, Rate
from secure_kg.audit.scores.session import ScoredSession
from secure_kg.audit.view.read import Observation

Floats = npt.NDArray[np.float64]
_LEFT_OUT: Final = 4
"""Queries by which the rest is judged."""
_TOLERANCE: Final = 1e-3
"""A score counts as foretold if it is off by no more."""


@dataclass
class _Read:
    """What the server has read of one scorer's answers about one table."""

    queries: list[Floats] = field(default_factory=list)
    scores: list[Floats] = field(default_factory=list)
    held: list[npt.NDArray[np.bool_]] = field(default_factory=list)


class Extracting:
    """Gathers queries and scores in clear, by scorer and table."""

    def __init__(self, session: ScoredSession) -> None:
        self._session = session
        self._queries: dict[int, Floats] = {}
        self._read: dict[tuple[int, bytes], _Read] = {}
        self._clear = self._odd = 0

    def observe(self, observation: Observation) -> None:
        batch, message = self._session.batches.get(observation.round), observation.message
        if batch is None or observation.direction != "received":
            return
        match message:
            case ClearQueries():
                self._clear += 1
                shape = (batch.terms.queries, self._session.record.dimensions)
                if shape[1] and len(message.queries) == 8 * shape[0] * shape[1]:
                    self._queries = {observation.round: np.frombuffer(message.queries, dtype="<f8").reshape(shape)}
                else:
                    self._odd += 1
            case ClearScores() if observation.round in self._queries:
                layout = ScoreLayout(batch.terms)
                if len(message.vector) != layout.entries:
                    return
                sums = layout.read(message.vector)
                read = self._read.setdefault((observation.peer, batch.terms.table), _Read())
                read.queries.append(self._queries[observation.round])
                read.scores.append((sums.sums * batch.terms.codec.unit).astype(np.float64))
                read.held.append(sums.counts > 0)

    def results(self) -> list[AttackResult]:
        found = []
        for (party, _), read in sorted(self._read.items(), key=lambda item: item[0]):
            queries, scores = np.concatenate(read.queries), np.concatenate(read.scores)
            held = np.logical_and.reduce(read.held)
            if len(queries) > _LEFT_OUT and held.any():
                found.append(_tried(party, queries, scores[:, held]))
        return found

    def why_not(self) -> str:
        if not self._clear:
            return "The server read neither queries nor scores, so there is nothing to compute rows from."
        if self._odd:
            return (
                "Queries and scores were in clear, but the session's record does not say that queries are vectors, so "
                "rows could not be solved for."
            )
        return "Too few scores were read in clear to compute rows from."


def _near(foretold: Floats, truth: Floats) -> int:
    return int((np.abs(foretold - truth) <= _TOLERANCE).sum())


def _tried(party: int, queries: Floats, scores: Floats) -> AttackResult:
    used, read = queries[:-_LEFT_OUT], scores[:-_LEFT_OUT]
    unseen, truth = queries[-_LEFT_OUT:], scores[-_LEFT_OUT:]
    foretold = max(
        _near(scores_of(rows_from_means(used, read, similarity), unseen, similarity), truth)
        for similarity in get_args(Similarity)
    )
    guessed = _near(np.broadcast_to(read.mean(axis=0), truth.shape), truth)
    rate = Rate(foretold, truth.size, guessed / truth.size)
    return AttackResult(
        "extraction-in-clear",
        "Trained rows from queries and scores in clear",
        f"client {party}",
        f"{len(queries)} queries and this client's scores, as the server read them",
        {"rows": rate.value},
        {"rows": rate.chance},
        rate.beats_chance,
        f"Rows of {queries.shape[1]} numbers, computed from {len(queries) - _LEFT_OUT} queries, foretell {foretold} of "
        f"{truth.size} scores of the queries that were not used, to within {_TOLERANCE:g}.",
        {"rows": scores.shape[1], "queries": len(queries)},
    )
