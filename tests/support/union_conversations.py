"""Whole unions as conversations: a server and its clients over threads, honest ones and others."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from protocols.alignment.interface import Positions, Union
from protocols.alignment.psu.attempts import UnionPlaces, UnionTerms
from protocols.alignment.psu.names import learn, objection, reveal
from protocols.alignment.psu.union import join, serve
from protocols.foundation import wire
from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.foundation.spent import Spent
from protocols.primitives.group import GroupVector
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Conversation, Failed
from protocols.session.group_key import GroupKey
from protocols.session.patience import Patience
from protocols.sums.secagg.keys import ClientKeys, ServerKeys
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from protocols.sums.terms import SumTerms
from tests.support.in_threads import SESSION, Part, at_once, at_server, converse
from tests.support.sum_conversations import SEMI_HONEST, Foreseen, Silences, everyone

KEY = GroupKey(bytes(range(32)), SESSION, b"c" * 32)
OTHER_KEY = GroupKey(bytes(range(32)), SESSION, b"d" * 32)

Names = Sequence[str]


def joining(
    clients: Collection[PartyId],
    names: Names,
    bound: int = 100,
    key: GroupKey = KEY,
    *,
    revealing: bool = False,
    vectors: Callable[..., VectorClient] = VectorClient,
) -> Part:
    """A client's positions, or what it raised: it says so to the server, as a real one does."""

    def take_part(conversation: Conversation) -> Positions | ProtocolError:
        client = vectors(clients, SEMI_HONEST)
        try:
            client.setup(at_once(conversation))
            objecting = objection(names) if revealing else ""
            keys, terms = ClientKeys(client, key), UnionTerms(tuple(clients), bound)
            positions = join(at_once(conversation), keys, terms, names, objecting)
            if revealing:
                reveal(at_once(conversation), client, tuple(clients), positions, names)
        except ProtocolError as problem:
            conversation.send(SERVER, Failed(str(problem)[:500]), RoundId(0))
            return problem
        return positions

    return take_part


@dataclass
class Served:
    """What the server knows in the end, and whom it has called silent."""

    union: Union | None = None
    names: list[str] = field(default_factory=list)
    silences: Silences = field(default_factory=Silences)
    problem: ProtocolError | None = None


Mended = Callable[[Conversation], Conversation]


def serving(
    clients: Collection[PartyId],
    bound: int = 100,
    patience: Patience | None = None,
    *,
    revealing: bool = False,
    live: bool = True,
    commitment: bytes = KEY.commitment,
    mend: Mended = lambda conversation: conversation,
) -> Part:
    """`live`: whether the callback itself takes dropouts from the parties that are present, as a real server's does."""

    def take_part(straight: Conversation) -> Served:
        conversation = mend(straight)
        server, waiting, served = VectorServer(len(clients), SEMI_HONEST), patience or Foreseen(), Served()

        def dropout(parties: Collection[PartyId], step: str) -> None:
            served.silences(parties, step)
            if live:
                session.attending.difference_update(parties)

        session = at_server(conversation, clients, waiting, dropout)
        try:
            server.setup(session)
            served.union = serve(session, ServerKeys(server, commitment), UnionTerms(tuple(clients), bound))
            if revealing:
                served.names = learn(session, server, tuple(clients), served.union)
        except ProtocolError as problem:
            served.problem = problem
            straight.abort(clients, str(problem), RoundId(0))
        return served

    return take_part


def unite(sets: Sequence[Names], bound: int = 100, **options: Any) -> tuple[Served, dict[PartyId, Positions]]:
    """Honest clients with these names, and what everybody has in the end."""
    clients = everyone(len(sets))
    revealing = options.get("revealing", False)
    parts = {
        party: joining(clients, names, bound, revealing=revealing) for party, names in zip(clients, sets, strict=True)
    }
    results = converse({SERVER: serving(clients, bound, **options)} | parts)
    served = results.pop(SERVER)
    assert served.problem is None
    return served, results


def is_union_of(
    served: Served, positions: Mapping[PartyId, Positions], sets: Mapping[PartyId, Names], members: Collection[PartyId]
) -> bool:
    """Whether those who have positions have the right ones for the union of the `members`' names."""
    expected = {name for party in members for name in sets[party]}
    found: dict[str, int] = {}
    for party, own in positions.items():
        if len(own.own) != len(sets[party]) or own.own.dtype != np.int64:
            return False
        for name, position in zip(sets[party], own.own.tolist(), strict=True):
            if found.setdefault(name, position) != position:
                return False
    return (
        served.union is not None
        and served.union.size == len(expected)
        and {own.union_size for own in positions.values()} <= {len(expected)}
        and {own.digest for own in positions.values()} <= {served.union.digest}
        and len(set(found.values())) == len(found)
        and all(0 <= position < len(expected) for position in found.values())
    )


def of_purpose(kind: type[wire.Message], purpose: str, make: Callable[[], wire.Message]) -> Any:
    """Honest but for the message of one kind in one sum."""

    def bend(message: wire.Message, round_id: RoundId) -> wire.Message:
        return make() if isinstance(message, kind) and getattr(message, "purpose", "") == purpose else message

    return bend


class AnsweringOtherwise(Conversation):
    """A server's conversation in which each client is sent what `bend` makes of the places for it."""

    def __init__(self, straight: Conversation, bend: Callable[[UnionPlaces, PartyId], UnionPlaces]) -> None:
        super().__init__(straight.transport, straight.session)
        self._bend = bend

    def broadcast(self, to: Collection[PartyId], message: wire.Message, round_id: RoundId) -> set[PartyId]:
        if not isinstance(message, UnionPlaces):
            return super().broadcast(to, message, round_id)
        return self.deliver({party: self._bend(message, party) for party in to}, round_id)


class Noise(VectorClient):
    """A client that adds noise in place of its table."""

    def contribute(
        self, session: ClientSession, terms: SumTerms[Any], vector: GroupVector, *rest: Any, **named: Any
    ) -> Spent:
        noise = terms.layout.group.uniform((terms.layout.entries,))
        return super().contribute(session, terms, noise, *rest, **named)
