"""One client's end of the exchanges of a batch: what it tells the others is sealed, and the server carries it."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import PartyId
from protocols.primitives.aead import open_sealed, seal
from protocols.scores import asking
from protocols.scores.messages import PURPOSE
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.messages import SelectionRelay, SelectionStep
from protocols.scores.topk.words import AnyWords, permutation
from protocols.session.client_session import ClientSession

STEP = f"selection/{PURPOSE}"
Open: TypeAlias = Callable[[PartyId, bytes], bytes]
"""The plaintext of what a client has sealed; `PeerMisbehaved` if it has not."""


class Exchange:
    """`channels`: to each other client. `common`: a secret of all clients of the batch, which the server lacks."""

    def __init__(
        self, session: ClientSession, terms: ScoreTerms, channels: asking.SealedChannels, common: bytes
    ) -> None:
        self.party, self.parties = session.party, tuple(sorted(terms.clients))
        self.step = 1
        """The number of the exchange that comes next."""
        self._session, self._terms, self._channels, self._common = session, terms, channels, common
        self._keys = {party: asking.key_of(common, session, terms, party, "selection") for party in self.parties}

    @property
    def leads(self) -> bool:
        """Whether this is the client that the dealer's corrections go to."""
        return self.party == self.parties[0]

    def common_order(self, queries: int, length: int) -> npt.NDArray[np.int64]:
        """[queries, length]: of each query a permutation that all clients have and the server has not; asked for once.

        A key for each query, of this round of this session and of what was asked.
        """
        uses = [f"common order/{query}" for query in range(queries)]
        keys = [asking.key_of(self._common, self._session, self._terms, self._terms.asker, use) for use in uses]
        return np.stack([permutation(key, length) for key in keys])

    def add(self, deal: list[int], words: AnyWords) -> tuple[AnyWords, bytes]:
        """Open additive shares to all clients: their sum, and what was dealt for the step."""
        others, dealt = self._open(deal, words)
        total = words.copy()
        for one in others:
            total += one
        return total, dealt

    def xor(self, deal: list[int], words: AnyWords) -> tuple[AnyWords, bytes]:
        """Open XOR shares to all clients, likewise."""
        others, dealt = self._open(deal, words)
        total = words.copy()
        for one in others:
            total ^= one
        return total, dealt

    def hand_over(self, deal: list[int], to: PartyId, words: AnyWords, name: str = "") -> tuple[list[AnyWords], bytes]:
        """Give shares to one party. What it gets: the shares of all others. What others get: nothing.

        `name`: of the use, for a receiver outside that does not count steps.
        """
        use = hand_over_use(self._terms, name or str(self.step))
        sealed = {} if to == self.party else {int(to): self._channels.seal_for(to, use, words.tobytes())}
        relay = self._exchange(deal, b"", sealed)
        if to != self.party:
            if relay.to_one:
                raise PeerMisbehaved("shares for a client that is to get none")
            return [], relay.dealt
        opened = self._opened(relay.to_one, words.nbytes, lambda party, one: self._channels.open_from(party, use, one))
        return [np.frombuffer(one, dtype=words.dtype) for one in opened], relay.dealt

    def _open(self, deal: list[int], words: AnyWords) -> tuple[list[AnyWords], bytes]:
        step = self.step
        raw = words.tobytes()
        relay = self._exchange(deal, seal(self._keys[self.party], raw, _place(step)), {})
        opened = self._opened(
            relay.to_all, len(raw), lambda party, one: open_sealed(self._keys[party], one, _place(step))
        )
        return [np.frombuffer(one, dtype=words.dtype) for one in opened], relay.dealt

    def _exchange(self, deal: list[int], to_all: bytes, to_one: dict[int, bytes]) -> SelectionRelay:
        session, round_id, step = self._session, self._terms.round, self.step
        self.step += 1
        with session.phase(round_id, STEP):
            session.send(SelectionStep(PURPOSE, step, deal, to_all, to_one), round_id)
            relay = session.receive(SelectionRelay, round_id, PURPOSE)
        if relay.step != step:
            raise PeerMisbehaved(f"step {relay.step} of a selection where step {step} was due")
        return relay

    def _opened(self, sealed: Mapping[int, bytes], size: int, open_: Open) -> list[bytes]:
        """In the order of the clients' numbers."""
        if {*sealed} != {int(party) for party in self.parties if party != self.party}:
            raise PeerMisbehaved("a step of a selection without some of its clients")
        opened = []
        for party in map(PartyId, sorted(sealed)):
            try:
                plain = open_(party, sealed[int(party)])
            except PeerMisbehaved:
                raise PeerMisbehaved(
                    f"a message of client {party} in a selection was forged or replayed, or it was asked something else"
                ) from None
            if len(plain) != size:
                raise PeerMisbehaved(f"client {party} opens shares of another length")
            opened.append(plain)
        return opened


def hand_over_use(terms: ScoreTerms, name: str) -> str:
    """The use of a channel for what is handed over once in a batch under this name."""
    return f"selection/{terms.round}/{name}"


def _place(step: int) -> bytes:
    """The key says whose message it is, of which batch; this, of which step."""
    return b"step" + step.to_bytes(8, "little")
