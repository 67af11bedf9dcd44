"""Views of hidden queries (`protocols.scores.topk.hidden`): the server's, all scorers' together, and the asker's.

What stands in place of what, and why nobody notices:

server       Masks and products of masks are its own, drawn and computed by the honest server's code. Masked tables and
             masked queries are sealed: zeros under random keys. What follows is a selection (`scores`), with one
             comparison per position for each pair of branches.
scorers      The asker's queries reach them as u = q + b, and the server's word as A b - r. The server draws b and r for
             every batch from the asker's seed, which scorers lack: AES-256 as a pseudorandom generator. So both are
             uniform. Their own masks A the simulator draws as the server does.
asker        A scorer's table reaches it as M = E + A, under a mask that comes from that scorer's seed: uniform.

The two views of clients end where the selection begins. From there on they are those of every selection
(`client_selection`), whose masks are drawn apart from all of this.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.foundation.identifiers import PartyId
from protocols.holders.secret import SecretHolderClient, SecretHolderServer
from protocols.ideal.masked_sum import SimulatedSums, sealed_zeros
from protocols.ideal.real import Falls, Parties, ServerSide, at_once
from protocols.ideal.real_sessions import Session
from protocols.ideal.scores import (
    Oracle,
    Ranks,
    SaidStep,
    best_steps,
    mean_steps,
    relay_steps,
    sign_steps,
    simulate_asking,
)
from protocols.primitives.prg import KEY_BYTES
from protocols.scores.messages import PURPOSE as SCORES
from protocols.scores.topk import hidden
from protocols.scores.topk.dealing import Deal, Seed
from protocols.scores.topk.frames import most_dealt
from protocols.scores.topk.hidden import PURPOSE, HiddenBatch, HiddenTable, PaddedTable
from protocols.scores.topk.hidden_parties import HiddenClient, HiddenServer
from protocols.scores.topk.messages import DealtProduct, DealtSeed, MaskedTable
from protocols.scores.topk.words import Words
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Conversation
from protocols.sums.secagg.keys import ClientKeys, ServerKeys

Queries: TypeAlias = npt.NDArray[np.floating[Any]]
_TABLE: Final = "masked table"
_PRODUCT: Final = f"product/{SCORES}"
_WORD: Final = 8


@dataclass(frozen=True)
class HiddenSession(Session):
    """Tables once, then batches of hidden queries one after the other."""

    parties: Parties
    first: HiddenBatch
    tables: Mapping[PartyId, HiddenTable] = field(repr=False)
    todo: Sequence[tuple[HiddenBatch, Queries]] = field(repr=False)
    falls: Falls = field(default_factory=Falls)

    def serve(self, side: ServerSide) -> None:
        keys = ServerKeys.agree(side.session, self.parties.vector_server())
        server = HiddenServer(SecretHolderServer(keys.vectors), self.first)
        server.begin(side.session)
        for batch, _ in self.todo:
            server.serve_hidden(side.session, batch)

    def take_part(self, conversation: Conversation) -> None:
        self.take_part_as(HiddenClient, conversation)

    def take_part_as(self, kind: type[HiddenClient], conversation: Conversation) -> HiddenClient:
        me = conversation.transport.party
        keys = ClientKeys.agree(at_once(conversation), self.parties.vector_client(me))
        client = kind(keys.vectors, SecretHolderClient(keys.vectors, keys.key), self.first)
        client.begin(at_once(conversation), self.tables[me])
        for batch, queries in self.todo:
            if me == self.first.terms.asker:
                client.ask(at_once(conversation), batch, queries)
            else:
                client.score(at_once(conversation), batch)
        return client


def simulate_hidden(sums: SimulatedSums, first: HiddenBatch, batches: Sequence[HiddenBatch]) -> None:
    """The server's view: tables, and all batches. Holders are not counted."""
    if first.terms.least > 1:
        raise ValueError("a count of holders is simulated apart")
    seeds = _simulate_tables(sums, first)
    for batch in batches:
        terms = batch.terms
        simulate_asking(sums, terms, _WORD * batch.rows * batch.shape.dimensions)
        for scorer in terms.scorers:
            product = hidden.dealt_product(seeds[scorer], seeds[terms.asker], batch)
            sums.sent(scorer, DealtProduct(SCORES, product.tobytes()), terms.round, _PRODUCT)
        relay_steps(sums, terms, most_dealt(batch.widest), hidden_steps(batch, Ranks(terms).larger))


