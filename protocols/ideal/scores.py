"""The server's view of batches of queries (`protocols.scores`), written from who took part and from public sizes.

What stands in place of what, and why nobody notices:

asking       Sealed secrets and queries are zeros under fresh random keys, as the shares of a masked sum are
             (`masked_sum`). The length of the queries is public.
masked       The total that the server opens lies under one more mask for each contributor. Its key comes from a secret
             that the asker has drawn and sealed: to the server random keys, each used once for an AES-256 keystream. So
             the total is uniform. The simulator draws it; the rest is the view of a masked sum with that total.
topk         Seeds and corrections are the server's own, drawn as the honest server draws them. Everything that clients
             say is sealed: zeros. How much they say depends on how many comparisons each step has, and that is a
             function of the ranks of the keys in the order in which they are compared. The server knows the order that
             its seeds give, and so does the simulator, but not the common order of the clients that comes after it. So
             the ranks are a uniform permutation for each query, whatever the seeds are (`protocols.scores.topk`). The
             simulator draws one from N, apart from its seeds, and runs the same selection on it, with k.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.foundation.identifiers import PartyId
from protocols.holders.secret import SecretHolderClient, SecretHolderServer
from protocols.ideal.masked_sum import Silences, SimulatedSums, sealed_zeros, uniform_vector
from protocols.ideal.real import Falls, Parties, ServerSide, at_once
from protocols.ideal.real_sessions import Session
from protocols.primitives.prg import KEY_BYTES
from protocols.scores import asking, batches
from protocols.scores.interface import ScoreClient, Scores, ScoreServer
from protocols.scores.masked import MaskedScoreClient, MaskedScoreServer, sum_terms
from protocols.scores.messages import PURPOSE, AskScores, BatchServed, ScoresAsked, ScoresTotal
from protocols.scores.plain import PlainScoreClient, PlainScoreServer
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.client import TopKClient
from protocols.scores.topk.dealing import WORD_TYPES, Deal, Dealer, Seed
from protocols.scores.topk.exchange import STEP
from protocols.scores.topk.frames import most_dealt
from protocols.scores.topk.keys import KeyLayout
from protocols.scores.topk.messages import DealtSeed, SelectionRelay, SelectionStep
from protocols.scores.topk.selection import Places, Selecting, best, few_candidates
from protocols.scores.topk.server import TopKServer
from protocols.scores.topk.words import permutation
from protocols.session.conversation import Conversation
from protocols.sums.secagg.keys import ClientKeys, ServerKeys
from protocols.sums.secagg.messages import STATE_BYTES

Larger: TypeAlias = npt.NDArray[np.bool_]
Oracle: TypeAlias = Callable[[int, Places, Places], Larger]
"""Of one query, whether keys at the first places are larger than keys at the second ones."""
Compared: TypeAlias = dict[int, tuple[Places, Places, Larger]]
"""Of each query that is not done yet: pairs of places within the query, and their bits."""
_DIGEST_BYTES: Final = 32


@dataclass(frozen=True)
class KnownBatch:
    """A batch with its queries and every client's scores."""

    terms: ScoreTerms
    queries: bytes = field(repr=False)
    scores: Mapping[PartyId, Scores] = field(repr=False)

    def take_part(self, client: ScoreClient, conversation: Conversation) -> None:
        """As asker or as scorer."""
        session, own = at_once(conversation), self.scores[conversation.transport.party]
        if self.terms.asker == session.party:
            batches.ask(client, session, self.terms, self.queries, own)
        else:
            batches.score(client, session, self.terms, lambda queries: own)


