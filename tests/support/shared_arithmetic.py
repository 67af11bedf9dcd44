"""Computing on shares with all clients as threads, a real dealer and a real relay, for tests of single operations."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.foundation.identifiers import SERVER, PartyId
from protocols.scores.messages import PURPOSE
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.dealing import Deal, Seed
from protocols.scores.topk.exchange import Exchange
from protocols.scores.topk.frames import relay_bytes
from protocols.scores.topk.messages import DealtSeed, SelectionStep
from protocols.scores.topk.server import TopKServer
from protocols.scores.topk.shares import SharedArithmetic
from protocols.scores.topk.words import AnyWords, Words
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.keys import ClientKeys, ServerKeys
from tests.support.in_threads import PATIENCE, at_once, converse
from tests.support.score_batches import TRUSTING

Act: TypeAlias = Callable[[SharedArithmetic, Exchange, PartyId], Any]
COMMON = bytes(range(32))


def compute(terms: ScoreTerms, act: Act) -> dict[PartyId, Any]:
    """What `act` gives each client. The server deals, relays, and ends when all have asked for `Deal.ANSWER`."""
    kind, parties = TRUSTING["semi-honest"], terms.clients

    def client(conversation: Conversation) -> Any:
        me, session = conversation.transport.party, at_once(conversation)
        keys = ClientKeys.agree(session, kind.client(parties, me))
        conversation.admit(relay_bytes(terms))
        dealt = session.receive(DealtSeed, terms.round, PURPOSE)
        exchange = Exchange(session, terms, keys.vectors.session, COMMON)
        seed = Seed.of_client(session, keys.vectors.session, dealt.seed, terms)
        result = act(SharedArithmetic(exchange, seed), exchange, me)
        exchange.add([int(Deal.ANSWER)], np.zeros(1, dtype=np.uint64))
        return result

    def server(conversation: Conversation) -> None:
        session = ServerSession(conversation, set(parties), Patience.fixed(PATIENCE), lambda who, step: None)
        ServerKeys.agree(session, kind.server(parties))
        session.attending.add(terms.asker)
        Relay().select(session, terms)

    results = converse({SERVER: server, **dict.fromkeys(parties, client)})
    results.pop(SERVER)
    return results


class Relay(TopKServer):
    """The server's part of a selection, without what comes before it, and without an asker outside at its end."""

    def __init__(self) -> None:
        super().__init__(holders=None)  # type: ignore[arg-type]

    def select(self, session: ServerSession, terms: ScoreTerms) -> None:
        self._select(session, terms, terms)

    @staticmethod
    def _answer_outside(session: ServerSession, terms: ScoreTerms, said: Mapping[PartyId, SelectionStep]) -> None:
        """Nobody is there to be answered."""


def shared(values: npt.NDArray[Any], parties: Collection[PartyId], seed: int = 0) -> dict[PartyId, Words]:
    """Random additive shares of 64-bit numbers."""
    rng, whole = np.random.default_rng(seed), values.astype(np.int64).view(np.uint64)
    *others, last = parties
    made = {party: rng.integers(0, 2**64, whole.shape, dtype=np.uint64) for party in others}
    made[last] = whole - sum(made.values(), start=np.zeros_like(whole))
    return made


def added(shares: Mapping[PartyId, Words]) -> npt.NDArray[np.int64]:
    """The signed numbers that shares stand for."""
    total: Words = sum(shares.values(), start=np.zeros_like(next(iter(shares.values()))))
    return total.view(np.int64)


def xored(shares: Mapping[PartyId, AnyWords]) -> AnyWords:
    return np.bitwise_xor.reduce([*shares.values()])
