"""The server's side of an exact answer: it deals randomness, carries sealed messages, and reads none of them."""

from typing import ClassVar

from protocols.exact.terms import most_dealt, step_bytes
from protocols.foundation.identifiers import PartyId
from protocols.scores import asking
from protocols.scores.interface import Recorded, Served
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.server import DealingServer, Sizes, drawn_again
from protocols.session.server_session import ServerSession


class ExactServer(DealingServer):
    """All clients are needed from the first message to the last."""

    what: ClassVar[str] = "an exact answer"

    def serve(self, session: ServerSession, terms: ScoreTerms) -> Served:
        self._require_all(session, terms)
        asking.relay(session, terms)
        self._require_all(session, terms)
        self._carry(session, terms, Sizes(step_bytes(terms), most_dealt(terms)))
        return Served(frozenset(terms.scorers))


class ExactServerAgain(ExactServer):
    """The same program over a record: it draws what the server drew then. A seed that did not get through is any."""

    def __init__(self, recorded: Recorded) -> None:
        super().__init__()
        self._recorded = recorded

    def _draw(self, terms: ScoreTerms, party: PartyId) -> bytes:
        return drawn_again(self._recorded, terms, party) or super()._draw(terms, party)
