"""The real session of each protocol, as its server and its clients hold it (`real` runs them).

Each class is one session with fixed inputs: `serve` is the server's part, `take_part` a client's. They are the calls
that a training job makes, in its order.
"""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from protocols.alignment import plain as plain_union
from protocols.alignment.psu.names import PURPOSE as NAMES
from protocols.alignment.psu.names import learn, reveal
from protocols.alignment.psu.union import join, serve
from protocols.foundation.identifiers import SERVER, SETUP, PartyId
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.holders.interface import CountTask
from protocols.holders.secret import SecretHolderClient, SecretHolderServer
from protocols.ideal.real import Falls, Parties, ServerSide, soon
from protocols.ideal.views import View
from protocols.primitives.prg import KEY_BYTES
from protocols.session import group_key
from protocols.session.conversation import Conversation
from protocols.sums.interface import Collected, Contribution, SumClient, SumServer, SumTask
from protocols.sums.plain import PlainSumClient, PlainSumServer
from protocols.sums.secagg.openings import commit
from protocols.sums.secagg.sums import SecAggSumClient, SecAggSumServer
from protocols.sums.secret.aggregation import SecretSumClient, SecretSumServer
from protocols.sums.totals import SumTotal
from protocols.transport.tap import Recorder


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
        vectors = self.parties.vector_server()
        vectors.setup(side.conversation, side.present, side.patience, side.silent)
        group_key.serve(side.conversation, side.present, side.patience, side.silent)

    def take_part(self, conversation: Conversation) -> None:
        vectors = self.parties.vector_client(conversation.transport.party)
        vectors.setup(conversation, soon())
        group_key.join(conversation, vectors.session, soon())


@dataclass(frozen=True)
class SumSession(Session):
    """Sums one after the other; `client` and `server` make the two sides of one of the twins."""

    parties: Parties
    sums: Sequence[tuple[SumTask, Mapping[PartyId, Contribution]]] = field(repr=False)
    client: Callable[[Parties, PartyId], SumClient]
    server: Callable[[Parties], SumServer[Collected | SumTotal]]
    falls: Falls = field(default_factory=Falls)

    @classmethod
    def masked(cls, parties: Parties, sums: Sequence[tuple[SumTask, Mapping[PartyId, Contribution]]]) -> "SumSession":
        return cls(
            parties,
            sums,
            lambda parties, me: SecAggSumClient(parties.vector_client(me)),
            lambda parties: SecAggSumServer(parties.vector_server()),
        )

    @classmethod
    def secret(cls, parties: Parties, sums: Sequence[tuple[SumTask, Mapping[PartyId, Contribution]]]) -> "SumSession":
        return cls(
            parties,
            sums,
            lambda parties, me: SecretSumClient(parties.vector_client(me)),
            lambda parties: SecretSumServer(parties.vector_server()),
        )

    @classmethod
    def plain(cls, parties: Parties, sums: Sequence[tuple[SumTask, Mapping[PartyId, Contribution]]]) -> "SumSession":
        return cls(parties, sums, lambda parties, me: PlainSumClient(), lambda parties: PlainSumServer())

    def serve(self, side: ServerSide) -> None:
        server = self.server(self.parties)
        server.setup(side.conversation, side.present, side.patience, side.silent)
        for task, _ in self.sums:
            side.expect(task.purpose, self.falls.at(task.round, task.purpose))
            server.prepare(side.conversation, task, side.present, side.patience, side.silent)
            result = server.collect(side.conversation, task, side.patience, side.silent, side.present)
            if isinstance(result, SumTotal):
                with side.conversation.transport.phase(task.round, task.purpose):
                    contributors = {PartyId(party) for party in result.contributors}
                    side.conversation.broadcast(contributors & side.present, result, task.round)

    def take_part(self, conversation: Conversation) -> None:
        me = conversation.transport.party
        client = self.client(self.parties, me)
        client.setup(conversation, soon())
        key = secrets.token_bytes(KEY_BYTES)
        for public, inputs in self.sums:
            task = replace(public, state=_state(key, public, inputs[me])) if public.state else public
            client.prepare(conversation, task, soon())
            client.contribute(conversation, task, inputs[me], soon())
            if isinstance(client, SecretSumClient):
                client.open(task, conversation.receive(SERVER, SumTotal, task.round, soon(), task.purpose))


def _state(key: bytes, task: SumTask, contribution: Contribution) -> bytes:
    """A client's own commitment, where the public task says with any state that there is one."""
    return commit(key, f"round {task.round}", contribution.real.tobytes() + contribution.counts.tobytes())


@dataclass(frozen=True)
class CountSession(Session):
    """Counts of holders one after the other."""

    parties: Parties
    counts: Sequence[tuple[CountTask, Mapping[PartyId, npt.NDArray[np.int64]]]] = field(repr=False)
    falls: Falls = field(default_factory=Falls)

    def serve(self, side: ServerSide) -> None:
        vectors = self.parties.vector_server()
        vectors.setup(side.conversation, side.present, side.patience, side.silent)
        group_key.serve(side.conversation, side.present, side.patience, side.silent)
        server = SecretHolderServer(vectors)
        for task, _ in self.counts:
            side.expect(HOLDERS, self.falls.at(task.round, HOLDERS))
            server.prepare(side.conversation, task, side.present, side.patience, side.silent)
            server.collect(side.conversation, task, side.patience, side.silent, side.present)

    def take_part(self, conversation: Conversation) -> None:
        me = conversation.transport.party
        vectors = self.parties.vector_client(me)
        vectors.setup(conversation, soon())
        client = SecretHolderClient(vectors, group_key.join(conversation, vectors.session, soon()))
        for task, held in self.counts:
            client.prepare(conversation, task, soon())
            client.count(conversation, task, held[me], soon())


@dataclass(frozen=True)
class UnionSession(Session):
    """A private set union and, if `revealing`, its names for the server."""

    parties: Parties
    names: Mapping[PartyId, Sequence[str]] = field(repr=False)
    bound: int
    revealing: bool = False
    falls: Falls = field(default_factory=Falls)

    def serve(self, side: ServerSide) -> None:
        vectors, clients = self.parties.vector_server(), self.parties.clients
        vectors.setup(side.conversation, side.present, side.patience, side.silent)
        commitment = group_key.serve(side.conversation, side.present, side.patience, side.silent)
        side.expect("union/0", self.falls.at(SETUP, "union/0"))
        union = serve(
            side.conversation, vectors, commitment, clients, side.present, self.bound, side.patience, side.silent
        )
        if self.revealing:
            side.expect(NAMES, self.falls.at(SETUP, NAMES))
            learn(side.conversation, vectors, union, clients, side.present, side.patience, side.silent)

    def take_part(self, conversation: Conversation) -> None:
        me, clients = conversation.transport.party, self.parties.clients
        vectors = self.parties.vector_client(me)
        vectors.setup(conversation, soon())
        key = group_key.join(conversation, vectors.session, soon())
        positions = join(conversation, vectors, key, self.names[me], clients, self.bound, soon())
        if self.revealing:
            reveal(conversation, vectors, positions, self.names[me], clients, soon())


@dataclass(frozen=True)
class PlainUnionSession(Session):
    """The twin in clear."""

    parties: Parties
    names: Mapping[PartyId, Sequence[str]] = field(repr=False)
    falls: Falls = field(default_factory=Falls)

    def serve(self, side: ServerSide) -> None:
        plain_union.serve(side.conversation, side.present, side.patience, side.silent)

    def take_part(self, conversation: Conversation) -> None:
        plain_union.join(conversation, self.names[conversation.transport.party], soon())
