"""Bytes of lookups counted in closed form are those that travel, to the byte, with signatures too."""

from collections.abc import Mapping

import numpy as np
import pytest

from protocols.costs.lookup_bytes import NameLookup, VectorLookup
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.lookups.names import names_terms
from protocols.lookups.vectors import Vectors, VectorTerms
from protocols.scores.batches import ATTEMPTS
from protocols.session.conversation import Conversation
from protocols.sums.secagg.params import ThreatModel
from protocols.transport.base import Transport
from tests.support.group_keys import Kind
from tests.support.lookups import REQUEST, NamesAsked, VectorsAsked, look_up
from tests.support.sum_conversations import credentials

CLIENTS = tuple(PartyId(number) for number in range(1, 5))
ASKER = PartyId(3)
MODELS = {
    "semi-honest": Kind(ThreatModel(0.2, 0.0, server_apart=True), lambda me: None),
    "signed": Kind(ThreatModel(0.2, 0.0, "active"), credentials),
}


@pytest.mark.parametrize("kind", MODELS)
def test_vectors_twice_and_names(kind: str) -> None:
    ends: dict[PartyId, Transport] = {}

    def keep(conversation: Conversation) -> Conversation:
        ends[conversation.transport.party] = conversation.transport
        return conversation

    answers = {party: Vectors(np.ones(2, dtype=np.bool_), np.ones((2, 5))) for party in CLIENTS}
    first, second, third = (RoundId(1 + ATTEMPTS * number) for number in range(3))
    terms = [VectorTerms(round=number, clients=CLIENTS, asker=ASKER, vectors=2, width=5) for number in (first, second)]
    names = names_terms(third, CLIENTS, ASKER, 3, b"table")
    asked = [VectorsAsked(one, answers, REQUEST) for one in terms]
    looked = look_up(
        [*asked, NamesAsked(names, [4, 2, 7], {PartyId(1): {2: "a name"}})],
        MODELS[kind],
        wrap=dict.fromkeys((SERVER, *CLIENTS), keep),
    )
    assert not looked.problems
    signed = kind == "signed"
    for number, announced in ((first, False), (second, True)):
        lookup = VectorLookup(terms[announced], len(REQUEST), signed, announced)
        require_alike({party: lookup.up(party) for party in CLIENTS}, ends, number)
    require_alike({party: NameLookup(names, signed).up(party) for party in CLIENTS}, ends, third)


def require_alike(counted: Mapping[PartyId, dict[str, int]], ends: Mapping[PartyId, Transport], number: int) -> None:
    for party, expected in counted.items():
        sent = {
            key.phase: count.bytes
            for key, count in ends[party].traffic.counts.items()
            if key.direction == "sent" and key.round == number
        }
        assert sent == expected
