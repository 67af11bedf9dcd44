"""Answering batches of queries over everybody's scores: the interface that all backends share."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from protocols.foundation import wire
from protocols.foundation.errors import EncodingOverflow
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.foundation.spent import Spent
from protocols.scores.ranking import Ranking, ScoreSums
from protocols.scores.terms import ScoreTerms
from protocols.session.client_session import ClientSession
from protocols.session.server_session import ServerSession

M = TypeVar("M", bound=wire.Message)


@dataclass(frozen=True, slots=True)
class Scores:
    """One client's scores of the positions that it holds. Private: kept out of reprs."""

    held: npt.NDArray[np.int64] = field(repr=False)
    """Positions in ascending order, each once."""
    values: npt.NDArray[np.floating] = field(repr=False)
    """[queries, held], finite."""

    def check(self, terms: ScoreTerms) -> None:
        """`ValueError` for positions that are none, `EncodingOverflow` for values that are none."""
        if self.values.shape != (terms.queries, len(self.held)):
            raise ValueError(
                f"scores of shape {self.values.shape} for {terms.queries} queries and {len(self.held)} held"
            )
        if len(self.held) and not (self.held[0] >= 0 and self.held[-1] < terms.positions):
            raise ValueError(f"positions held lie in the union, below {terms.positions}")
        if (np.diff(self.held) <= 0).any():
            raise ValueError("positions held are in ascending order, each once")
        if not np.isfinite(self.values).all():
            raise EncodingOverflow("a score that is not finite has no place in a sum")

    def only(self, kept: npt.NDArray[np.bool_]) -> "Scores":
        """Without some of the positions. `kept`: [held]."""
        return Scores(self.held[kept], self.values[:, kept])


def no_scores(terms: ScoreTerms) -> Scores:
    """Those of a party that holds nothing, e.g. an asker outside."""
    return Scores(np.zeros(0, dtype=np.int64), np.zeros((terms.queries, 0), dtype=np.float32))


@dataclass(frozen=True, slots=True)
class EncodedScores:
    """Scores in fixed point, in the shape of the whole batch, with what their encoding lost."""

    cells: npt.NDArray[np.int32] = field(repr=False)
    """[queries, positions], zero where nothing is held."""
    held: npt.NDArray[np.bool_] = field(repr=False)
    """[positions]."""
    clipped: int = 0
    max_error: float = 0.0

    @property
    def sums(self) -> ScoreSums:
        """As a sum of one."""
        return ScoreSums(self.cells.astype(np.int64), self.held.astype(np.int64))


def encode(scores: Scores, terms: ScoreTerms) -> EncodedScores:
    """Scores as every backend takes them."""
    scores.check(terms)
    held = np.zeros(terms.positions, dtype=np.bool_)
    held[scores.held] = True
    cells = np.zeros((terms.queries, terms.positions), dtype=np.int32)
    encoded = terms.codec.encode(np.ascontiguousarray(scores.values).reshape(-1))
    cells[:, scores.held] = encoded.vector.view(np.int32).reshape(scores.values.shape)
    return EncodedScores(cells, held, encoded.clipped, encoded.max_error)


ScoreQueries: TypeAlias = Callable[[bytes], Scores]
"""A scorer's own work: from the queries, in whatever form the asker sent them, to the scores of what it holds."""


@dataclass(frozen=True, slots=True)
class ScoringReport:
    """What a batch cost a client and lost on the way; known to that client only."""

    clipped: int = 0
    max_error: float = 0.0
    spent: Spent = field(default_factory=Spent)
    """Everything but scoring and waiting."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the asker gets of a batch."""

    ranking: Ranking
    report: ScoringReport


@dataclass(frozen=True, slots=True)
class Served:
    """What the server gets to know of a batch: who took part."""

    contributors: frozenset[PartyId]


class ScoreClient(ABC):
    """A client's part in the batches of one session. An asker outside has one, too."""

    @abstractmethod
    def ask(self, session: ClientSession, terms: ScoreTerms, queries: bytes, own: Scores) -> Answer:
        """The asker's side of a batch. `SumAbandoned` if it came to nothing: ask again, as another round."""

    @abstractmethod
    def score(self, session: ClientSession, terms: ScoreTerms, scoring: ScoreQueries) -> ScoringReport:
        """A scorer's side of a batch. `SumAbandoned` if it came to nothing."""


class ScoreServer(ABC):
    """The server's part in the batches of one session."""

    def __init__(self) -> None:
        self.spent = Spent()
        """All that the server computes for batches, so far, without waiting."""

    @abstractmethod
    def serve(self, session: ServerSession, terms: ScoreTerms) -> Served:
        """Carry a batch. `SumAbandoned` if too few take part; whoever waits for it is to be told (`abandon`)."""


class Recorded(Protocol):
    """What a server has sent, for whoever runs its program again: there it finds what the server decided by itself."""

    def sent(self, kind: type[M], round_id: RoundId, party: PartyId) -> M | None:
        """The first small message of a kind to a party in a round; None if there is none."""

    def said(self, kind: type[M]) -> M | None:
        """What it sent next, if that is of this kind."""
