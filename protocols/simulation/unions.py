"""One alignment of names in one process: by default the private set union.

>>> from protocols import simulate_union
>>> done = simulate_union([["treats", "causes"], ["causes", "part of"], ["treats"]])
>>> done.size
3
>>> done.positions[1]["treats"] == done.positions[3]["treats"]
True
>>> done.server_learns
'how many there are, and tags without names'
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from protocols.alignment.interface import Positions, Union
from protocols.bundles import Alignment, AlignmentTerms
from protocols.foundation.disclosure import Subject
from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import SETUP, SessionId, new_session
from protocols.registry import ALIGNMENTS
from protocols.session.conversation import Conversation
from protocols.simulation.staging import USUAL_THREAT, Foreseen, at_client, at_server, numbered
from protocols.sums.secagg.keys import ClientKeys, ServerKeys
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from protocols.transport.base import Transport
from protocols.transport.in_threads import run_in_process

Names: TypeAlias = Mapping[int, Collection[str]] | Sequence[Collection[str]]


@dataclass(frozen=True, slots=True)
class SimulatedUnion:
    """A union that was made."""

    size: int
    """How many names there are in all."""
    positions: Mapping[int, Mapping[str, int]] = field(repr=False)
    """By client: where its own names stand in the union. The same name has the same place everywhere."""
    server_learns: str
    """About names, by the protocol's disclosure."""
    bytes_up: int
    """That a client sent at most, set-up of keys included."""
    bytes_down: int


def simulate_union(
    names: Names, *, alignment: str = "psu", threat: ThreatModel = USUAL_THREAT, bound: int | None = None
) -> SimulatedUnion:
    """Align the names of several clients, over an in-process network, with all keys and masks of the real protocol.

    `names`: by client number, or a list for clients 1, 2, ... `bound`: how many names the first attempt has room for;
    by default as many as all clients have, which in earnest nobody knows.
    """
    given = names if isinstance(names, Mapping) else dict(enumerate(names, start=1))
    own = {int(number): sorted(set(some)) for number, some in given.items()}
    clients = numbered(own)
    room = bound if bound is not None else max(1, sum(map(len, own.values())))
    protocol = ALIGNMENTS[alignment]
    stage = _Stage(protocol, AlignmentTerms(clients=clients, bound=room), threat)
    ended = run_in_process(stage.serve, {party: stage.client(own[party]) for party in clients})
    found = {int(party): client.result() for party, client in ended.clients.items()}
    return SimulatedUnion(
        size=ended.server.result().size,
        positions={
            number: dict(zip(own[number], positions.own.tolist(), strict=True))
            for number, (_, _, positions) in found.items()
        },
        server_learns=protocol.disclosure.learned[Subject.NAMES].server,
        bytes_up=max(sent for sent, _, _ in found.values()),
        bytes_down=max(taken for _, taken, _ in found.values()),
    )


@dataclass(frozen=True, slots=True)
class _Stage:
    """Both roles of one alignment."""

    protocol: Alignment
    terms: AlignmentTerms
    threat: ThreatModel
    session: SessionId = field(default_factory=new_session)

    def serve(self, transport: Transport) -> Union:
        conversation = Conversation(transport, self.session)
        session = at_server(conversation, self.terms.clients, Foreseen(()))
        try:
            keys = None
            if self.protocol.needs_keys:
                keys = ServerKeys.agree(session, VectorServer(len(self.terms.clients), self.threat))
            return self.protocol.serve(session, keys, self.terms)
        except ProtocolError as problem:
            conversation.abort(self.terms.clients, str(problem), SETUP)
            raise

    def client(self, names: list[str]) -> "_Client":
        return _Client(self, names)


@dataclass(frozen=True, slots=True)
class _Client:
    """One client's part."""

    stage: _Stage
    names: list[str] = field(repr=False)

    def __call__(self, transport: Transport) -> tuple[int, int, Positions]:
        stage, conversation = self.stage, Conversation(transport, self.stage.session)
        keys = None
        if stage.protocol.needs_keys:
            keys = ClientKeys.agree(at_client(conversation), VectorClient(stage.terms.clients, stage.threat))
        positions = stage.protocol.join(at_client(conversation), keys, stage.terms, self.names, b"")
        traffic = transport.traffic
        return traffic.total("sent").bytes, traffic.total("received").bytes, positions
