"""The two sides of hidden queries (`protocols.scores.topk.hidden`) as conversations."""

from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.foundation.errors import PeerMisbehaved, SumAbandoned
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.holders.interface import HolderClient, HolderServer
from protocols.primitives.aead import OVERHEAD_BYTES
from protocols.scores import asking, counting
from protocols.scores.budget import note_all_clients, require_all_clients
from protocols.scores.covering import Covering
from protocols.scores.interface import Recorded
from protocols.scores.messages import PURPOSE as SCORES
from protocols.scores.ranking import Ranking
from protocols.scores.standing import require_apart, require_semi_honest
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk import hidden
from protocols.scores.topk.client import ANSWER, answers_of, best_of, low_bits
from protocols.scores.topk.dealing import Deal, Seed
from protocols.scores.topk.exchange import Exchange
from protocols.scores.topk.frames import relay_bytes
from protocols.scores.topk.hidden import PURPOSE, HiddenBatch, HiddenTable, PaddedTable
from protocols.scores.topk.hidden_shape import HiddenShape
from protocols.scores.topk.messages import DealtProduct, DealtSeed, MaskedTable
from protocols.scores.topk.server import TopKServer, drawn_again
from protocols.scores.topk.shares import SharedArithmetic
from protocols.scores.topk.words import Words
from protocols.session.client_session import ClientSession
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.vectors import VectorClient

_TABLE: Final = "masked table"
_PRODUCT: Final = f"product/{SCORES}"


def table_bytes(batch: HiddenBatch) -> int:
    """The size of a `MaskedTable` frame, at most."""
    return 8 * batch.terms.positions * batch.shape.dimensions + OVERHEAD_BYTES + 256


