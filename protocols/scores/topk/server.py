"""The server's side of a selection: it deals randomness, carries sealed messages, and reads none of them."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from protocols.foundation.errors import PeerMisbehaved, SumAbandoned
from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import HolderServer
from protocols.primitives.prg import KEY_BYTES
from protocols.scores import asking, counting
from protocols.scores.interface import Recorded, ScoreServer, Served
from protocols.scores.messages import PURPOSE
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.dealing import Deal, Dealer, Seed
from protocols.scores.topk.exchange import STEP
from protocols.scores.topk.frames import most_dealt, require_sendable, step_bytes
from protocols.scores.topk.keys import KeyLayout
from protocols.scores.topk.messages import DealtSeed, SelectionRelay, SelectionStep, SharesForAsker
from protocols.session.server_session import ServerSession

_SEED: Final = f"seed/{PURPOSE}"
_MOST_STEPS: Final = 10_000
"""A selection that goes on for longer is none."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the exchanges of a batch may be."""

    step_bytes: int
    """What one client sends in one of them."""
    most_dealt: int
    """How many words are dealt for one of them."""


class DealingServer(ScoreServer):
    """The part that all batches on shares have in common: seeds, and one exchange after the other until the last."""

    what: ClassVar[str] = "a selection"
    """For people."""

    def _carry(self, session: ServerSession, terms: ScoreTerms, sizes: Sizes) -> None:
        session.conversation.admit(sizes.step_bytes)
        dealer = Dealer(self._deal_seeds(session, terms), sizes.most_dealt)
        for step in range(1, _MOST_STEPS + 1):
            if self._relay(session, terms, dealer, step):
                return
        raise PeerMisbehaved(f"{self.what} that does not end")

    def _deal_seeds(self, session: ServerSession, terms: ScoreTerms) -> dict[PartyId, Seed]:
        talk = session.conversation
        drawn = {party: Seed.within(talk, self._draw(terms, party), terms, party) for party in terms.clients}
        with session.phase(terms.round, _SEED):
            messages = {party: DealtSeed(PURPOSE, seed.secret) for party, seed in drawn.items()}
            session.dropout(session.conversation.deliver(messages, terms.round), _SEED)
        return drawn

    def _draw(self, terms: ScoreTerms, party: PartyId) -> bytes:
        """A fresh seed: all that a server decides by itself."""
        return secrets.token_bytes(KEY_BYTES)

    def _relay(self, session: ServerSession, terms: ScoreTerms, dealer: Dealer, step: int) -> bool:
        """One exchange; whether it was the last."""
        with session.phase(terms.round, STEP):
            said: dict[PartyId, SelectionStep] = {}
            for party, message in session.gather_each(terms.clients, SelectionStep, terms.round, STEP, PURPOSE):
                said[party] = message
            session.dropout(frozenset(terms.clients) - said.keys(), STEP)
            self._require_all(session, terms)
            deal = _agreed(said, step)
            with self.spent.measure():
                receiver, dealt = dealer.deal(step, deal)
            messages = {
                party: SelectionRelay(
                    PURPOSE,
                    step,
                    {int(peer): one.to_all for peer, one in sorted(said.items()) if peer != party and one.to_all},
                    {int(peer): one.to_one[party] for peer, one in sorted(said.items()) if party in one.to_one},
                    dealt if party == receiver else b"",
                )
                for party in terms.clients
            }
            session.dropout(session.conversation.deliver(messages, terms.round), STEP)
            if last := deal == [Deal.ANSWER]:
                self._answer_outside(session, terms, said)
            self._require_all(session, terms)
        return last

    def _require_all(self, session: ServerSession, terms: ScoreTerms) -> None:
        if missing := {*terms.clients, terms.asker} - session.present:
            raise SumAbandoned(f"{self.what} needs all of its clients, and {len(missing)} dropped out")

    @staticmethod
    def _answer_outside(session: ServerSession, terms: ScoreTerms, said: Mapping[PartyId, SelectionStep]) -> None:
        if terms.asker_is_client:
            return
        sealed = {
            int(party): one.to_one[terms.asker] for party, one in sorted(said.items()) if terms.asker in one.to_one
        }
        session.broadcast([terms.asker], SharesForAsker(PURPOSE, sealed), terms.round, STEP)


class TopKServer(DealingServer):
    def __init__(self, holders: HolderServer) -> None:
        super().__init__()
        self._holders = holders

    def serve(self, session: ServerSession, terms: ScoreTerms) -> Served:
        KeyLayout.of_scores(terms)
        require_sendable(terms)
        self._require_all(session, terms)
        asking.relay(session, terms)
        among = session.among(terms.scorers)
        counting.serve_prepare(among, self._holders, terms)
        counting.serve(among, self._holders, terms)
        self._require_all(session, terms)
        self._select(session, terms, terms)
        return Served(frozenset(terms.scorers))

    def _select(self, session: ServerSession, terms: ScoreTerms, widest: ScoreTerms) -> None:
        """`widest`: terms of the largest messages."""
        self._carry(session, terms, Sizes(step_bytes(widest), most_dealt(widest)))


def _agreed(said: Mapping[PartyId, SelectionStep], step: int) -> list[int]:
    """The randomness that all clients ask for."""
    deals = {tuple(one.deal) for one in said.values()}
    if any(one.step != step for one in said.values()) or len(deals) != 1:
        raise PeerMisbehaved("the clients of a selection are not in the same step")
    return list(deals.pop())


class TopKServerAgain(TopKServer):
    """The same program over a record: it draws what the server drew then. A seed that did not get through is any."""

    def __init__(self, holders: HolderServer, recorded: Recorded) -> None:
        super().__init__(holders)
        self._recorded = recorded

    def _draw(self, terms: ScoreTerms, party: PartyId) -> bytes:
        return drawn_again(self._recorded, terms, party) or super()._draw(terms, party)


def drawn_again(recorded: Recorded, terms: ScoreTerms, party: PartyId) -> bytes:
    """The seed that a server has dealt; empty if none got through."""
    dealt = recorded.sent(DealtSeed, terms.round, party)
    return dealt.seed if dealt is not None else b""