@dataclass(frozen=True)
class ScoreSession(Session):
    """Batches one after the other; `client` and `server` make the two sides of one of the backends."""

    parties: Parties
    todo: Sequence[KnownBatch] = field(repr=False)
    client: Callable[[ClientKeys], ScoreClient]
    server: Callable[[ServerKeys], ScoreServer]
    falls: Falls = field(default_factory=Falls)

    @classmethod
    def masked(cls, parties: Parties, todo: Sequence[KnownBatch]) -> "ScoreSession":
        return cls(
            parties,
            todo,
            lambda keys: MaskedScoreClient(keys.vectors, SecretHolderClient(keys.vectors, keys.key)),
            lambda keys: MaskedScoreServer(keys.vectors, SecretHolderServer(keys.vectors)),
        )

    @classmethod
    def topk(cls, parties: Parties, todo: Sequence[KnownBatch]) -> "ScoreSession":
        return cls(
            parties,
            todo,
            lambda keys: TopKClient(keys.vectors, SecretHolderClient(keys.vectors, keys.key)),
            lambda keys: TopKServer(SecretHolderServer(keys.vectors)),
        )

    @classmethod
    def plain(cls, parties: Parties, todo: Sequence[KnownBatch]) -> "ScoreSession":
        """With the keys of the others, of which it makes no use."""
        return cls(parties, todo, lambda keys: PlainScoreClient(), lambda keys: PlainScoreServer())

    def serve(self, side: ServerSide) -> None:
        server = self.server(ServerKeys.agree(side.session, self.parties.vector_server()))
        for batch in self.todo:
            side.expect(PURPOSE, self.falls.at(batch.terms.round, PURPOSE))
            batches.serve(server, side.session, batch.terms)

    def take_part(self, conversation: Conversation) -> None:
        me = conversation.transport.party
        client = self.client(ClientKeys.agree(at_once(conversation), self.parties.vector_client(me)))
        for batch in self.todo:
            batch.take_part(client, conversation)


def simulate_masked_scores(
    sums: SimulatedSums, terms: ScoreTerms, query_bytes: int, silent: Silences | None = None
) -> None:
    """One batch. `silent`: who drops out in its sum."""
    simulate_asking(sums, terms, query_bytes)
    masked, asker = sum_terms(terms, state=bytes(STATE_BYTES)), terms.asker
    sums.present.discard(asker)
    total = sums.masked_sum(masked, uniform_vector(masked.layout.group, masked.layout.entries), silent)
    sums.present.add(asker)
    contributors = sorted(int(party) for party in total.contributors)
    sums.sent(asker, ScoresTotal(PURPOSE, contributors, total.vector), terms.round, f"total/{PURPOSE}")
    served(sums, terms)


def simulate_selection(sums: SimulatedSums, terms: ScoreTerms, query_bytes: int) -> None:
    """One batch of the k best positions."""
    simulate_asking(sums, terms, query_bytes)
    relay_steps(sums, terms, most_dealt(terms), selection_steps(terms, Ranks(terms).larger))
    served(sums, terms)


def relay_steps(sums: SimulatedSums, terms: ScoreTerms, most: int, steps: Iterable["SaidStep"]) -> None:
    """The server deals seeds, and carries what clients say. `most`: words in one deal."""
    parties = sorted(terms.clients)
    seeds = {party: Seed(secrets.token_bytes(KEY_BYTES), *sums.place, terms, party) for party in parties}
    for party, seed in seeds.items():
        sums.sent(party, DealtSeed(PURPOSE, seed.secret), terms.round, f"seed/{PURPOSE}")
    dealer = Dealer(seeds, most)
    for step, said in enumerate(steps, start=1):
        answers = {party: said.of(party, step) for party in parties}
        for party, answer in answers.items():
            sums.received(party, answer, terms.round, STEP)
        receiver, dealt = dealer.deal(step, said.deal)
        for party in parties:
            others = {int(peer): one for peer, one in answers.items() if peer != party}
            relay = SelectionRelay(
                PURPOSE,
                step,
                {peer: one.to_all for peer, one in others.items() if one.to_all},
                {peer: one.to_one[int(party)] for peer, one in others.items() if int(party) in one.to_one},
                dealt if party == receiver else b"",
            )
            sums.sent(party, relay, terms.round, STEP)


def simulate_asking(sums: SimulatedSums, terms: ScoreTerms, query_bytes: int) -> None:
    size = _DIGEST_BYTES + 2 * KEY_BYTES + query_bytes
    sealed = {int(scorer): sealed_zeros(size) for scorer in terms.scorers}
    sums.received(terms.asker, AskScores(PURPOSE, sealed), terms.round, asking.STEP)
    for scorer in sorted(sums.present & frozenset(terms.scorers)):
        sums.sent(scorer, ScoresAsked(PURPOSE, sealed[int(scorer)]), terms.round, asking.STEP)


