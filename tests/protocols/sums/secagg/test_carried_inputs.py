"""Masked inputs that travel inside other messages: the same sum, or minus the masks if the server reads zeros."""

from typing import Any

import numpy as np
import pytest

from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.primitives.group import Group, GroupVector, Ring
from protocols.primitives.residues import Residues
from protocols.session.conversation import Conversation
from protocols.sums.secagg.messages import MaskedInput
from protocols.sums.secagg.vectors import VectorClient, VectorServer, VectorTotal
from protocols.sums.terms import SumTerms, VectorLayout
from tests.support.in_threads import Part, at_once, at_server, converse
from tests.support.sum_conversations import SEMI_HONEST, Foreseen, Silences, Stopped, everyone

CLIENTS = everyone(4)
LENGTH = 9
SILENT = PartyId(4)


@wire.message(0xFF02)
class Parcel(wire.Message, frozen=True):
    """A message of the tests that carries a masked input backwards."""

    purpose: str
    content: np.ndarray[Any, Any]
    peers: bytes


def terms_in(group: Group) -> SumTerms[VectorLayout]:
    return SumTerms(RoundId(1), "parcels", tuple(CLIENTS), VectorLayout(group, LENGTH))


def input_of(group: Group, party: PartyId) -> GroupVector:
    return np.random.default_rng(party).integers(0, 4294828033, LENGTH, dtype=np.uint32).astype(group.dtype)


class Reading:
    """Keeps what arrives, and hands the sum either that or zeros."""

    def __init__(self, zeros: bool) -> None:
        self._zeros = zeros
        self.arrived: list[GroupVector] = []

    expected = Parcel

    def read(self, party: PartyId, message: wire.Message) -> MaskedInput:
        assert isinstance(message, Parcel)
        vector = message.content[::-1].copy()
        self.arrived.append(vector)
        return MaskedInput(message.purpose, np.zeros_like(vector) if self._zeros else vector, message.peers)


def parcel(masked: MaskedInput) -> wire.Message:
    return Parcel(masked.purpose, masked.vector[::-1].copy(), masked.peers)


def run(group: Group, reading: Reading, silent: PartyId | None = None, carry: Any = parcel) -> VectorTotal:
    terms = terms_in(group)

    def client(conversation: Conversation) -> None:
        me = conversation.transport.party

        def carried(masked: MaskedInput) -> wire.Message:
            if me == silent:
                raise Stopped
            return carry(masked)  # type: ignore[no-any-return]

        vectors = VectorClient(CLIENTS, SEMI_HONEST)
        vectors.setup(at_once(conversation))
        vectors.prepare(at_once(conversation), terms)
        try:
            vectors.contribute(at_once(conversation), terms, input_of(group, me), carry=carried)
        except Stopped:
            return

    def server(conversation: Conversation) -> VectorTotal:
        foreseen = Foreseen() if silent is None else Foreseen(("masked input/parcels", silent))
        session = at_server(conversation, patience=foreseen, on_dropout=Silences())
        vectors = VectorServer(len(CLIENTS), SEMI_HONEST)
        vectors.setup(session)
        vectors.prepare(session, terms)
        return vectors.collect(session, terms, reading)

    parts: dict[PartyId, Part] = {SERVER: server, **dict.fromkeys(CLIENTS, client)}
    total: VectorTotal = converse(parts)[SERVER]
    return total


def added(group: Group, *vectors: GroupVector) -> list[int]:
    total = group.zeros(LENGTH)
    for vector in vectors:
        group.add_into(total, vector)
    return total.tolist()


@pytest.mark.parametrize("silent", [None, SILENT])
@pytest.mark.parametrize("group", [Ring(32), Ring(64), Residues(4294828033)], ids=lambda group: group.name)
def test_carried_inputs_add_up(group: Group, silent: PartyId | None) -> None:
    expected = added(group, *(input_of(group, party) for party in CLIENTS if party != silent))
    assert run(group, Reading(zeros=False), silent).vector.tolist() == expected


@pytest.mark.parametrize("silent", [None, SILENT])
@pytest.mark.parametrize("group", [Ring(32), Residues(4294828033)], ids=lambda group: group.name)
def test_of_zeros_the_total_is_the_correction_of_what_arrived(group: Group, silent: PartyId | None) -> None:
    reading = Reading(zeros=True)
    correction = run(group, reading, silent)
    survivors = [party for party in CLIENTS if party != silent]
    assert correction.contributors == frozenset(survivors)
    assert len(reading.arrived) == len(survivors)
    expected = added(group, *(input_of(group, party) for party in survivors))
    assert added(group, correction.vector, *reading.arrived) == expected
    assert added(group, *reading.arrived) != expected


def test_what_the_reader_refuses_ends_the_sum() -> None:
    class Refusing(Reading):
        def read(self, party: PartyId, message: wire.Message) -> MaskedInput:
            raise PeerMisbehaved(f"nothing of client {party}")

    with pytest.raises(ExceptionGroup) as raised:
        run_briefly(Refusing(zeros=True))
    assert any("nothing of client" in str(one) for one in raised.value.exceptions)


def run_briefly(reading: Reading) -> None:
    """Clients drop out as soon as they have sent: nobody waits for a server that has given up."""
    terms = terms_in(Ring(32))

    def client(conversation: Conversation) -> None:
        vectors = VectorClient(CLIENTS, SEMI_HONEST)
        vectors.setup(at_once(conversation))
        vectors.prepare(at_once(conversation), terms)
        vector = input_of(Ring(32), conversation.transport.party)

        def sent(masked: MaskedInput) -> wire.Message:
            conversation.send(SERVER, parcel(masked), terms.round)
            raise Stopped

        with pytest.raises(Stopped):
            vectors.contribute(at_once(conversation), terms, vector, carry=sent)

    def server(conversation: Conversation) -> None:
        session = at_server(conversation, patience=Foreseen())
        vectors = VectorServer(len(CLIENTS), SEMI_HONEST)
        vectors.setup(session)
        vectors.prepare(session, terms)
        vectors.collect(session, terms, reading)

    converse({SERVER: server, **dict.fromkeys(CLIENTS, client)})
