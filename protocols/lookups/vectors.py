"""Vectors on request: rows of a table, or what the others compute from a request, as means over those that have one.

A batch of m vectors of d numbers is a batch of masked scores with one query over m d positions. A client that has a
vector gives scores for its d positions, and for none of them if it has not: its message is the same in both cases but
for what is under the masks. The counts say how many had an answer.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.foundation.digests import digest
from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.foundation.words import counted, were
from protocols.scores import batches
from protocols.scores.budget import Budget, ChargeRecord, Standing
from protocols.scores.interface import Scores, ScoringReport
from protocols.scores.layout import FALSE_TOTAL
from protocols.scores.masked import MaskedScoreClient
from protocols.scores.terms import ScoreTerms
from protocols.session.client_session import ClientSession

Values: TypeAlias = npt.NDArray[np.floating]
_DOMAIN: Final = b"secure-kg/lookups/vectors/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorTerms:
    """Public parameters of one batch of vectors."""

    round: RoundId
    clients: tuple[PartyId, ...]
    asker: PartyId
    vectors: int
    """m: how many are asked for."""
    width: int
    """d: numbers in each."""
    bound: float = 16.0
    """Entries are clipped to ±bound; clipped ones are counted."""
    table: bytes = b""
    """Digest of what all answer from."""

    def __post_init__(self) -> None:
        if min(self.vectors, self.width) < 1:
            raise ValueError(f"a batch of {self.vectors} vectors of {self.width} numbers is none")
        self.scores  # noqa: B018  refuses what does not fit

    @property
    def scores(self) -> ScoreTerms:
        """The batch of masked scores that carries them. Batches of any size are of one table: it has one budget."""
        return ScoreTerms(
            round=self.round,
            clients=self.clients,
            asker=self.asker,
            positions=self.vectors * self.width,
            top=1,
            bound=self.bound,
            table=digest(_DOMAIN, self.width.to_bytes(8, "little"), self.table),
        )


@dataclass(frozen=True, slots=True)
class Vectors:
    """One client's answers. Private: kept out of reprs."""

    known: npt.NDArray[np.bool_] = field(repr=False)
    """[m]: which of the vectors this client has an answer to."""
    values: Values = field(repr=False)
    """[known, d]: of those, in order."""

    def scores(self, terms: VectorTerms) -> Scores:
        """`ValueError` for another shape than was asked for."""
        if self.known.shape != (terms.vectors,) or self.values.shape != (int(self.known.sum()), terms.width):
            raise ValueError(f"vectors of shape {self.values.shape} for {terms.vectors} of {terms.width} numbers")
        held = (np.flatnonzero(self.known)[:, None] * terms.width + np.arange(terms.width)).reshape(-1)
        return Scores(held.astype(np.int64), self.values.reshape(1, -1))


@dataclass(frozen=True, slots=True)
class FoundVectors:
    """What the asker reads. Kept out of reprs."""

    means: npt.NDArray[np.float64] = field(repr=False)
    """[m, d]: zero where there is no answer."""
    counts: npt.NDArray[np.int64] = field(repr=False)
    """[m]: how many have answered, the asker included."""
    report: ScoringReport


AnswerVectors: TypeAlias = Callable[[bytes], Vectors]
"""A client's own work: from the request, in whatever form the asker wrote it, to its answers."""


def ask(
    client: MaskedScoreClient, session: ClientSession, terms: VectorTerms, request: bytes, own: Vectors
) -> FoundVectors:
    """The asker's side. Its own answers count like those of the others. `SumAbandoned` after the last attempt."""
    scores, mine = terms.scores, own.scores(terms)
    opened = batches.asked_again(session, scores, lambda one: client.open_sums(session, one, request, mine))
    counts = opened.sums.counts.reshape(terms.vectors, terms.width)
    if (counts != counts[:, :1]).any():
        raise PeerMisbehaved(FALSE_TOTAL)  # whoever has an answer gives all of it
    sums = opened.sums.sums.reshape(terms.vectors, terms.width) * scores.codec.unit
    return FoundVectors(sums / np.maximum(counts, 1), counts[:, 0], opened.report)


def answer(
    client: MaskedScoreClient, session: ClientSession, terms: VectorTerms, answering: AnswerVectors
) -> ScoringReport:
    """Another client's side. `SumAbandoned` after the last attempt."""
    return batches.score(client, session, terms.scores, lambda request: answering(request).scores(terms))


class VectorBudget(Budget):
    """How many vectors of a table a client helps to find, over all askers and sessions: a batch counts its vectors.

    `table`: under which all batches are counted; None: those of each width by themselves. Wider vectors than `width`
    then count as several. `share`: how many of them one asker may have; None: all. With equal shares no asker can use
    up what is left to another one. The limit counts all askers, because they may tell each other what they read.
    """

    def __init__(
        self,
        record: ChargeRecord,
        limit: int,
        width: int,
        *,
        table: bytes | None = None,
        share: int | None = None,
    ) -> None:
        super().__init__(record, limit, share=share)
        self._width, self._table = width, table

    def standing(self, table: bytes) -> Standing:
        return super().standing(table if self._table is None else self._table)

    def cost(self, terms: ScoreTerms) -> int:
        return terms.positions // self._width

    def may_come(self, terms: ScoreTerms, queries: bytes) -> None:
        super().may_come(self._counted(terms), queries)

    def charge(self, terms: ScoreTerms, queries: bytes) -> None:
        super().charge(self._counted(terms), queries)

    def _counted(self, terms: ScoreTerms) -> ScoreTerms:
        return terms if self._table is None else replace(terms, table=self._table)

    def _refusal(self, terms: ScoreTerms, spent: int, bound: int, of: str) -> str:
        return (
            f"{counted(spent, 'vector')} of this model {were(spent)} looked up{of}, and {self.cost(terms)} more go "
            f"beyond the {'share' if of else 'budget'} of {bound}: enough of them give the model"
        )
