"""A client's side of a selection: as asker or as scorer, it computes the same and differs in the last step only."""

from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import PartyId
from protocols.foundation.spent import Spent
from protocols.holders.interface import HolderClient
from protocols.scores import asking, counting
from protocols.scores.budget import note_all_clients, require_all_clients
from protocols.scores.covering import Covering
from protocols.scores.interface import (
    Answer,
    EncodedScores,
    ScoreClient,
    ScoreQueries,
    Scores,
    ScoringReport,
    encode,
)
from protocols.scores.messages import PURPOSE
from protocols.scores.ranking import Ranking
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.dealing import Deal, Seed
from protocols.scores.topk.exchange import Exchange, hand_over_use
from protocols.scores.topk.frames import relay_bytes, require_sendable
from protocols.scores.topk.keys import KeyLayout
from protocols.scores.topk.messages import DealtSeed, SharesForAsker
from protocols.scores.topk.selection import Places, Selecting, best, few_candidates
from protocols.scores.topk.shares import SharedArithmetic
from protocols.scores.topk.words import Words
from protocols.session.client_session import ClientSession
from protocols.sums.secagg.vectors import VectorClient

_SEED: Final = f"seed/{PURPOSE}"
ANSWER: Final = "answer"


class TopKClient(ScoreClient):
    """`vectors` holds the session's channels; `holders`: how holders are counted; `covering`: over whom this client has
    helped to open anything before."""

    def __init__(self, vectors: VectorClient, holders: HolderClient, covering: Covering | None = None) -> None:
        self._vectors, self._holders, self._covering = vectors, holders, covering

    def ask(self, session: ClientSession, terms: ScoreTerms, queries: bytes, own: Scores) -> Answer:
        spent = Spent()
        with spent.measure():
            require_sendable(terms)
            layout, encoded = KeyLayout.of_scores(terms), encode(own, terms)
        drawn = asking.ask(session, self._vectors.session, terms, queries)
        common = drawn[terms.scorers[0]].common
        if terms.asker_is_client:
            exchange, arithmetic = self._begin(session, terms, common)
            shares = select(arithmetic, exchange, layout, _as_words(encoded), encoded.held)
            given, _ = exchange.hand_over([int(Deal.ANSWER)], session.party, low_bits(shares, layout), ANSWER)
            low = sum(given, start=low_bits(shares, layout))
        else:
            low = self._outside(session, terms, layout)
        with spent.measure():
            found = answers_of(low, layout)
        report = ScoringReport(encoded.clipped, encoded.max_error, spent)
        return Answer(Ranking(found, frozenset(map(int, terms.scorers))), report)

    def score(self, session: ClientSession, terms: ScoreTerms, scoring: ScoreQueries) -> ScoringReport:
        spent, layout = Spent(), KeyLayout.of_scores(terms)
        asked = asking.asked(session, self._vectors.session, terms)
        require_all_clients(session, self._covering, terms)
        counting.prepare(session, self._holders, terms)
        scores = scoring(asked.queries)
        counted = counting.count(session, self._holders, terms, scores.held)
        with spent.measure():
            encoded = encode(scores.only(counted.enough), terms)
        exchange, arithmetic = self._begin(session, terms, asked.secrets.common)
        shares = select(arithmetic, exchange, layout, _as_words(encoded), encoded.held)
        note_all_clients(session, self._covering, terms)
        exchange.hand_over([int(Deal.ANSWER)], terms.asker, low_bits(shares, layout), ANSWER)
        return ScoringReport(encoded.clipped, encoded.max_error, spent)

    def _begin(self, session: ClientSession, terms: ScoreTerms, common: bytes) -> tuple[Exchange, SharedArithmetic]:
        session.conversation.admit(relay_bytes(terms))
        with session.phase(terms.round, _SEED):
            dealt = session.receive(DealtSeed, terms.round, PURPOSE)
        seed = Seed.of_client(session, self._vectors.session, dealt.seed, terms)
        exchange = self._exchange(session, terms, common, seed)
        return exchange, SharedArithmetic(exchange, seed)

    def _exchange(self, session: ClientSession, terms: ScoreTerms, common: bytes, seed: Seed) -> Exchange:
        """This client's end of the exchanges of a batch."""
        return Exchange(session, terms, self._vectors.session, common)

    def _outside(self, session: ClientSession, terms: ScoreTerms, layout: KeyLayout) -> Words:
        """The shares that reach an asker that took no part in the selection, added up."""
        session.conversation.admit(relay_bytes(terms))
        with session.phase(terms.round, f"{ANSWER}/{PURPOSE}"):
            message = session.receive(SharesForAsker, terms.round, PURPOSE)
        if {*message.sealed} != {int(party) for party in terms.clients}:
            raise PeerMisbehaved("an answer without the shares of some clients")
        words = terms.queries * min(terms.top, terms.positions)
        total = np.zeros(words, dtype=np.uint64)
        for party in terms.clients:
            total += self._opened(party, message.sealed[int(party)], terms, words)
        return total

    def _opened(self, party: PartyId, sealed: bytes, terms: ScoreTerms, words: int) -> Words:
        try:
            plain = self._vectors.session.open_from(party, hand_over_use(terms, ANSWER), sealed)
        except PeerMisbehaved:
            raise PeerMisbehaved(f"the answer's share of client {party} was forged or replayed") from None
        if len(plain) != 8 * words:
            raise PeerMisbehaved(f"client {party} gives an answer of another length")
        return np.frombuffer(plain, dtype="<u8")


