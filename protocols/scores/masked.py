"""Masked scores: a masked sum that the server opens for the asker, and that the asker alone can read.

A scorer adds one more mask to its vector before it takes part in a masked sum (`protocols.sums.secagg`). The key of
that mask comes from a secret between that scorer and the asker (`protocols.scores.asking`). What the server opens is
the sum of the vectors under the sum of these masks, and uniform. It hands it to the asker, who removes the masks of the
contributors, checks the total, adds its own scores, which it never sends, and divides by the counts.

Parties:     2 or more scorers with channels to each other and to the asker, 1 asker, 1 server.
Adversary:   the server, semi-honest, or active with signed channels; or the server with some of the clients, up to the
             declared fraction. The asker, alone or with clients that are not the server; against active parties one
             that asks scorers different things, too: those that were cannot add up (`protocols.scores.asking`).
Reveals:     to the server who has contributed, sizes, and when who asks. To the asker the sums and counts over the
             contributors. To other clients, with `least` of 2 or more, of every position how many other scorers hold
             it, up to `least` - 1 (`protocols.holders.secret`), and so who does, where askers change or scorers drop.
Assumes:     what `protocols.sums.secagg` assumes; AES-256 as a pseudorandom generator.
Not covered: the server together with the asker reads what the asker reads, and no more: single vectors stay under the
             masks of the sum. A scorer on the side of an active server knows the factors of the check: with it the
             server can have the asker read a false total. What means give away: opened means of enough queries give the
             table (`secure_kg.attacks`); clients keep a budget for that reason. Wrong scores.
Reference:   FedCQA, equations 5 and 6, where scores are averaged in clear.
Deviations:  scores are rounded to fixed point; the asker's own are added by itself; positions that too few scorers
             hold are left out.

Better than a mask from the group key: no other client can open the sum with the server. A changed total is noticed
(`protocols.scores.layout`). A scorer that drops out before its input is not in the sum. If holders were counted, a
dropout after the count costs the batch, which may be asked again under the next round's number.
"""

import secrets
from dataclasses import dataclass, field, replace

from protocols.foundation.digests import encode_parties, length_prefixed
from protocols.foundation.errors import PeerMisbehaved, SumAbandoned
from protocols.foundation.spent import Spent
from protocols.holders.interface import HolderClient, HolderServer
from protocols.primitives.prg import KEY_BYTES, combine_keystreams
from protocols.scores import asking, counting
from protocols.scores.budget import Budget, announced, charge, require_budget
from protocols.scores.covering import Covering, Kept, MemoryCovers
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
from protocols.scores.messages import PURPOSE, ScoresTotal, checked_contributors, require_sendable, total_bytes
from protocols.scores.ranking import ScoreSums, rank
from protocols.scores.terms import RING, ScoreTerms
from protocols.session.client_session import ClientSession
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.messages import PEERS_BYTES
from protocols.sums.secagg.openings import commit
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from protocols.sums.terms import SumTerms

_MASK = "asker mask"
_FACTORS = "check factors"


def sum_terms(terms: ScoreTerms, agreed: bytes = b"", state: bytes = b"") -> SumTerms[ScoreLayout]:
    """The masked sum of a batch. `agreed`: what scorers were asked, as they agree on it (`asking.agreed`); `state`: a
    scorer's commitment to what its scores depend on. The server has neither."""
    return SumTerms(terms.round, PURPOSE, terms.scorers, ScoreLayout(terms), agreed, state)


def _largest_frame(terms: ScoreTerms) -> int:
    """That of a total; inputs are smaller by the list of contributors."""
    return total_bytes(terms, ScoreLayout(terms).entries) + PEERS_BYTES


@dataclass(frozen=True, slots=True)
class OpenedScores:
    """What the asker reads of a batch, its own scores included."""

    sums: ScoreSums = field(repr=False)
    contributors: frozenset[int]
    report: ScoringReport


