"""Masked sums of bare vectors: several at a time, with masks that stay, and clients that must agree to open them."""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import PeerMisbehaved, SumAbandoned
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.primitives.group import MODULUS, Group, GroupVector, PrimeField, Ring
from protocols.primitives.prg import add_keystream
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Abandon, Conversation
from protocols.sums.secagg.client import Aborted
from protocols.sums.secagg.messages import (
    AdvertiseKeys,
    MaskedInput,
    ShareKeys,
    SurvivorSignature,
    UnmaskShares,
)
from protocols.sums.secagg.params import SumParameters, ThreatModel, complete_parameters
from protocols.sums.secagg.vectors import VectorClient, VectorServer, VectorTotal, parameters_for
from protocols.sums.terms import SumTerms, VectorLayout
from tests.support.group_keys import KINDS, Kind
from tests.support.in_threads import Part, at_once, at_server, converse, meeting
from tests.support.sum_conversations import Foreseen, Silences, bent, everyone, stopping_at

CLIENTS = everyone(4)
ONE, TWO, THREE, FOUR = CLIENTS
FIRST, SECOND = RoundId(1), RoundId(2)
PAST = Deadline(0.0)
LENGTH = 12
GROUPS: list[Group] = [Ring(32), Ring(64), PrimeField()]
both = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
every_group = pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)

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
def test_a_sum_that_was_given_up_is_forgotten_when_the_next_round_begins(kind: Kind) -> None:
    """One that was prepared for a round that never came to it keeps no keys, and cannot be contributed to later."""
    given_up, kept, later = task_of("a"), task_of("b"), task_of("a", SECOND)
    inputs = inputs_of(later)

    def take_part(client: VectorClient, conversation: Conversation) -> None:
        me = conversation.transport.party
        client.prepare(at_once(conversation), given_up)
        client.prepare(at_once(conversation), kept)
        running, _ = client._running[given_up.key]
        client.contribute(at_once(conversation), kept, inputs[me].copy())
        assert client._running.keys() == {given_up.key}
        client.prepare(at_once(conversation), later)
        assert client._running.keys() == {later.key}
        assert isinstance(running.state, Aborted)
        sent = conversation.transport.traffic.total("sent")
        with pytest.raises(RuntimeError, match="prepare"):
            client.contribute(ClientSession(conversation, PAST), given_up, inputs[me].copy())
        assert conversation.transport.traffic.total("sent") == sent
        client.contribute(at_once(conversation), later, inputs[me].copy())

    def serve(server: VectorServer, conversation: Conversation) -> VectorTotal:
        for task in (given_up, kept):
            server.prepare(at_server(conversation, CLIENTS, Foreseen(), Silences()), task)
        server.collect(at_server(conversation, None, Foreseen(), Silences()), kept)
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), Silences()), later)
        with pytest.raises(RuntimeError, match="prepare"):
            server.collect(at_server(conversation, None, Foreseen(), Silences()), given_up)
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
            with pytest.raises(SumAbandoned, match="2 clients have sent their input, 3 are needed"):
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


# --- who may open it ------------------------------------------------------------------------------------------------


class Asked:
    """A client's say on opening a sum, with a record of what it was asked."""

    def __init__(self, refuse: bool = False) -> None:
        self.seen: list[frozenset[PartyId]] = []
        self._refuse = refuse

    def __call__(self, missing: frozenset[PartyId]) -> None:
        self.seen.append(missing)
        if self._refuse:
            raise SumAbandoned("I must not open it")


STEPS: dict[str, type[wire.Message]] = {
    "advertise keys": AdvertiseKeys,
    "share keys": ShareKeys,
    "masked input": MaskedInput,
    "consistency check": SurvivorSignature,
    "unmasking": UnmaskShares,
}


@pytest.mark.parametrize(
    ("name", "step"),
    [("semi-honest", step) for step in STEPS if step != "consistency check"] + [("signed", step) for step in STEPS],
)
def test_a_client_is_asked_with_all_whose_input_the_sum_lacks(name: str, step: str) -> None:
    """Whether they fell silent before they had shared keys or after. Who has sent its input is not missing."""
    kind, task = KINDS[name], task_of()
    inputs, asked = inputs_of(task), {party: Asked() for party in CLIENTS}

    def take_part(client: VectorClient, conversation: Conversation) -> None:
        me = conversation.transport.party
        client.prepare(at_once(conversation), task)
        client.contribute(at_once(conversation), task, inputs[me].copy(), may_open=asked[me])

    def serve(server: VectorServer, conversation: Conversation) -> VectorTotal:
        patience = Foreseen((f"{step}/a", TWO))
        server.prepare(at_server(conversation, CLIENTS, patience, Silences()), task)
        return server.collect(at_server(conversation, None, patience, Silences()), task)

    honest = taking_part(kind, take_part)
    parts = {SERVER: serving(kind, serve)} | dict.fromkeys(CLIENTS, honest)
    total = converse(parts | {TWO: bent(honest, stopping_at(STEPS[step]))})[SERVER]
    lacking = {TWO} if step in ("advertise keys", "share keys", "masked input") else set()
    assert is_sum_of(total, task, inputs, set(CLIENTS) - lacking)
    for party in (ONE, THREE, FOUR):
        assert asked[party].seen == [lacking]


