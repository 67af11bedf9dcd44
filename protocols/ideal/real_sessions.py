"""The real session of each protocol, as its server and its clients hold it (`real` runs them).

Each class is one session with fixed inputs: `serve` is the server's part, `take_part` a client's. They are the calls
that a training job makes, in its order.
"""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.alignment import plain as plain_union
from protocols.alignment.psu.attempts import UnionTerms
from protocols.alignment.psu.names import PURPOSE as NAMES
from protocols.alignment.psu.names import learn, reveal
from protocols.alignment.psu.union import join, serve
from protocols.foundation.identifiers import SETUP, PartyId
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.holders.interface import CountTask
from protocols.holders.secret import SecretHolderClient, SecretHolderServer
from protocols.ideal.real import Falls, Parties, ServerSide, at_once
from protocols.ideal.views import View
from protocols.primitives.prg import KEY_BYTES
from protocols.session.conversation import Conversation
from protocols.sums.interface import Collected, Contribution, SumClient, SumLayout, SumServer
from protocols.sums.plain import PlainSumClient, PlainSumServer
from protocols.sums.secagg.keys import ClientKeys, ServerKeys
from protocols.sums.secagg.openings import commit
from protocols.sums.secagg.sums import SecAggSumClient, SecAggSumServer
from protocols.sums.secret.aggregation import SecretSumClient, SecretSumServer
from protocols.sums.terms import SumTerms
from protocols.sums.totals import SumTotal
from protocols.transport.tap import Recorder

KnownSums: TypeAlias = Sequence[tuple[SumTerms[SumLayout], Mapping[PartyId, Contribution]]]
"""Sums with every client's input."""


class Session(ABC):
    """One session, to be held as often as one likes."""

    parties: Parties
    falls: Falls

    @abstractmethod
    def serve(self, side: ServerSide) -> None:
        """The server's part."""

    @abstractmethod
    def take_part(self, conversation: Conversation) -> None:
        """A client's part."""

    def view(self) -> View:
        return self.parties.view(self.serve, self.take_part, self.falls)

    def record(self, recorder: Recorder) -> None:
        self.parties.record(recorder, self.serve, self.take_part, self.falls)


@dataclass(frozen=True)
class GroupKeySession(Session):
    """The set-up and a group key."""

    parties: Parties
    falls: Falls = field(default_factory=Falls)

    def serve(self, side: ServerSide) -> None:
        ServerKeys.agree(side.session, self.parties.vector_server())

    def take_part(self, conversation: Conversation) -> None:
        ClientKeys.agree(at_once(conversation), self.parties.vector_client(conversation.transport.party))


@dataclass(frozen=True)
class SumSession(Session):
    """Sums one after the other; `client` and `server` make the two sides of one of the twins."""

    parties: Parties
    sums: KnownSums = field(repr=False)
    client: Callable[[Parties, PartyId], SumClient]
    server: Callable[[Parties], SumServer[Collected | SumTotal]]
    falls: Falls = field(default_factory=Falls)

    @classmethod
    def masked(cls, parties: Parties, sums: KnownSums) -> "SumSession":
        return cls(
            parties,
            sums,
            lambda parties, me: SecAggSumClient(parties.vector_client(me)),
            lambda parties: SecAggSumServer(parties.vector_server()),
        )

    @classmethod
    def secret(cls, parties: Parties, sums: KnownSums) -> "SumSession":
        return cls(
            parties,
            sums,
            lambda parties, me: SecretSumClient(parties.vector_client(me)),
            lambda parties: SecretSumServer(parties.vector_server()),
        )

    @classmethod
    def plain(cls, parties: Parties, sums: KnownSums) -> "SumSession":
        return cls(parties, sums, lambda parties, me: PlainSumClient(), lambda parties: PlainSumServer())

    def serve(self, side: ServerSide) -> None:
        server = self.server(self.parties)
        server.setup(side.session)
        for terms, _ in self.sums:
            side.expect(terms.purpose, self.falls.at(*terms.key))
            server.prepare(side.session, terms)
            result = server.collect(side.session, terms)
            if isinstance(result, SumTotal):
                with side.session.phase(*terms.key):
                    contributors = {PartyId(party) for party in result.contributors}
                    side.session.broadcast(contributors, result, terms.round, terms.purpose)

    def take_part(self, conversation: Conversation) -> None:
        me = conversation.transport.party
        client = self.client(self.parties, me)
        client.setup(at_once(conversation))
        key = secrets.token_bytes(KEY_BYTES)
        for public, inputs in self.sums:
            terms = replace(public, state=_state(key, public, inputs[me])) if public.state else public
            client.prepare(at_once(conversation), terms)
            client.contribute(at_once(conversation), terms, inputs[me])
            if isinstance(client, SecretSumClient):
                client.open(terms, at_once(conversation).receive(SumTotal, *terms.key))


