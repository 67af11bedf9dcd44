"""Masked sums of bare vectors: several at a time, and with masks that stay."""

from dataclasses import replace

import numpy as np
import pytest

from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import PeerMisbehaved, SumAbandoned
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.primitives.group import Group, GroupVector
from protocols.primitives.prg import add_keystream
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Abandon, Conversation
from protocols.sums.secagg.messages import EncryptedShares, MaskedInput
from protocols.sums.secagg.params import complete_parameters
from protocols.sums.secagg.states import Aborted
from protocols.sums.secagg.vectors import VectorClient, VectorServer, VectorTotal, parameters_for
from tests.support.group_keys import KINDS, Kind
from tests.support.in_threads import at_once, at_server, converse, meeting
from tests.support.sum_conversations import Foreseen, Silences, bent
from tests.support.vector_sums import (
    CLIENTS,
    FIRST,
    FOUR,
    GROUPS,
    LENGTH,
    MANY,
    ONE,
    SECOND,
    SPARSE,
    THREE,
    TWO,
    both,
    inputs_of,
    is_sum_of,
    serving,
    sparse_graph,
    taking_part,
    task_of,
)

PAST = Deadline(0.0)
every_group = pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)


# --- several sums at a time -----------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]], ids=["as prepared", "in another order"])
def test_several_sums_of_one_round_are_prepared_before_the_first_is_contributed_to(
    kind: Kind, order: list[int]
) -> None:
    tasks = [task_of(purpose, group=group) for purpose, group in zip("abc", GROUPS, strict=True)]
    inputs = [inputs_of(task, seed) for seed, task in enumerate(tasks)]

    def take_part(client: VectorClient, conversation: Conversation) -> None:
        for task in tasks:
            client.prepare(at_once(conversation), task)
        for at in order:
            own = inputs[at][conversation.transport.party].copy()
            assert client.contribute(at_once(conversation), tasks[at], own).seconds > 0

    def serve(server: VectorServer, conversation: Conversation) -> list[VectorTotal]:
        for task in tasks:
            server.prepare(at_server(conversation, CLIENTS, Foreseen(), Silences()), task)
        return [server.collect(at_server(conversation, None, Foreseen(), Silences()), tasks[at]) for at in order]

    totals = converse({SERVER: serving(kind, serve)} | dict.fromkeys(CLIENTS, taking_part(kind, take_part)))[SERVER]
    for at, total in zip(order, totals, strict=True):
        assert is_sum_of(total, tasks[at], inputs[at], CLIENTS)


@both
def test_the_same_vector_in_two_sums_of_a_round_goes_under_unrelated_masks(kind: Kind) -> None:
    """The difference of the two uploads would else show it, or be zero."""
    tasks, seen = [task_of("a"), task_of("b")], list[GroupVector]()
    same = inputs_of(tasks[0])

    def take_part(client: VectorClient, conversation: Conversation) -> None:
        for task in tasks:
            client.prepare(at_once(conversation), task)
        for task in tasks:
            client.contribute(at_once(conversation), task, same[conversation.transport.party].copy())

    def noting(conversation: Conversation) -> None:
        def note(message: wire.Message, round_id: RoundId) -> wire.Message:
            if isinstance(message, MaskedInput):
                seen.append(message.vector.copy())
            return message

        bent(taking_part(kind, take_part), note)(conversation)

    def serve(server: VectorServer, conversation: Conversation) -> None:
        for task in tasks:
            server.prepare(at_server(conversation, CLIENTS, Foreseen(), Silences()), task)
        for task in tasks:
            server.collect(at_server(conversation, None, Foreseen(), Silences()), task)

    converse({SERVER: serving(kind, serve)} | dict.fromkeys(CLIENTS, taking_part(kind, take_part)) | {ONE: noting})
    first, second = seen
    assert len(np.unique(first - second)) == LENGTH
    assert not np.isin(first, second).any()