class HiddenClient:
    """One client's side, for one table and one asker. `begin` comes first, once, in a round before those of batches."""

    def __init__(
        self, vectors: VectorClient, holders: HolderClient, batch: HiddenBatch, covering: Covering | None = None
    ) -> None:
        """`covering`: over whom this client has helped to open anything before."""
        require_semi_honest(vectors.model, "topk")
        require_apart(vectors.model, "topk")
        self._vectors, self._holders, self._first, self._covering = vectors, holders, batch, covering
        self._seed: Seed | None = None
        self._table: PaddedTable | None = None
        self._others: dict[PartyId, Words] = {}
        self._last = int(batch.terms.round)

    def begin(self, session: ClientSession, table: HiddenTable) -> None:
        """Count holders, and bring the masked tables to the asker."""
        terms = self._first.terms
        asks = session.party == terms.asker
        if not asks:
            require_all_clients(session, self._covering, terms, PURPOSE)
            counting.prepare(session, self._holders, terms)
            table = table.only(counting.count(session, self._holders, terms, table.held).enough)
        self._table = PaddedTable.of(table, self._first)
        with session.phase(terms.round, _TABLE):
            dealt = session.receive(DealtSeed, terms.round, PURPOSE)
        self._seed = Seed.of_client(session, self._vectors.session, dealt.seed, terms)
        if asks:
            self._take_tables(session)
            return
        sealed = self._vectors.session.seal_for(
            terms.asker, self._use, hidden.masked(self._table, self._seed, self._first).tobytes()
        )
        with session.phase(terms.round, _TABLE):
            session.send(MaskedTable(PURPOSE, int(session.party), sealed), terms.round)

    def ask(self, session: ClientSession, batch: HiddenBatch, queries: npt.NDArray[np.floating]) -> Ranking:
        """The asker's side of a batch. `queries`: [all branches, dimensions]."""
        table, seed = self._ready()
        self._require_same(batch)
        fixed = batch.shape.queries(queries, batch.bits)
        opened = hidden.factors(fixed, batch.shape) + hidden.query_mask(seed, batch)
        drawn = asking.ask(session, self._vectors.session, batch.terms, opened.tobytes())
        share = hidden.asker_share(self._others, table, fixed, seed, batch)
        exchange, arithmetic = self._arithmetic(session, batch, drawn[batch.terms.scorers[0]].common)
        means = self._means(arithmetic, batch, share, table)
        means = means + hidden.query_lengths(fixed, batch)
        best = self._best(arithmetic, exchange, batch, means)
        low = low_bits(best, batch.layout)
        given, _ = exchange.hand_over([int(Deal.ANSWER)], session.party, low, ANSWER)
        found = answers_of(sum(given, start=low), batch.layout)
        return Ranking(found, frozenset(map(int, batch.terms.scorers)))

    def score(self, session: ClientSession, batch: HiddenBatch) -> None:
        """A scorer's side of a batch."""
        table, _ = self._ready()
        self._require_same(batch)
        terms = batch.terms
        asked = asking.asked(session, self._vectors.session, terms)
        shape = (batch.rows, batch.shape.dimensions)
        if len(asked.queries) != 8 * shape[0] * shape[1]:
            raise PeerMisbehaved(f"client {terms.asker} asks hidden queries of another shape")
        opened = np.frombuffer(asked.queries, dtype="<u8").reshape(shape)
        session.conversation.admit(8 * batch.rows * terms.positions + 256)
        with session.phase(terms.round, _PRODUCT):
            dealt = session.receive(DealtProduct, terms.round, SCORES)
        if len(dealt.product) != 8 * batch.rows * terms.positions:
            raise PeerMisbehaved("dealt randomness of another length")
        product = np.frombuffer(dealt.product, dtype="<u8").reshape(batch.rows, terms.positions)
        share = self._scored(table, opened, product, batch)
        exchange, arithmetic = self._arithmetic(session, batch, asked.secrets.common)
        best = self._best(arithmetic, exchange, batch, self._means(arithmetic, batch, share, table))
        note_all_clients(session, self._covering, terms)
        exchange.hand_over([int(Deal.ANSWER)], terms.asker, low_bits(best, batch.layout), ANSWER)

    @property
    def shortened(self) -> int:
        """How many of its rows were longer than declared. Known to this client only."""
        return self._ready()[0].shortened

    def _scored(self, table: PaddedTable, opened: Words, dealt: Words, batch: HiddenBatch) -> Words:
        """This scorer's share of the scores, from the masked queries and what was dealt."""
        return hidden.scorer_share(table, opened, dealt, batch.shape)

    def _take_tables(self, session: ClientSession) -> None:
        terms = self._first.terms
        session.conversation.admit(table_bytes(self._first))
        shape = (terms.positions, self._first.shape.dimensions)
        while self._others.keys() != frozenset(terms.scorers):
            with session.phase(terms.round, _TABLE):
                message = session.receive(MaskedTable, terms.round, PURPOSE)
            owner = PartyId(message.owner)
            if owner not in terms.scorers or owner in self._others:
                raise PeerMisbehaved("a masked table of a client that has none to send")
            try:
                plain = self._vectors.session.open_from(owner, self._use, message.sealed)
            except PeerMisbehaved:
                raise PeerMisbehaved(f"the masked table of client {owner} was forged or replayed") from None
            if len(plain) != 8 * shape[0] * shape[1]:
                raise PeerMisbehaved(f"the masked table of client {owner} has another shape")
            self._others[owner] = np.frombuffer(plain, dtype="<u8").reshape(shape)

    def _arithmetic(
        self, session: ClientSession, batch: HiddenBatch, common: bytes
    ) -> tuple[Exchange, SharedArithmetic]:
        terms = batch.terms
        session.conversation.admit(relay_bytes(batch.widest))
        with session.phase(terms.round, f"seed/{SCORES}"):
            dealt = session.receive(DealtSeed, terms.round, SCORES)
        exchange = Exchange(session, terms, self._vectors.session, common)
        seed = Seed.of_client(session, self._vectors.session, dealt.seed, terms)
        return exchange, SharedArithmetic(exchange, seed)

    def _means(self, arithmetic: SharedArithmetic, batch: HiddenBatch, share: Words, table: PaddedTable) -> Words:
        weights, self._given = arithmetic.look_up(table.held.astype(np.uint64), batch.layout.tables())
        return arithmetic.scale(share, weights)

    def _best(self, arithmetic: SharedArithmetic, exchange: Exchange, batch: HiddenBatch, means: Words) -> Words:
        largest = largest_branches(arithmetic, means, batch.shape.branches)
        keys = batch.layout.keys(largest, self._given, exchange.leads)
        return best_of(arithmetic, keys, batch.layout)

    def _ready(self) -> tuple[PaddedTable, Seed]:
        if self._table is None or self._seed is None:
            raise RuntimeError("begin() comes first")
        return self._table, self._seed

    def _require_same(self, batch: HiddenBatch) -> None:
        """Tables are masked in the fixed point of the first batch and for its asker. No mask of queries comes twice.

        Which batch comes may be announced by another party.
        """
        if _lasting(batch) != _lasting(self._first):
            raise PeerMisbehaved("a batch of hidden queries under other terms than its tables were masked for")
        if batch.terms.round <= self._last:
            number = int(batch.terms.round)
            raise PeerMisbehaved(f"a second batch of hidden queries as round {number}: its mask was used before")
        self._last = int(batch.terms.round)

    @property
    def _use(self) -> str:
        return f"masked table/{self._first.terms.round}"