def served(sums: SimulatedSums, terms: ScoreTerms) -> None:
    for scorer in sorted(sums.present & frozenset(terms.scorers)):
        sums.sent(scorer, BatchServed(PURPOSE), terms.round, f"served/{PURPOSE}")


class Ranks:
    """What a simulator has in place of keys: for each query a uniform permutation of 0..N-1."""

    def __init__(self, terms: ScoreTerms) -> None:
        drawn = [permutation(secrets.token_bytes(KEY_BYTES), terms.positions) for _ in range(terms.queries)]
        self.of = np.stack(drawn)

    def larger(self, query: int, first: Places, second: Places) -> Larger:
        found: Larger = self.of[query][first] > self.of[query][second]
        return found


@dataclass(frozen=True, slots=True)
class SaidStep:
    """How much is said in one step of a selection: to all, or by everybody else to one client."""

    deal: list[int]
    to_all: int = 0
    to_one: int = 0
    receiver: PartyId | None = None

    def of(self, party: PartyId, step: int) -> SelectionStep:
        """What one client says: zeros."""
        gives = self.receiver is not None and self.receiver != party
        one = {int(self.receiver): sealed_zeros(self.to_one)} if self.receiver is not None and gives else {}
        return SelectionStep(PURPOSE, step, self.deal, sealed_zeros(self.to_all) if self.to_all else b"", one)


def selection_steps(terms: ScoreTerms, larger: Oracle) -> Iterator[SaidStep]:
    """All steps of a batch, in order, with comparisons answered by `larger`."""
    yield from mean_steps(terms, terms.queries)
    yield from best_steps(terms, larger)


def mean_steps(terms: ScoreTerms, rows: int) -> Iterator[SaidStep]:
    """From sums [rows, positions] to means."""
    positions = terms.positions
    yield SaidStep([Deal.LOOKUP, positions, KeyLayout.of_scores(terms).table_size], positions)
    yield SaidStep([Deal.SCALE, rows, positions], 8 * positions * (rows + 1))


def sign_steps(count: int) -> Iterator[SaidStep]:
    """Of so many comparisons, with nothing opened."""
    yield SaidStep([Deal.SIGN, count], 8 * count)
    for size in (*reversed(WORD_TYPES), 1, 1):
        yield SaidStep([Deal.AND, count, size], 2 * size * count)


def best_steps(terms: ScoreTerms, larger: Oracle) -> Iterator[SaidStep]:
    """From keys to the answer."""
    queries, positions = terms.queries, terms.positions
    for turn in sorted(terms.clients):
        yield SaidStep([Deal.SHUFFLE, int(turn), queries, positions], 0, 8 * queries * positions, turn)
    for compared in Selections(terms).steps(larger):
        count = sum(len(bits) for _, _, bits in compared.values())
        yield from sign_steps(count)
        yield SaidStep([Deal.NOTHING], -(-count // 8))
    yield SaidStep([Deal.ANSWER], 0, 8 * queries * min(terms.top, positions), terms.asker)


class Selections:
    """The selections of all queries of a batch in step, as clients make them. `found`: of each query the places."""

    def __init__(self, terms: ScoreTerms) -> None:
        few, places = few_candidates(terms.queries), np.arange(terms.positions)
        self._running: dict[int, Selecting] = {query: best(places, terms.top, few) for query in range(terms.queries)}
        self.found: dict[int, Places] = {}

    def steps(self, larger: Oracle) -> Iterator[Compared]:
        bits: dict[int, Larger | None] = dict.fromkeys(self._running)
        while bits:
            compared: Compared = {}
            for query, told in bits.items():
                try:
                    running = self._running[query]
                    first, second = next(running) if told is None else running.send(told)
                except StopIteration as end:
                    self.found[query] = end.value
                    continue
                compared[query] = first, second, larger(query, first, second)
            if compared:
                yield compared
            bits = {query: told for query, (_, _, told) in compared.items()}
