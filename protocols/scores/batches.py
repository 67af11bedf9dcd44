"""A batch from its first attempt to its end, whatever the backend.

A scorer that drops out may cost an attempt. What was masked or shared in it was not opened, and every secret of the
next attempt is fresh. Attempts of one batch are consecutive rounds, so a batch of round r takes rounds r to
r + ATTEMPTS - 1. The server says when a batch is served; until then a scorer whose part is done waits, because the
others may need it once more.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, TypeVar

from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import RoundId
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.scores.interface import Answer, ScoreClient, ScoreQueries, Scores, ScoreServer, ScoringReport, Served
from protocols.scores.messages import PURPOSE, BatchServed
from protocols.scores.terms import ScoreTerms
from protocols.session.client_session import ClientSession
from protocols.session.conversation import MAX_REASON, Abandon
from protocols.session.server_session import ServerSession

T = TypeVar("T")
ATTEMPTS: Final = 3
SERVED: Final = f"served/{PURPOSE}"


def ask(client: ScoreClient, session: ClientSession, terms: ScoreTerms, queries: bytes, own: Scores) -> Answer:
    """The asker's side. `SumAbandoned` after the last attempt."""
    return asked_again(session, terms, lambda attempt: client.ask(session, attempt, queries, own))


def asked_again(session: ClientSession, terms: ScoreTerms, asking: Callable[[ScoreTerms], T]) -> T:
    """What `asking` comes to in the first attempt that is not abandoned. `SumAbandoned` after the last."""
    for attempt, left in attempts(terms):
        session.conversation.begin(attempt.round, HOLDERS, PURPOSE)  # either may be abandoned from now on
        try:
            return asking(attempt)
        except SumAbandoned:
            if not left:
                raise
    raise AssertionError("unreachable: there is at least one attempt")


def score(client: ScoreClient, session: ClientSession, terms: ScoreTerms, scoring: ScoreQueries) -> ScoringReport:
    """A scorer's side. `SumAbandoned` after the last attempt."""
    for attempt, left in attempts(terms):
        session.conversation.begin(attempt.round, HOLDERS, PURPOSE)
        try:
            report = client.score(session, attempt, scoring)
            with session.phase(attempt.round, SERVED):
                session.receive(BatchServed, attempt.round, PURPOSE)
            return report
        except SumAbandoned:
            if not left:
                raise
    raise AssertionError("unreachable: there is at least one attempt")


def serve(server: ScoreServer, session: ServerSession, terms: ScoreTerms) -> Served:
    """The server's side. `SumAbandoned` after the last attempt, or once too few are left for another."""
    for attempt, left in attempts(terms):
        try:
            served = server.serve(session, attempt)
        except SumAbandoned as problem:
            abandon(session, attempt, str(problem))
            if not left:
                raise
            continue
        with session.phase(attempt.round, SERVED):
            session.broadcast(terms.scorers, BatchServed(PURPOSE), attempt.round, SERVED)
        return served
    raise AssertionError("unreachable: there is at least one attempt")


def attempts(terms: ScoreTerms) -> Iterator[tuple[ScoreTerms, int]]:
    """Every attempt, and how many are left after it."""
    for attempt in range(ATTEMPTS):
        yield replace(terms, round=RoundId(terms.round + attempt)), ATTEMPTS - 1 - attempt


def abandon(session: ServerSession, terms: ScoreTerms, reason: str) -> None:
    """Tell everybody, whichever of its two sums it waits for."""
    for purpose in (HOLDERS, PURPOSE):
        session.broadcast((*terms.scorers, terms.asker), Abandon(purpose, reason[:MAX_REASON]), terms.round, PURPOSE)