def _lasting(batch: HiddenBatch) -> tuple[HiddenShape, ScoreTerms]:
    """What all batches of one table have in common: everything but their round, their queries and how many answers."""
    shape = replace(batch.shape, branches=(1,))
    return shape, replace(batch.terms, round=RoundId(0), queries=1, top=1, table=batch.table)


class HiddenServer(TopKServer):
    """The server's side. `begin` comes first, once."""

    def __init__(self, holders: HolderServer, batch: HiddenBatch) -> None:
        super().__init__(holders)
        self._first = batch
        self._tables: dict[PartyId, Seed] = {}

    def begin(self, session: ServerSession) -> None:
        terms = self._first.terms
        among = session.among(terms.scorers)
        counting.serve_prepare(among, self._holders, terms)
        counting.serve(among, self._holders, terms)
        talk = session.conversation
        self._tables = {
            party: Seed.within(talk, self._draw(terms, party), terms, party) for party in terms.clients
        }
        messages = {party: DealtSeed(PURPOSE, seed.secret) for party, seed in self._tables.items()}
        session.conversation.admit(table_bytes(self._first))
        with session.phase(terms.round, _TABLE):
            session.dropout(session.conversation.deliver(messages, terms.round), _TABLE)
            arrived = set()
            for party, message in session.gather_each(terms.scorers, MaskedTable, terms.round, _TABLE, PURPOSE):
                if message.owner != party:
                    raise PeerMisbehaved(f"client {party} sends a table in another's name")
                session.broadcast([terms.asker], message, terms.round, _TABLE)
                arrived.add(party)
            session.dropout(frozenset(terms.scorers) - arrived, _TABLE)
        if missing := {*terms.clients} - session.present:
            raise SumAbandoned(f"hidden queries need all clients, and {len(missing)} dropped out")

    def serve_hidden(self, session: ServerSession, batch: HiddenBatch) -> None:
        """Carry a batch."""
        terms = batch.terms
        self._require_all(session, terms)
        asking.relay(session, terms)
        self._require_all(session, terms)  # nothing is dealt to a scorer that does not know what it was asked
        asker = self._tables[terms.asker]
        with session.phase(terms.round, _PRODUCT):
            for party in terms.scorers:
                with self.spent.measure():
                    product = hidden.dealt_product(self._tables[party], asker, batch)
                session.broadcast([party], DealtProduct(SCORES, product.tobytes()), terms.round, _PRODUCT)
        self._select(session, terms, batch.widest)


class HiddenServerAgain(HiddenServer):
    """The same program over a record, as `TopKServerAgain`."""

    def __init__(self, holders: HolderServer, batch: HiddenBatch, recorded: Recorded) -> None:
        super().__init__(holders, batch)
        self._recorded = recorded

    def _draw(self, terms: ScoreTerms, party: PartyId) -> bytes:
        return drawn_again(self._recorded, terms, party) or super()._draw(terms, party)


def largest_branches(arithmetic: SharedArithmetic, means: Words, branches: tuple[int, ...]) -> Words:
    """[queries, positions]: of shares [all branches, positions], those of the largest of each query.

    Pairs of branches are compared, all queries in one step, until one branch of each is left.
    """
    parts = np.split(means, np.cumsum(branches)[:-1])
    while any(len(part) > 1 for part in parts):
        lefts = [part[: len(part) // 2 * 2 : 2] for part in parts]
        rights = [part[1::2] for part in parts]
        left, right = np.concatenate(lefts), np.concatenate(rights)
        larger = arithmetic.larger(left.reshape(-1), right.reshape(-1)).reshape(left.shape)
        merged = np.split(larger, np.cumsum([len(one) for one in lefts])[:-1])
        parts = [np.concatenate([one, part[len(part) // 2 * 2 :]]) for one, part in zip(merged, parts, strict=True)]
    return np.concatenate(parts)
