"""One sum of real vectors in one process, by any registered aggregation, with dropouts where they are asked for.

>>> from protocols import simulate_sum
>>> rows = {1: [0.5, 1.0], 2: [0.25, 2.0], 3: [4.0, 4.0], 4: [0.25, 3.0]}
>>> done = simulate_sum(rows, dropouts=[3])
>>> done.total
array([1., 6.])
>>> done.contributors, done.read_by
((1, 2, 4), 'the server')

What the server received of client 1 is a masked vector, which has nothing to do with its numbers:

>>> bool((done.received[1] == simulate_sum(rows, dropouts=[3]).received[1]).any())
False
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.bundles import Aggregation
from protocols.foundation.errors import EncodingOverflow, ProtocolError
from protocols.foundation.identifiers import PartyId, RoundId, SessionId, new_session
from protocols.primitives.group import GroupVector
from protocols.registry import AGGREGATIONS
from protocols.session.conversation import Conversation
from protocols.simulation.staging import (
    USUAL_THREAT,
    DroppedOut,
    Foreseen,
    ReceivedInputs,
    at_client,
    at_server,
    numbered,
)
from protocols.sums.interface import Collected, Contribution, SumLayout, Total
from protocols.sums.secagg.keys import ClientKeys, ServerKeys
from protocols.sums.secagg.params import ParametersRefused, ThreatModel
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from protocols.sums.terms import SumTerms
from protocols.sums.totals import SumTotal, TotalReader
from protocols.transport.base import Transport
from protocols.transport.in_threads import run_in_process

_PURPOSE: Final = "simulated sum"
_ROUND: Final = RoundId(1)
_NO_COUNTS: Final = np.zeros(0, dtype=np.int64)
Vectors: TypeAlias = Mapping[int, npt.ArrayLike] | Sequence[npt.ArrayLike]
_Read: TypeAlias = tuple[Total, frozenset[PartyId]]


@dataclass(frozen=True, slots=True)
class SimulatedSum:
    """A sum that was made, and what the server had of it."""

    total: npt.NDArray[np.float64]
    """The sum over the contributors, exact but for the rounding of each input to a fixed point."""
    contributors: tuple[int, ...]
    read_by: str
    """Who could read the total: "the server" or "the clients"."""
    received: Mapping[int, GroupVector] = field(repr=False)
    """By client, the vector that the server received of it: masked, or in clear if the sum hides nothing."""
    bytes_up: int
    """That a client sent at most, set-up of keys included."""
    bytes_down: int
    unit: float
    """Of the fixed point: inputs are rounded to multiples of it."""


def simulate_sum(
    vectors: Vectors,
    *,
    aggregation: str = "secagg",
    dropouts: Collection[int] = (),
    threat: ThreatModel = USUAL_THREAT,
    bound: float | None = None,
    ring_bits: int = 64,
) -> SimulatedSum:
    """Add up one vector for each client, over an in-process network, with all keys and masks of the real protocol.

    `vectors`: by client number, or a list for clients 1, 2, ... `dropouts`: clients that leave once keys are agreed on
    and before they send anything of their vector. `bound`: inputs are clipped to ± this; by default their largest
    value, which in earnest must be agreed on beforehand. `ProtocolError` where the threat model cannot be met, as
    with more dropouts than it allows for.
    """
    inputs = _inputs(vectors)
    clients = numbered(inputs)
    if unknown := sorted(set(dropouts) - set(inputs)):
        raise ParametersRefused(f"client {unknown[0]} is to drop out, and there is no such client")
    largest = max(float(np.abs(vector).max(initial=0.0)) for vector in inputs.values())
    layout = SumLayout(len(inputs[1]), 0, bound or largest or 1.0, 0, len(clients), ring_bits)
    terms, group = SumTerms(_ROUND, _PURPOSE, clients, layout), layout.group
    stage = _Stage(AGGREGATIONS[aggregation], terms, threat, frozenset(PartyId(number) for number in dropouts))
    received = ReceivedInputs(stage.session)
    ended = run_in_process(
        lambda transport: stage.serve(transport, received),
        {party: stage.client(Contribution(inputs[party], _NO_COUNTS)) for party in clients},
    )
    at_end = ended.server.result()
    staying = [client.result() for party, client in ended.clients.items() if party not in stage.leaving]
    total, contributors = at_end if isinstance(at_end, tuple) else _read_by_a_client(at_end, staying)
    return SimulatedSum(
        total=total.real,
        contributors=tuple(sorted(int(party) for party in contributors)),
        read_by="the server" if isinstance(at_end, tuple) else "the clients",
        received={party: group.from_wire(sent, group.length_on_wire(sent)) for party, sent in received.inputs.items()},
        bytes_up=max(sent for sent, _, _ in staying),
        bytes_down=max(taken for _, taken, _ in staying),
        unit=layout.codec.unit,
    )


_Part: TypeAlias = tuple[int, int, Total | None]
"""Bytes that a client sent and received, and the total, if it can read it."""


@dataclass(frozen=True, slots=True)
class _Stage:
    """Both roles of one sum."""

    protocol: Aggregation
    terms: SumTerms[SumLayout]
    threat: ThreatModel
    leaving: frozenset[PartyId]
    session: SessionId = field(default_factory=new_session)

    def serve(self, transport: Transport, received: ReceivedInputs) -> _Read | frozenset[PartyId]:
        transport.attach(received)
        clients, patience = self.terms.participants, Foreseen(self.leaving)
        conversation = Conversation(transport, self.session)
        session = at_server(conversation, clients, patience)
        try:
            keys = None
            if self.protocol.needs_keys:
                keys = ServerKeys.agree(session, VectorServer(len(clients), self.threat))
            server = self.protocol.server(keys, 1)
            server.prepare(session, self.terms)
            patience.begun = True
            found = server.collect(session, self.terms)
        except ProtocolError as problem:
            conversation.abort(clients, str(problem), _ROUND)
            raise
        if isinstance(found, Collected):
            return found.total, found.contributors
        session.broadcast(session.present, found, _ROUND, "total")
        return frozenset(PartyId(number) for number in found.contributors)

    def client(self, contribution: Contribution) -> "_Client":
        return _Client(self, contribution)


@dataclass(frozen=True, slots=True)
class _Client:
    """One client's part."""

    stage: _Stage
    contribution: Contribution = field(repr=False)

    def __call__(self, transport: Transport) -> _Part:
        stage, conversation = self.stage, Conversation(transport, self.stage.session)
        keys = None
        if stage.protocol.needs_keys:
            keys = ClientKeys.agree(at_client(conversation), VectorClient(stage.terms.participants, stage.threat))
        client = stage.protocol.client(keys)
        client.prepare(at_client(conversation), stage.terms)
        if transport.party in stage.leaving:
            raise DroppedOut
        client.contribute(at_client(conversation), stage.terms, self.contribution)
        total = None
        if isinstance(client, TotalReader):
            total = client.open(stage.terms, at_client(conversation).receive(SumTotal, *stage.terms.key))
        traffic = transport.traffic
        return traffic.total("sent").bytes, traffic.total("received").bytes, total


def _read_by_a_client(contributors: frozenset[PartyId], staying: list[_Part]) -> _Read:
    """The total as clients have read it, which is the same for all of them."""
    totals = [total for _, _, total in staying if total is not None]
    return totals[0], contributors


def _inputs(vectors: Vectors) -> dict[int, npt.NDArray[np.float64]]:
    given = vectors if isinstance(vectors, Mapping) else dict(enumerate(vectors, start=1))
    try:
        inputs = {int(number): np.asarray(vector, dtype=np.float64) for number, vector in given.items()}
    except (TypeError, ValueError):
        raise EncodingOverflow("a simulated sum takes one vector of numbers for each client") from None
    if len({vector.shape for vector in inputs.values()}) > 1 or any(vector.ndim != 1 for vector in inputs.values()):
        raise EncodingOverflow("the vectors of a sum have one dimension and the same length")
    if not all(bool(np.isfinite(vector).all()) for vector in inputs.values()):
        raise EncodingOverflow("the vectors of a sum have finite numbers only")
    return inputs