@both
def test_a_sum_that_was_abandoned_is_forgotten_when_the_next_round_begins(kind: Kind) -> None:
    """One that was prepared for a round that never came to it keeps no keys, and cannot be contributed to later."""
    abandoned, kept, later = task_of("a"), task_of("b"), task_of("a", SECOND)
    inputs = inputs_of(later)

    def take_part(client: VectorClient, conversation: Conversation) -> None:
        me = conversation.transport.party
        client.prepare(at_once(conversation), abandoned)
        client.prepare(at_once(conversation), kept)
        running, _ = client._running[abandoned.key]
        client.contribute(at_once(conversation), kept, inputs[me].copy())
        assert client._running.keys() == {abandoned.key}
        client.prepare(at_once(conversation), later)
        assert client._running.keys() == {later.key}
        assert isinstance(running.state, Aborted)
        sent = conversation.transport.traffic.total("sent")
        with pytest.raises(RuntimeError, match="prepare"):
            client.contribute(ClientSession(conversation, PAST), abandoned, inputs[me].copy())
        assert conversation.transport.traffic.total("sent") == sent
        client.contribute(at_once(conversation), later, inputs[me].copy())

    def serve(server: VectorServer, conversation: Conversation) -> VectorTotal:
        for task in (abandoned, kept):
            server.prepare(at_server(conversation, CLIENTS, Foreseen(), Silences()), task)
        server.collect(at_server(conversation, None, Foreseen(), Silences()), kept)
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), Silences()), later)
        with pytest.raises(RuntimeError, match="prepare"):
            server.collect(at_server(conversation, None, Foreseen(), Silences()), abandoned)
        return server.collect(at_server(conversation, None, Foreseen(), Silences()), later)

    results = converse({SERVER: serving(kind, serve)} | dict.fromkeys(CLIENTS, taking_part(kind, take_part)))
    assert is_sum_of(results[SERVER], later, inputs, CLIENTS)


@both
def test_the_order_of_the_calls_is_kept(kind: Kind) -> None:
    task, vector = task_of(), np.zeros(LENGTH, "<u8")

    def take_part(client: VectorClient, conversation: Conversation) -> None:
        me = conversation.transport.party
        with pytest.raises(RuntimeError, match="setup"):
            _ = kind.client(CLIENTS, me).session
        with pytest.raises(RuntimeError, match="setup"):
            kind.client(CLIENTS, me).prepare(ClientSession(conversation, PAST), task)
        with pytest.raises(RuntimeError, match="prepare"):
            client.contribute(ClientSession(conversation, PAST), task, vector.copy())
        client.prepare(at_once(conversation), task)
        for other in (task_of("b"), task_of("a", SECOND)):
            with pytest.raises(RuntimeError, match="prepare"):
                client.contribute(ClientSession(conversation, PAST), other, vector.copy())
        client.contribute(at_once(conversation), task, vector.copy())
        with pytest.raises(RuntimeError, match="prepare"):
            client.contribute(ClientSession(conversation, PAST), task, vector.copy())
        with pytest.raises(PeerMisbehaved, match="a second sum 'a' for round 1"):
            client.prepare(ClientSession(conversation, PAST), task)

    def serve(server: VectorServer, conversation: Conversation) -> None:
        with pytest.raises(RuntimeError, match="setup"):
            kind.server(CLIENTS).prepare(at_server(conversation, CLIENTS, Foreseen(), Silences()), task)
        with pytest.raises(RuntimeError, match="prepare"):
            server.collect(at_server(conversation, None, Foreseen(), Silences()), task)
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), Silences()), task)
        server.collect(at_server(conversation, None, Foreseen(), Silences()), task)
        with pytest.raises(RuntimeError, match="prepare"):
            server.collect(at_server(conversation, None, Foreseen(), Silences()), task)

    converse({SERVER: serving(kind, serve)} | dict.fromkeys(CLIENTS, taking_part(kind, take_part)))


# --- who is still there ---------------------------------------------------------------------------------------------


@both
@every_group
def test_who_is_gone_between_the_two_halves_is_not_waited_for_and_its_masks_are_recovered(
    kind: Kind, group: Group
) -> None:
    """For whichever client: the lowest and the highest number cancel their masks differently."""
    task = task_of(group=group)
    inputs = inputs_of(task)
    for gone in (ONE, THREE, FOUR):
        silent = Silences()

        def take_part(client: VectorClient, conversation: Conversation, gone: PartyId = gone) -> None:
            me = conversation.transport.party
            client.prepare(at_once(conversation), task)
            if me != gone:
                client.contribute(at_once(conversation), task, inputs[me].copy())

        def serve(
            server: VectorServer, conversation: Conversation, gone: PartyId = gone, silent: Silences = silent
        ) -> VectorTotal:
            server.prepare(at_server(conversation, CLIENTS, Foreseen(), silent), task)
            return server.collect(at_server(conversation, set(CLIENTS) - {gone}, Foreseen(), silent), task)

        results = converse({SERVER: serving(kind, serve)} | dict.fromkeys(CLIENTS, taking_part(kind, take_part)))
        assert is_sum_of(results[SERVER], task, inputs, set(CLIENTS) - {gone})
        assert silent.seen == []  # whoever says that it is gone knows it already