class MaskedScoreClient(ScoreClient):
    """`vectors` holds the session's channels; `holders`: how holders are counted; `budget`: of opened means."""

    def __init__(self, vectors: VectorClient, holders: HolderClient, budget: Budget | None = None) -> None:
        self._vectors, self._holders, self._budget = vectors, holders, budget
        self._covering = budget.covering if budget is not None else Covering(Kept(MemoryCovers()))
        self._state_key = secrets.token_bytes(KEY_BYTES)
        """The same queries have the same commitment, so that clients open them over one set of survivors only."""

    def ask(self, session: ClientSession, terms: ScoreTerms, queries: bytes, own: Scores) -> Answer:
        opened = self.open_sums(session, terms, queries, own)
        with opened.report.spent.measure():
            ranking = rank(opened.sums, opened.contributors, terms)
        return Answer(ranking, opened.report)

    def open_sums(self, session: ClientSession, terms: ScoreTerms, queries: bytes, own: Scores) -> OpenedScores:
        """As `ask`, for an asker that wants the sums themselves and no ranking: the same messages, the same check."""
        spent, layout = Spent(), ScoreLayout(terms)
        with spent.measure():
            require_sendable(terms, _largest_frame(terms))
            encoded = encode(own, terms)
        drawn = asking.ask(session, self._vectors.session, terms, queries)
        session.conversation.admit(total_bytes(terms, layout.entries))
        with session.phase(terms.round, f"total/{PURPOSE}"):
            total = session.receive(ScoresTotal, terms.round, PURPOSE)
        with spent.measure():
            contributors = checked_contributors(total.contributors, terms)
            vector = total.vector
            try:
                RING.require(vector, layout.entries)
            except ValueError:
                raise PeerMisbehaved("a total of another length") from None
            keys = [asking.key_of(drawn[scorer].own, session, terms, scorer, _MASK) for scorer in contributors]
            combine_keystreams(vector, RING, subtracted=keys)
            common = drawn[terms.scorers[0]].common
            sums = layout.read_checked(vector, asking.key_of(common, session, terms, terms.asker, _FACTORS))
            sums = sums.plus(encoded.sums)
        report = ScoringReport(encoded.clipped, encoded.max_error, spent)
        return OpenedScores(sums, frozenset(map(int, contributors)), report)

    def score(self, session: ClientSession, terms: ScoreTerms, scoring: ScoreQueries) -> ScoringReport:
        spent, me = Spent(), session.party
        require_sendable(terms, _largest_frame(terms))
        asked = asking.asked(session, self._vectors.session, terms)
        require_budget(session, self._budget, terms, asked.queries)
        depends_on = length_prefixed(terms.table, encode_parties([terms.asker]), asked.queries)
        alike = asking.agreed(asked.secrets, session, terms)
        state = commit(self._state_key, PURPOSE, depends_on)
        of_sum = replace(sum_terms(terms, alike, state), announced=announced(session, self._covering, terms))
        counting.prepare(session, self._holders, terms)
        self._vectors.prepare(session, of_sum)
        scores = scoring(asked.queries)
        counted = counting.count(session, self._holders, terms, scores.held)
        with spent.measure():
            encoded = encode(scores.only(counted.enough), terms)
            factors = asking.key_of(asked.secrets.common, session, terms, terms.asker, _FACTORS)
            vector = of_sum.layout.vector(encoded, factors)
            mask = asking.key_of(asked.secrets.own, session, terms, me, _MASK)
        charge(self._budget, terms, asked.queries)
        may_open = self._covering.guard(terms, counted.may_open)
        spent.add(self._vectors.contribute(session, of_sum, vector, [mask], may_open))
        return ScoringReport(encoded.clipped, encoded.max_error, spent)


class MaskedScoreServer(ScoreServer):
    def __init__(self, vectors: VectorServer, holders: HolderServer) -> None:
        super().__init__()
        self._vectors, self._holders = vectors, holders

    def serve(self, session: ServerSession, terms: ScoreTerms) -> Served:
        require_sendable(terms, _largest_frame(terms))
        asking.relay(session, terms)
        of_sum, among = sum_terms(terms), session.among(terms.scorers)
        counting.serve_prepare(among, self._holders, terms)
        self._vectors.prepare(among, of_sum)
        counting.serve(among, self._holders, terms)
        total = self._vectors.collect(among, of_sum)
        contributors = sorted(int(party) for party in total.contributors)
        with session.phase(terms.round, f"total/{PURPOSE}"):
            message = ScoresTotal(PURPOSE, contributors, total.vector)
            session.broadcast([terms.asker], message, terms.round, PURPOSE)
        if terms.asker not in session.present:
            raise SumAbandoned("the asker has dropped out")
        return Served(total.contributors)
