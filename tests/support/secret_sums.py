"""Secret sums as conversations, and the same put together in one place."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from protocols.foundation import wire
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.primitives.group import GroupVector
from protocols.primitives.prg import add_keystream
from protocols.session.conversation import Conversation
from protocols.session.group_key import GroupKey
from protocols.session.patience import Patience
from protocols.sums.interface import SumLayout, Total
from protocols.sums.secagg.vectors import VectorClient
from protocols.sums.secret.aggregation import (
    SecretSumClient,
    SecretSumServer,
    mask_key,
    secret_terms,
)
from protocols.sums.secret.check import with_checks
from protocols.sums.terms import SumTerms
from protocols.sums.totals import SumTotal
from tests.support.group_keys import KINDS, Kind, a_key
from tests.support.in_threads import SESSION, at_once, at_server, converse
from tests.support.sum_conversations import (
    SEMI_HONEST,
    Bent,
    Foreseen,
    Inputs,
    Silences,
    Stopped,
    everyone,
    layout_for,
    random_inputs,
    stopping_at,
    task_of,
)

CLIENTS = everyone(4)
ONE, TWO, THREE, FOUR = CLIENTS
FIRST, SECOND = RoundId(1), RoundId(2)
LAYOUT = layout_for(4)
TASK = task_of(LAYOUT, CLIENTS)
INPUTS = random_inputs(LAYOUT, CLIENTS)
both = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
both_rings = pytest.mark.parametrize("ring_bits", [32, 64])


@dataclass
class Run:
    """One session: what the server holds after each sum, whom it called silent, and the clients as they are then."""

    totals: list[SumTotal]
    clients: dict[PartyId, SecretSumClient]
    silent: Silences = field(default_factory=Silences)

    def key(self, party: PartyId = ONE) -> GroupKey:
        return self.clients[party]._group_key()


def run(
    kind: Kind,
    tasks: Sequence[tuple[SumTerms[SumLayout], Inputs]],
    patience: Patience | None = None,
    stop: tuple[PartyId, type[wire.Message]] | None = None,
    watch: Callable[[Conversation], Conversation] = lambda conversation: conversation,
) -> Run:
    """Each sum of `tasks` in turn; whoever has an input contributes. `stop`: who drops out, before saying what."""
    made, waiting = Run([], {}), patience or Foreseen()

    def take_part(conversation: Conversation) -> None:
        me = conversation.transport.party
        client = made.clients[me] = SecretSumClient(kind.client(CLIENTS, me))
        if stop is not None and stop[0] == me:
            conversation = Bent(conversation, stopping_at(stop[1]))
        try:
            client.setup(at_once(conversation))
            for task, inputs in tasks:
                if me in inputs:
                    client.prepare(at_once(conversation), task)
                    report = client.contribute(at_once(conversation), task, inputs[me])
                    assert report.max_error == task.layout.encode(inputs[me]).max_error
        except Stopped:
            pass

    def serve(conversation: Conversation) -> None:
        conversation, server = watch(conversation), SecretSumServer(kind.server(CLIENTS))
        server.setup(at_server(conversation, CLIENTS, waiting, made.silent))
        gone = {party for parties, _ in made.silent.seen for party in parties}
        for task, inputs in tasks:
            server.prepare(at_server(conversation, inputs.keys() - gone, waiting, made.silent), task)
            made.totals.append(over_the_wire(server.collect(at_server(conversation, None, waiting, made.silent), task)))
        assert server.unmask_seconds > 0

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))
    return made


def over_the_wire(total: SumTotal) -> SumTotal:
    received = wire.decode(wire.encode(total, SESSION, FIRST), session=SESSION).message
    assert isinstance(received, SumTotal)
    return received


def added(task: SumTerms[SumLayout], inputs: Inputs, parties: Collection[PartyId]) -> GroupVector:
    """The sum of the encoded inputs in the clear."""
    total = task.layout.group.zeros(task.layout.entries)
    for party in parties:
        task.layout.group.add_into(total, task.layout.encode(inputs[party]).vector)
    return total


def added_with_checks(
    key: GroupKey, task: SumTerms[SumLayout], inputs: Inputs, parties: Collection[PartyId]
) -> GroupVector:
    """The sum of what clients send, each with the checks of its own vector."""
    vectors = secret_terms(task)
    total = task.layout.group.zeros(vectors.layout.entries)
    for party in parties:
        sent = with_checks(key, vectors, task.layout.encode(inputs[party]).vector)
        task.layout.group.add_into(total, sent)
    return total


def is_sum_of(opened: Total, task: SumTerms[SumLayout], inputs: Inputs, parties: Collection[PartyId]) -> bool:
    """To the last bit."""
    expected = task.layout.decode(added(task, inputs, parties))
    return np.array_equal(opened.real, expected.real) and np.array_equal(opened.counts, expected.counts)


def masked(
    key: GroupKey, task: SumTerms[SumLayout], inputs: Inputs, parties: Collection[PartyId] | None = None
) -> SumTotal:
    """What the server holds at the end of a sum, put together in one place."""
    contributors = list(inputs) if parties is None else list(parties)
    vector = added_with_checks(key, task, inputs, contributors)
    for party in contributors:
        add_keystream(mask_key(key, secret_terms(task), party), vector, task.layout.group)
    return SumTotal.of(task.round, task.purpose, contributors, task.layout.group.to_wire(vector))


def client_with(key: GroupKey) -> SecretSumClient:
    return SecretSumClient(VectorClient(CLIENTS, SEMI_HONEST), key)


KEY = a_key(1)
