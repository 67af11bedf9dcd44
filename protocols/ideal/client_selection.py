"""The view of all clients but one in a selection (`protocols.scores.topk`), written from (N, k) and the answer.

`seen_by_others` holds real batches and keeps what the clients other than the honest one see together: everything that
is opened, everything that the honest client hands one of them, their own permutations and the common order.
`simulate_seen` writes the same without any score. Opened words and handed shares are uniform: they lie under masks of
which the honest client has a share. Comparison bits are those of uniform ranks, on which the same selection is run. Of
the answer the simulator has the lowest bits of the k largest keys: the honest client's shares of these are what is
missing from the others' shares.
"""

import secrets
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.foundation.identifiers import PartyId, RoundId
from protocols.holders.secret import SecretHolderClient
from protocols.ideal.real import at_once
from protocols.ideal.scores import Ranks, ScoreSession, Selections
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.client import TopKClient
from protocols.scores.topk.dealing import WORD_TYPES, Deal, Seed
from protocols.scores.topk.exchange import Exchange
from protocols.scores.topk.keys import KeyLayout
from protocols.scores.topk.words import AnyWords, Words
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Conversation
from protocols.sums.secagg.keys import ClientKeys

Orders: TypeAlias = npt.NDArray[np.int64]
AND_BYTES: Final = (*sorted(WORD_TYPES, reverse=True), 1, 1)
"""How wide the words of a comparison are, level by level."""


@dataclass
class SeenSelection:
    """One batch, as all clients but the honest one see it together."""

    opened: dict[str, list[AnyWords]] = field(default_factory=dict, repr=False)
    """By kind of step."""
    bits: list[AnyWords] = field(default_factory=list, repr=False)
    """Of each step of comparisons, eight to a byte."""
    handed: list[Words] = field(default_factory=list, repr=False)
    """What the honest client has handed to the others in their turns of the shuffle."""
    orders: list[Orders] = field(default_factory=list, repr=False)
    """The others' permutations [queries x positions], in the order of their turns."""
    common: list[Orders] = field(default_factory=list, repr=False)
    """The order [queries x positions] that all clients put on top; once."""
    low: list[Words] = field(default_factory=list, repr=False)
    """The honest client's shares of the answer; once."""
    answer: list[Words] = field(default_factory=list, repr=False)
    """All shares of the answer, added up; once."""

    def see(self, kind: int, words: AnyWords) -> None:
        if kind == Deal.NOTHING:
            self.bits.append(words)
        else:
            self.opened.setdefault(Deal(kind).name, []).append(words)


class _SeeingExchange(Exchange):
    """Keeps what comes out of exchanges."""

    seed: Seed
    honest: PartyId
    seen: SeenSelection

    def common_order(self, queries: int, length: int) -> Orders:
        order = super().common_order(queries, length)
        if self.leads:
            self.seen.common.append(_flat(order))
        return order

    def add(self, deal: list[int], words: AnyWords) -> tuple[AnyWords, bytes]:
        total, dealt = super().add(deal, words)
        if self.leads:  # everybody sees the same
            self.seen.see(deal[0], total & total.dtype.type(deal[2] - 1) if deal[0] == Deal.LOOKUP else total)
        return total, dealt

    def xor(self, deal: list[int], words: AnyWords) -> tuple[AnyWords, bytes]:
        total, dealt = super().xor(deal, words)
        if self.leads:
            self.seen.see(deal[0], total)
        return total, dealt

    def hand_over(self, deal: list[int], to: PartyId, words: Words, name: str = "") -> tuple[list[Words], bytes]:
        step = self.step
        given, dealt = super().hand_over(deal, to, words, name)
        if to == self.party:
            others = [party for party in self.parties if party != self.party]
            theirs = given[others.index(self.honest)]
            if deal[0] == Deal.SHUFFLE:
                self.seen.handed.append(theirs)
                self.seen.orders.append(self.seed.permutations(step, *deal[2:]))
            else:
                self.seen.low.append(theirs)
                self.seen.answer.append(sum(given, start=words))
        return given, dealt


class _SeeingClient(TopKClient):
    """A client that works together with all others but the honest one."""

    honest: PartyId
    seen: dict[RoundId, SeenSelection]

    def _exchange(self, session: ClientSession, terms: ScoreTerms, common: bytes, seed: Seed) -> Exchange:
        exchange = _SeeingExchange(session, terms, self._vectors.session, common)
        exchange.seed, exchange.honest, exchange.seen = seed, self.honest, self.seen[terms.round]
        return exchange


def seen_by_others(session: ScoreSession, honest: PartyId) -> list[SeenSelection]:
    """Real batches of `topk`: what all clients but one see of each. The first client asks."""
    seen = {batch.terms.round: SeenSelection() for batch in session.todo}

    def take_part(conversation: Conversation) -> None:
        me = conversation.transport.party
        keys = ClientKeys.agree(at_once(conversation), session.parties.vector_client(me))
        make = TopKClient if me == honest else _SeeingClient
        client = make(keys.vectors, SecretHolderClient(keys.vectors, keys.key))
        if isinstance(client, _SeeingClient):
            client.honest, client.seen = honest, seen
        for batch in session.todo:
            batch.take_part(client, conversation)

    session.parties.view(session.serve, take_part, session.falls)
    return list(seen.values())


def simulate_seen(terms: ScoreTerms, answer: Words, honest: PartyId) -> SeenSelection:
    """`answer`: of each query the lowest bits of the largest keys, in order, one query after the other."""
    seen, layout, cells = SeenSelection(), KeyLayout.of_scores(terms), terms.cells
    for party in sorted(terms.clients):
        if party != honest:
            seen.handed.append(_words(cells))
            seen.orders.append(_flat(Ranks(terms).of))
    seen.common.append(_flat(Ranks(terms).of))
    seen.see(Deal.LOOKUP, _words(terms.positions, 1) & np.uint8(layout.table_size - 1))
    seen.see(Deal.SCALE, _words(cells + terms.positions))
    for compared in Selections(terms).steps(Ranks(terms).larger):
        bits = np.concatenate([told for _, _, told in compared.values()])
        seen.see(Deal.SIGN, _words(len(bits)))
        for size in AND_BYTES:
            seen.see(Deal.AND, _words(2 * len(bits), size))
        seen.see(Deal.NOTHING, np.packbits(bits))
    low = np.uint64((1 << layout.low_bits) - 1)
    others = [_words(len(answer)) & low for party in terms.clients if party != honest]
    seen.low.append((answer - sum(others, start=np.zeros_like(answer))) & low)
    seen.answer.append(seen.low[0] + sum(others, start=np.zeros_like(answer)))
    return seen


def _words(count: int, size: int = 8) -> AnyWords:
    """Uniform, from the operating system's randomness."""
    return np.frombuffer(secrets.token_bytes(count * size), dtype=WORD_TYPES[size])


def _flat(orders: Orders) -> Orders:
    """Permutations [queries, positions] as one of all queries, one after the other."""
    queries, positions = orders.shape
    flat: Orders = (orders + positions * np.arange(queries)[:, None]).reshape(-1)
    return flat