@both
def test_who_was_away_from_the_start_is_missing_too(kind: Kind) -> None:
    task, asked = task_of(), {party: Asked() for party in CLIENTS}

    def take_part(client: VectorClient, conversation: Conversation) -> None:
        me = conversation.transport.party
        if me != THREE:
            client.prepare(at_once(conversation), task)
            client.contribute(at_once(conversation), task, np.ones(LENGTH, "<u8"), may_open=asked[me])

    def serve(server: VectorServer, conversation: Conversation) -> VectorTotal:
        server.prepare(at_server(conversation, [ONE, TWO, FOUR], Foreseen(), Silences()), task)
        return server.collect(at_server(conversation, None, Foreseen(), Silences()), task)

    total = converse({SERVER: serving(kind, serve)} | dict.fromkeys(CLIENTS, taking_part(kind, take_part)))[SERVER]
    assert total.contributors == {ONE, TWO, FOUR}
    for party in (ONE, TWO, FOUR):
        assert asked[party].seen == [{THREE}]


def test_a_server_cannot_hide_from_a_client_that_somebody_is_missing() -> None:
    """It keeps client 4's key from the others and has nobody to call dropped. A client's own record says with whom it
    shares no masks."""
    kind, task = KINDS["signed"], task_of()
    asked = {party: Asked(refuse=True) for party in CLIENTS}

    def take_part(client: VectorClient, conversation: Conversation) -> None:
        me = conversation.transport.party
        client.prepare(at_once(conversation), task)
        with pytest.raises(SumAbandoned, match="I must not open it"):
            client.contribute(at_once(conversation), task, np.ones(LENGTH, "<u8"), may_open=asked[me])

    def serve(server: VectorServer, conversation: Conversation) -> None:
        server.prepare(at_server(conversation, [ONE, TWO, THREE], Foreseen(), Silences()), task)
        with pytest.raises(SumAbandoned, match="I must not open it"):
            server.collect(at_server(conversation, None, Foreseen(), Silences()), task)

    parts = {SERVER: serving(kind, serve)} | dict.fromkeys(CLIENTS, taking_part(kind, take_part))
    converse(parts | {FOUR: taking_part(kind, lambda client, conversation: None)})
    assert all(asked[party].seen == [{FOUR}] for party in (ONE, TWO, THREE))


@both
@pytest.mark.parametrize("refusing", [[TWO], CLIENTS], ids=["one", "all"])
def test_a_client_that_must_not_open_a_sum_says_so_and_gives_nothing_away(kind: Kind, refusing: list[PartyId]) -> None:
    task = task_of()
    held = dict[PartyId, Any]()

    def take_part(client: VectorClient, conversation: Conversation) -> None:
        client.prepare(at_once(conversation), task)
        running, _ = client._running[task.key]
        with pytest.raises(SumAbandoned, match="I must not open it"):
            client.contribute(at_once(conversation), task, np.ones(LENGTH, "<u8"), may_open=Asked(refuse=True))
        held[conversation.transport.party] = running.state

    def willing(client: VectorClient, conversation: Conversation) -> None:
        client.prepare(at_once(conversation), task)
        with suppress(SumAbandoned):  # it may have answered before it is told
            client.contribute(at_once(conversation), task, np.ones(LENGTH, "<u8"), may_open=Asked())

    said = dict[PartyId, list[wire.Message]]()

    def noting(conversation: Conversation) -> None:
        def note(message: wire.Message, round_id: RoundId) -> wire.Message:
            said.setdefault(conversation.transport.party, []).append(message)
            return message

        part = take_part if conversation.transport.party in refusing else willing
        bent(taking_part(kind, part), note)(conversation)

    def serve(server: VectorServer, conversation: Conversation) -> None:
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), Silences()), task)
        with pytest.raises(SumAbandoned, match=r"client \d: I must not open it") as abandoned:
            server.collect(at_server(conversation, None, Foreseen(), Silences()), task)
        conversation.broadcast(CLIENTS, Abandon("a", str(abandoned.value)), FIRST)

    converse({SERVER: serving(kind, serve)} | dict.fromkeys(CLIENTS, noting))
    for party in refusing:
        assert said[party][-1] == Abandon("a", "I must not open it")
        assert not any(isinstance(message, UnmaskShares | SurvivorSignature) for message in said[party])
        assert isinstance(held[party], Aborted)


SPARSE = ThreatModel(0.0, 0.1, security_bits=1, correctness_bits=1)
MANY = 24


def sparse_graph() -> SumParameters:
    parameters = parameters_for(MANY, MANY, SPARSE, 2)
    assert not parameters.complete
    return parameters


def test_in_a_sparse_graph_only_its_neighbours_are_asked_with_a_missing_client() -> None:
    clients, gone = everyone(MANY), PartyId(7)
    degree = sparse_graph().degree
    task = task_of(participants=clients)
    asked = {party: Asked() for party in clients}

    def take_part(conversation: Conversation) -> None:
        me = conversation.transport.party
        client = VectorClient(clients, SPARSE)
        client.setup(at_once(conversation))
        client.prepare(at_once(conversation), task)
        if me != gone:
            client.contribute(at_once(conversation), task, np.ones(LENGTH, "<u8"), may_open=asked[me])

    def serve(conversation: Conversation) -> VectorTotal:
        server = VectorServer(MANY, SPARSE)
        server.setup(at_server(conversation, clients, Foreseen(), Silences()))
        server.prepare(at_server(conversation, clients, Foreseen(), Silences()), task)
        return server.collect(at_server(conversation, set(clients) - {gone}, Foreseen(), Silences()), task)

    total = converse({SERVER: serve} | dict.fromkeys(clients, take_part))[SERVER]
    assert total.vector.tolist() == [MANY - 1] * LENGTH
    heard = {party for party in clients if asked[party].seen == [{gone}]}
    unaware = {party for party in clients if asked[party].seen == [set()]}
    assert len(heard) == degree
    assert heard | unaware == set(clients) - {gone}


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