def select(
    arithmetic: SharedArithmetic, exchange: Exchange, layout: KeyLayout, sums: Words, held: npt.NDArray[np.bool_]
) -> Words:
    """This client's shares of the keys of the best positions [queries, top], best first.

    `sums`: its share of the sums of scores [queries, positions]; `held`: of which positions it gives one.
    """
    weights, given = arithmetic.look_up(held.astype(np.uint64), layout.tables())
    keys = layout.keys(arithmetic.scale(sums, weights), given, exchange.leads)
    return best_of(arithmetic, keys, layout)


def best_of(arithmetic: SharedArithmetic, keys: Words, layout: KeyLayout) -> Words:
    """Shares of the largest keys of each query, in order, from shares of all of them."""
    shuffled = arithmetic.in_common_order(arithmetic.shuffle(keys))
    return shuffled.reshape(-1)[_places(arithmetic, shuffled, layout.terms)]


def _places(arithmetic: SharedArithmetic, keys: Words, terms: ScoreTerms) -> Places:
    """[queries, top]: where the largest keys stand in all keys, one query after the other.

    The queries of a batch go in step: what each of them compares next is compared in one exchange.
    """
    few, flat = few_candidates(terms.queries), keys.reshape(-1)
    stretches = np.arange(keys.size).reshape(keys.shape)
    running: dict[int, Selecting] = {query: best(row, terms.top, few) for query, row in enumerate(stretches)}
    found: dict[int, Places] = {}
    asked: dict[int, tuple[Places, Places]] = {}
    for query, selecting in running.items():
        _advance(query, selecting, None, asked, found)
    while asked:
        pairs, asked = asked, {}
        first = np.concatenate([one for one, _ in pairs.values()])
        second = np.concatenate([other for _, other in pairs.values()])
        larger = arithmetic.open_bits(arithmetic.negative(flat[second] - flat[first]))
        ends = np.cumsum([len(one) for one, _ in pairs.values()])[:-1]
        for query, bits in zip(pairs, np.split(larger, ends), strict=True):
            _advance(query, running[query], bits, asked, found)
    return np.stack([found[query] for query in running])


def _advance(
    query: int,
    selecting: Selecting,
    bits: npt.NDArray[np.bool_] | None,
    asked: dict[int, tuple[Places, Places]],
    found: dict[int, Places],
) -> None:
    """One query's next comparisons, or its end."""
    try:
        asked[query] = next(selecting) if bits is None else selecting.send(bits)
    except StopIteration as end:
        found[query] = end.value


def _as_words(encoded: EncodedScores) -> Words:
    """A client's own scores are its share of the sums."""
    return encoded.cells.astype(np.int64).view(np.uint64)


def low_bits(shares: Words, layout: KeyLayout) -> Words:
    """What is the answer of these shares, and nothing of the means above it."""
    low: Words = shares.reshape(-1) & np.uint64((1 << layout.low_bits) - 1)
    return low


def answers_of(low: Words, layout: KeyLayout) -> tuple[npt.NDArray[np.int64], ...]:
    """Of each query the positions, from the sum of all shares of the lowest bits."""
    low = low & np.uint64((1 << layout.low_bits) - 1)
    return tuple(layout.answer(row) for row in low.reshape(layout.terms.queries, -1))