def _simulate_tables(sums: SimulatedSums, first: HiddenBatch) -> dict[PartyId, Seed]:
    terms, size = first.terms, _WORD * first.terms.positions * first.shape.dimensions
    seeds = {party: Seed(secrets.token_bytes(KEY_BYTES), *sums.place, terms, party) for party in terms.clients}
    for party, seed in seeds.items():
        sums.sent(party, DealtSeed(PURPOSE, seed.secret), terms.round, _TABLE)
    for scorer in terms.scorers:
        table = MaskedTable(PURPOSE, int(scorer), sealed_zeros(size))
        sums.received(scorer, table, terms.round, _TABLE)
        sums.sent(terms.asker, table, terms.round, _TABLE)
    return seeds


def hidden_steps(batch: HiddenBatch, larger: Oracle) -> Iterator[SaidStep]:
    """All steps of a batch, in order, with comparisons of keys answered by `larger`."""
    terms, left = batch.terms, list(batch.shape.branches)
    yield from mean_steps(terms, batch.rows)
    while any(count > 1 for count in left):
        compared = sum(count // 2 for count in left) * terms.positions
        yield from sign_steps(compared)
        yield SaidStep([Deal.BIT, compared], compared)
        yield SaidStep([Deal.SCALE, 1, compared], 2 * _WORD * compared)
        left = [count // 2 + count % 2 for count in left]
    yield from best_steps(terms, larger)


@dataclass
class SeenHidden:
    """What scorers see together of all batches, or the asker of all tables."""

    opened: list[Words] = field(default_factory=list, repr=False)
    """[branches, dimensions] of each batch: u, the same to all scorers."""
    products: dict[PartyId, list[Words]] = field(default_factory=dict, repr=False)
    """[branches, positions] of each batch: A b - r."""
    tables: dict[PartyId, Words] = field(default_factory=dict, repr=False)
    """[positions, dimensions]: M."""


class _SeeingClient(HiddenClient):
    """Keeps what it sees."""

    def begin(self, session: ClientSession, table: HiddenTable) -> None:
        super().begin(session, table)
        self.seen_tables = dict(self._others)
        self.seen: list[tuple[Words, Words]] = []

    def _scored(self, table: PaddedTable, opened: Words, dealt: Words, batch: HiddenBatch) -> Words:
        self.seen.append((opened.copy(), dealt.copy()))
        return super()._scored(table, opened, dealt, batch)


def seen_in(session: HiddenSession) -> SeenHidden:
    """A real session, with what scorers see and what the asker sees side by side."""
    clients: dict[PartyId, _SeeingClient] = {}

    def take_part(conversation: Conversation) -> None:
        client = session.take_part_as(_SeeingClient, conversation)
        assert isinstance(client, _SeeingClient)
        clients[conversation.transport.party] = client

    session.parties.view(session.serve, take_part)
    terms = session.first.terms
    products = {scorer: [dealt for _, dealt in clients[scorer].seen] for scorer in terms.scorers}
    opened = [masked for masked, _ in clients[terms.scorers[0]].seen]
    return SeenHidden(opened, products, clients[terms.asker].seen_tables)


def simulate_seen_by_scorers(session: HiddenSession) -> SeenHidden:
    """From the sizes of the batches alone."""
    seen = SeenHidden()
    for batch, _ in session.todo:
        seen.opened.append(_uniform(batch.rows, batch.shape.dimensions))
        for scorer in batch.terms.scorers:
            seen.products.setdefault(scorer, []).append(_uniform(batch.rows, batch.terms.positions))
    return seen


def simulate_seen_by_asker(session: HiddenSession) -> SeenHidden:
    """From the sizes of the tables alone."""
    terms, dimensions = session.first.terms, session.first.shape.dimensions
    return SeenHidden(tables={scorer: _uniform(terms.positions, dimensions) for scorer in terms.scorers})


def _uniform(rows: int, columns: int) -> Words:
    """From the operating system's randomness."""
    return np.frombuffer(secrets.token_bytes(_WORD * rows * columns), dtype="<u8").reshape(rows, columns)