def _state(key: bytes, terms: SumTerms[SumLayout], contribution: Contribution) -> bytes:
    """A client's own commitment, where the public terms say with any state that there is one."""
    return commit(key, f"round {terms.round}", contribution.real.tobytes() + contribution.counts.tobytes())


@dataclass(frozen=True)
class CountSession(Session):
    """Counts of holders one after the other."""

    parties: Parties
    counts: Sequence[tuple[CountTask, Mapping[PartyId, npt.NDArray[np.int64]]]] = field(repr=False)
    falls: Falls = field(default_factory=Falls)

    def serve(self, side: ServerSide) -> None:
        keys = ServerKeys.agree(side.session, self.parties.vector_server())
        server = SecretHolderServer(keys.vectors)
        for task, _ in self.counts:
            side.expect(HOLDERS, self.falls.at(task.round, HOLDERS))
            server.prepare(side.session, task)
            server.collect(side.session, task)

    def take_part(self, conversation: Conversation) -> None:
        me = conversation.transport.party
        keys = ClientKeys.agree(at_once(conversation), self.parties.vector_client(me))
        client = SecretHolderClient(keys.vectors, keys.key)
        for task, held in self.counts:
            client.prepare(at_once(conversation), task)
            client.count(at_once(conversation), task, held[me])


@dataclass(frozen=True)
class UnionSession(Session):
    """A private set union and, if `revealing`, its names for the server."""

    parties: Parties
    names: Mapping[PartyId, Sequence[str]] = field(repr=False)
    bound: int
    revealing: bool = False
    falls: Falls = field(default_factory=Falls)

    def serve(self, side: ServerSide) -> None:
        clients = self.parties.clients
        keys = ServerKeys.agree(side.session, self.parties.vector_server())
        side.expect("union/0", self.falls.at(SETUP, "union/0"))
        union = serve(side.session, keys, UnionTerms(clients, self.bound))
        if self.revealing:
            side.expect(NAMES, self.falls.at(SETUP, NAMES))
            learn(side.session, keys.vectors, clients, union)

    def take_part(self, conversation: Conversation) -> None:
        me, clients = conversation.transport.party, self.parties.clients
        keys = ClientKeys.agree(at_once(conversation), self.parties.vector_client(me))
        positions = join(at_once(conversation), keys, UnionTerms(clients, self.bound), self.names[me])
        if self.revealing:
            reveal(at_once(conversation), keys.vectors, clients, positions, self.names[me])


@dataclass(frozen=True)
class PlainUnionSession(Session):
    """The twin in clear."""

    parties: Parties
    names: Mapping[PartyId, Sequence[str]] = field(repr=False)
    falls: Falls = field(default_factory=Falls)

    def serve(self, side: ServerSide) -> None:
        plain_union.serve(side.session)

    def take_part(self, conversation: Conversation) -> None:
        plain_union.join(at_once(conversation), self.names[conversation.transport.party])