@both
def test_what_a_client_sends_that_counts_as_gone_is_not_added(kind: Kind) -> None:
    """Its input is there before anybody looks for it. Later messages of it do not disturb the sums that follow."""
    task, later, sent = task_of(), task_of("a", SECOND), meeting(2)
    inputs = inputs_of(task)

    def take_part(client: VectorClient, conversation: Conversation) -> None:
        me = conversation.transport.party
        client.prepare(at_once(conversation), task)
        client.contribute(at_once(conversation), task, inputs[me].copy())
        client.prepare(at_once(conversation), later)
        client.contribute(at_once(conversation), later, inputs[me].copy())

    def left_out(client: VectorClient, conversation: Conversation) -> None:
        client.prepare(at_once(conversation), task)
        running, _ = client._running[task.key]
        running.receive(at_once(conversation).receive(EncryptedShares, FIRST, task.purpose))
        conversation.send(SERVER, running.set_input(inputs[FOUR].copy()), FIRST)
        sent()
        client.prepare(at_once(conversation), later)
        client.contribute(at_once(conversation), later, inputs[FOUR].copy())

    def serve(server: VectorServer, conversation: Conversation) -> list[VectorTotal]:
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), Silences()), task)
        sent()
        first = server.collect(at_server(conversation, {ONE, TWO, THREE}, Foreseen(), Silences()), task)
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), Silences()), later)
        return [first, server.collect(at_server(conversation, CLIENTS, Foreseen(), Silences()), later)]

    parts = {SERVER: serving(kind, serve)} | dict.fromkeys(CLIENTS, taking_part(kind, take_part))
    first, second = converse(parts | {FOUR: taking_part(kind, left_out)})[SERVER]
    assert is_sum_of(first, task, inputs, [ONE, TWO, THREE])
    assert is_sum_of(second, later, inputs, CLIENTS)


@both
def test_a_sum_is_abandoned_if_too_few_are_still_there(kind: Kind) -> None:
    task = task_of()

    def take_part(client: VectorClient, conversation: Conversation) -> None:
        client.prepare(at_once(conversation), task)
        if conversation.transport.party in (ONE, TWO):
            with pytest.raises(SumAbandoned, match="2 clients have sent an input, 3 are needed"):
                client.contribute(at_once(conversation), task, np.ones(LENGTH, "<u8"))

    def serve(server: VectorServer, conversation: Conversation) -> None:
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), Silences()), task)
        with pytest.raises(SumAbandoned) as abandoned:
            server.collect(at_server(conversation, {ONE, TWO}, Foreseen(), Silences()), task)
        conversation.broadcast([ONE, TWO], Abandon("a", str(abandoned.value)), FIRST)

    converse({SERVER: serving(kind, serve)} | dict.fromkeys(CLIENTS, taking_part(kind, take_part)))


# --- masks that stay ------------------------------------------------------------------------------------------------


@both
@every_group
@pytest.mark.parametrize("gone", [set(), {TWO}], ids=["all", "one is missing"])
def test_more_masks_stay_on_the_sum_exactly(kind: Kind, group: Group, gone: set[PartyId]) -> None:
    """Of each contributor, as many as it gave; of one that is missing, none."""
    task = task_of(group=group)
    inputs = inputs_of(task)
    masks = {party: [bytes([party, number]) * 16 for number in range(party - 1)] for party in CLIENTS}

    def take_part(client: VectorClient, conversation: Conversation) -> None:
        me = conversation.transport.party
        client.prepare(at_once(conversation), task)
        if me not in gone:
            client.contribute(at_once(conversation), task, inputs[me].copy(), masks[me])

    def serve(server: VectorServer, conversation: Conversation) -> VectorTotal:
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), Silences()), task)
        return server.collect(at_server(conversation, set(CLIENTS) - gone, Foreseen(), Silences()), task)

    total = converse({SERVER: serving(kind, serve)} | dict.fromkeys(CLIENTS, taking_part(kind, take_part)))[SERVER]
    masked = {party: vector.copy() for party, vector in inputs.items()}
    for party, keys in masks.items():
        for key in keys:
            add_keystream(key, masked[party], group)
    assert is_sum_of(total, task, masked, set(CLIENTS) - gone)
    assert not is_sum_of(total, task, inputs, set(CLIENTS) - gone)


# --- parameters -----------------------------------------------------------------------------------------------------


def test_the_graph_is_complete_against_an_active_server_and_sparse_otherwise() -> None:
    active = replace(SPARSE, server="active")
    assert parameters_for(MANY, MANY, active, 2) == complete_parameters(MANY, active)
    assert sparse_graph().degree < MANY - 1


@pytest.mark.parametrize("kind", ["semi-honest", "signed"])
def test_identity_keys_belong_to_an_active_server_and_to_no_other(kind: str) -> None:
    other = {"semi-honest": "signed", "signed": "semi-honest"}[kind]
    with pytest.raises(ValueError, match="identity keys"):
        VectorClient(CLIENTS, KINDS[kind].model, credentials=KINDS[other].credentials(ONE))
