"""A client's side of an exact answer: as asker or not, it computes the same and differs in the last exchange only."""

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.exact.circuit import Packed, Sets, SharedSets
from protocols.exact.formula import Formula, formula_bytes
from protocols.exact.terms import relay_bytes
from protocols.scores import asking, batches
from protocols.scores.budget import Budget, BudgetSpent, charge, note_all_clients, require_all_clients, require_budget
from protocols.scores.covering import Covering
from protocols.scores.interface import Answer, ScoreClient, ScoreQueries, Scores, ScoringReport
from protocols.scores.messages import PURPOSE
from protocols.scores.standing import require_apart, require_semi_honest
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.dealing import Deal, Seed
from protocols.scores.topk.exchange import Exchange
from protocols.scores.topk.messages import DealtSeed
from protocols.scores.topk.shares import SharedArithmetic
from protocols.session.client_session import ClientSession
from protocols.session.conversation import MAX_REASON, Abandon
from protocols.sums.secagg.vectors import VectorClient

OPTION: Final = "--exact"
"""How people choose it."""
_SEED: Final = f"seed/{PURPOSE}"

TellSets: TypeAlias = Callable[[bytes], Sets]
"""A client's own work: from the atoms, in whatever form the asker wrote them, to the positions that it tells of."""


class ExactClient:
    """One client's part in the exact answers of one session. `vectors` holds the session's channels; `covering`: over
    whom this client has helped to open anything before."""

    def __init__(
        self, vectors: VectorClient, budget: Budget | None = None, covering: Covering | None = None
    ) -> None:
        self._vectors, self._budget, self._covering = vectors, budget, covering

    def ask(
        self, session: ClientSession, terms: ScoreTerms, formula: Formula, atoms: bytes, own: Sets
    ) -> npt.NDArray[np.int64]:
        """The asker's side: the positions of the formula's set, in order. `SumAbandoned` after the last attempt."""
        if formula.atoms != terms.queries:
            raise ValueError(f"a formula of {formula.atoms} atoms where {terms.queries} are asked")
        self._require_standing()
        return batches.asked_again(session, terms, lambda one: self._ask(session, one, formula, atoms, own))

    def answer(self, session: ClientSession, terms: ScoreTerms, telling: TellSets) -> None:
        """Another client's side."""
        self._require_standing()
        batches.score(_Telling(self, telling), session, terms, _never_scored)

    def _ask(
        self, session: ClientSession, terms: ScoreTerms, formula: Formula, atoms: bytes, own: Sets
    ) -> npt.NDArray[np.int64]:
        request = formula.encode() + atoms
        drawn = asking.ask(session, self._vectors.session, terms, request)
        exchange, shared = self._begin(session, terms, drawn[terms.scorers[0]].common)
        share = shared.result(formula, _checked(own, terms))
        given, _ = exchange.hand_over([int(Deal.ANSWER)], session.party, share)
        bits: Packed = np.bitwise_xor.reduce([share, *given])
        return np.flatnonzero(np.unpackbits(bits, count=terms.positions)).astype(np.int64)

    def give(self, session: ClientSession, terms: ScoreTerms, telling: TellSets) -> None:
        """One attempt of `answer`."""
        asked = asking.asked(session, self._vectors.session, terms)
        require_budget(session, self._budget, terms, asked.queries)
        require_all_clients(session, self._covering, terms)
        size = formula_bytes(terms.queries)
        formula = Formula.read(asked.queries[:size], terms.queries)
        own = _checked(telling(asked.queries[size:]), terms)
        exchange, shared = self._begin(session, terms, asked.secrets.common)
        self._charge(session, terms, asked.queries)
        share = shared.result(formula, own)
        note_all_clients(session, self._covering, terms)
        exchange.hand_over([int(Deal.ANSWER)], terms.asker, share)

    def _require_standing(self) -> None:
        """`ParametersRefused` if this client declares what exact answers do not stand against."""
        require_semi_honest(self._vectors.model, "exact", OPTION)
        require_apart(self._vectors.model, "exact", OPTION)

    def _begin(self, session: ClientSession, terms: ScoreTerms, common: bytes) -> tuple[Exchange, SharedSets]:
        session.conversation.admit(relay_bytes(terms))
        with session.phase(terms.round, _SEED):
            dealt = session.receive(DealtSeed, terms.round, PURPOSE)
        seed = Seed.of_client(session, self._vectors.session, dealt.seed, terms)
        exchange = Exchange(session, terms, self._vectors.session, common)
        return exchange, SharedSets(SharedArithmetic(exchange, seed), exchange)

    def _charge(self, session: ClientSession, terms: ScoreTerms, request: bytes) -> None:
        """Right before anything leaves. Another session may have spent the rest in the meantime."""
        try:
            charge(self._budget, terms, request)
        except BudgetSpent as problem:
            session.send(Abandon(PURPOSE, str(problem)[:MAX_REASON]), terms.round)
            raise


class _Telling(ScoreClient):
    """An exact answer as `batches.score` takes it."""

    def __init__(self, client: ExactClient, telling: TellSets) -> None:
        self._client, self._telling = client, telling

    def ask(self, session: ClientSession, terms: ScoreTerms, queries: bytes, own: Scores) -> Answer:
        raise TypeError("exact answers are asked for by ExactClient.ask")

    def score(self, session: ClientSession, terms: ScoreTerms, scoring: ScoreQueries) -> ScoringReport:
        self._client.give(session, terms, self._telling)
        return ScoringReport()


def _never_scored(queries: bytes) -> Scores:
    raise TypeError("facts are told and not scored")


def _checked(own: Sets, terms: ScoreTerms) -> Sets:
    if own.shape != (terms.queries, terms.positions) or own.dtype != np.bool_:
        raise ValueError(f"sets of shape {own.shape} for {terms.queries} atoms over {terms.positions} positions")
    return own
