"""Scores in clear: the twin of every other backend. The server reads every client's scores.

Parties:     2 or more scorers, 1 asker, 1 server.
Adversary:   none.
Reveals:     every client's positions, scores and queries, to the server; sums and counts to the asker.
Assumes:     authentic channels.
Not covered: any privacy.
Reference:   FedCQA, equations 5 and 6.
Deviations:  fixed point instead of floats, and the holder rule, as in all backends: their rankings are equal to the
             last bit.
"""

from typing import Any, Final

import numpy as np

from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved, SumAbandoned
from protocols.foundation.frame_sizes import array_bytes, frame_bytes, text_bytes
from protocols.foundation.identifiers import PartyId
from protocols.foundation.spent import Spent
from protocols.primitives.group import GroupVector
from protocols.scores.budget import Budget, charge, require_budget
from protocols.scores.interface import (
    Answer,
    ScoreClient,
    ScoreQueries,
    Scores,
    ScoreServer,
    ScoringReport,
    Served,
    encode,
)
from protocols.scores.layout import ScoreLayout
from protocols.scores.messages import MAX_QUERY_BYTES, PURPOSE, ScoresTotal, total_bytes
from protocols.scores.ranking import ScoreSums, rank
from protocols.scores.terms import RING, ScoreTerms
from protocols.session.client_session import ClientSession
from protocols.session.conversation import MAX_PURPOSE
from protocols.session.server_session import ServerSession

_ASK: Final = "ask"
_INPUT: Final = f"input/{PURPOSE}"


@wire.message(0x0411, 1 << 21)
class ClearQueries(wire.Message, frozen=True):
    """Asker to server, and server to scorers: the queries in clear."""

    purpose: str
    queries: bytes

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        wire.require(len(self.queries) <= MAX_QUERY_BYTES, "queries too long")


@wire.message(0x0412, wire.MAX_FRAME_BYTES)
class ClearScores(wire.Message, frozen=True):
    """Scorer to server: encoded scores and what it holds (`protocols.scores.layout`), unmasked."""

    purpose: str
    vector: np.ndarray[Any, Any]

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        wire.require_array(self.vector, "<u4", ndim=1)


class PlainScoreClient(ScoreClient):
    """`budget`: of opened means, kept like everywhere else. It does not bind the server, which reads all scores."""

    def __init__(self, budget: Budget | None = None) -> None:
        self._budget = budget

    def ask(self, session: ClientSession, terms: ScoreTerms, queries: bytes, own: Scores) -> Answer:
        spent, layout = Spent(), ScoreLayout(terms)
        with spent.measure():
            encoded = encode(own, terms)
        with session.phase(terms.round, _ASK):
            session.send(ClearQueries(PURPOSE, queries), terms.round)
        session.conversation.admit(total_bytes(terms, layout.entries))
        with session.phase(terms.round, f"total/{PURPOSE}"):
            total = session.receive(ScoresTotal, terms.round, PURPOSE)
        with spent.measure():
            if len(total.vector) != layout.entries:
                raise PeerMisbehaved("a total of another length")
            ranking = rank(layout.read(total.vector).plus(encoded.sums), frozenset(total.contributors), terms)
        return Answer(ranking, ScoringReport(encoded.clipped, encoded.max_error, spent))

    def score(self, session: ClientSession, terms: ScoreTerms, scoring: ScoreQueries) -> ScoringReport:
        spent = Spent()
        with session.phase(terms.round, _ASK):
            asked = session.receive(ClearQueries, terms.round, PURPOSE)
        require_budget(session, self._budget, terms, asked.queries)
        scores = scoring(asked.queries)
        with spent.measure():
            encoded = encode(scores, terms)
            vector = ScoreLayout(terms).unchecked(encoded)
        charge(self._budget, terms, asked.queries)
        with session.phase(terms.round, _INPUT):
            session.send(ClearScores(PURPOSE, vector), terms.round)
        return ScoringReport(encoded.clipped, encoded.max_error, spent)


class PlainScoreServer(ScoreServer):
    def serve(self, session: ServerSession, terms: ScoreTerms) -> Served:
        layout = ScoreLayout(terms)
        session.conversation.admit(frame_bytes(text_bytes(PURPOSE), array_bytes(layout.entries, 4)))
        session.conversation.admit(frame_bytes(text_bytes(PURPOSE), MAX_QUERY_BYTES + 8))
        self._relay(session, terms)
        total, contributors = RING.zeros(layout.entries), set[PartyId]()
        expected = session.present & frozenset(terms.scorers)
        with session.phase(terms.round, _INPUT):
            for party, message in session.gather_each(expected, ClearScores, terms.round, _INPUT, PURPOSE):
                if len(message.vector) != layout.entries:
                    raise PeerMisbehaved(f"client {party} sends scores of another batch")
                with self.spent.measure():
                    RING.add_into(total, message.vector)
                contributors.add(party)
        session.dropout(expected - contributors, _INPUT)
        if len(contributors) < max(2, terms.least):
            raise SumAbandoned(f"{len(contributors)} scorers have sent their scores, too few")
        with self.spent.measure():
            leave_out_few_holders(total, layout)
        with session.phase(terms.round, f"total/{PURPOSE}"):
            message_ = ScoresTotal(PURPOSE, sorted(int(party) for party in contributors), total)
            session.broadcast([terms.asker], message_, terms.round, PURPOSE)
        if terms.asker not in session.present:
            raise SumAbandoned("the asker has dropped out")
        return Served(frozenset(contributors))

    @staticmethod
    def _relay(session: ServerSession, terms: ScoreTerms) -> None:
        with session.phase(terms.round, _ASK):
            answers = session.among([terms.asker]).gather(ClearQueries, terms.round, _ASK)
            if terms.asker not in answers:
                raise SumAbandoned("the asker has dropped out")
            session.broadcast(terms.scorers, answers[terms.asker], terms.round, _ASK)


def leave_out_few_holders(total: GroupVector, layout: ScoreLayout) -> None:
    """The holder rule, on sums in clear, in place: positions that too few scorers hold have no scores."""
    terms, sums = layout.terms, layout.read(total)
    few = sums.counts < terms.least
    total[: terms.cells].reshape(terms.queries, terms.positions)[:, few] = 0
    lanes = total[terms.cells : layout.checked_entries].view(np.uint8)
    lanes[: terms.positions][few] = 0


def in_clear(scores: dict[PartyId, Scores], terms: ScoreTerms) -> ScoreSums:
    """What a batch must come to, computed in one place: for tests and measurements."""
    others = [encode(scores[party], terms).sums for party in terms.scorers if party in scores]
    sums = ScoreSums(sum(one.sums for one in others), sum(one.counts for one in others))  # type: ignore[arg-type]
    few = sums.counts < terms.least
    sums = ScoreSums(np.where(few, 0, sums.sums), np.where(few, 0, sums.counts))
    return sums.plus(encode(scores[terms.asker], terms).sums) if terms.asker in scores else sums
