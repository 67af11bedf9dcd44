"""Masked sums of bare vectors as conversations, and what they must come to."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import pytest

from protocols.foundation.identifiers import PartyId, RoundId
from protocols.primitives.group import MODULUS, Group, GroupVector, PrimeField, Ring
from protocols.session.conversation import Conversation
from protocols.sums.secagg.params import SumParameters, ThreatModel
from protocols.sums.secagg.vectors import VectorClient, VectorServer, VectorTotal, parameters_for
from protocols.sums.terms import SumTerms, VectorLayout
from tests.support.group_keys import KINDS, Kind
from tests.support.in_threads import Part, at_once, at_server
from tests.support.sum_conversations import Foreseen, Silences, everyone

CLIENTS = everyone(4)
ONE, TWO, THREE, FOUR = CLIENTS
FIRST, SECOND = RoundId(1), RoundId(2)
LENGTH = 12
GROUPS: list[Group] = [Ring(32), Ring(64), PrimeField()]
both = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)

Vectors = Mapping[PartyId, GroupVector]


def task_of(
    purpose: str = "a",
    round_id: RoundId = FIRST,
    group: Group = GROUPS[1],
    participants: Collection[PartyId] = CLIENTS,
    length: int = LENGTH,
) -> SumTerms[VectorLayout]:
    return SumTerms(round_id, purpose, tuple(participants), VectorLayout(group, length))


def inputs_of(task: SumTerms[VectorLayout], seed: int = 0) -> dict[PartyId, GroupVector]:
    """From the whole of the group, so that nothing that is lost on the way goes unnoticed."""
    rng = np.random.default_rng(seed)
    return {
        party: rng.integers(0, modulus(task.layout.group), task.layout.entries, dtype=task.layout.group.dtype)
        for party in CLIENTS
    }


def modulus(group: Group) -> int:
    return 1 << group.bits if isinstance(group, Ring) else MODULUS


def exact(task: SumTerms[VectorLayout], vectors: Vectors, parties: Collection[PartyId]) -> list[int]:
    """Entry by entry in Python's integers: nothing of the group's own arithmetic."""
    return [
        sum(int(vectors[party][i]) for party in parties) % modulus(task.layout.group)
        for i in range(task.layout.entries)
    ]


def is_sum_of(total: VectorTotal, task: SumTerms[VectorLayout], vectors: Vectors, parties: Collection[PartyId]) -> bool:
    return total.contributors == frozenset(parties) and total.vector.tolist() == exact(task, vectors, parties)


def taking_part(kind: Kind, act: Callable[[VectorClient, Conversation], Any]) -> Part:
    def take_part(conversation: Conversation) -> Any:
        client = kind.client(CLIENTS, conversation.transport.party)
        client.setup(at_once(conversation))
        return act(client, conversation)

    return take_part


def serving(kind: Kind, act: Callable[[VectorServer, Conversation], Any], silent: Silences | None = None) -> Part:
    def serve(conversation: Conversation) -> Any:
        server = kind.server(CLIENTS)
        server.setup(at_server(conversation, CLIENTS, Foreseen(), silent or Silences()))
        return act(server, conversation)

    return serve


SPARSE = ThreatModel(0.0, 0.1, security_bits=1, correctness_bits=1)
MANY = 24


def sparse_graph() -> SumParameters:
    parameters = parameters_for(MANY, MANY, SPARSE, 2)
    assert not parameters.complete
    return parameters
