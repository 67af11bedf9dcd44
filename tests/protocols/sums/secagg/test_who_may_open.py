"""Clients that must agree to open a masked sum of vectors: each is asked, with all that it lacks."""

from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from protocols.foundation import wire
from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.session.conversation import Abandon, Conversation
from protocols.sums.secagg.messages import (
    AdvertiseKeys,
    MaskedInput,
    ShareKeys,
    SurvivorSignature,
    UnmaskShares,
)
from protocols.sums.secagg.states import Aborted
from protocols.sums.secagg.vectors import VectorClient, VectorServer, VectorTotal
from tests.support.group_keys import KINDS, Kind
from tests.support.in_threads import at_once, at_server, converse
from tests.support.sum_conversations import Foreseen, Silences, bent, everyone, stopping_at
from tests.support.vector_sums import (
    CLIENTS,
    FIRST,
    FOUR,
    LENGTH,
    MANY,
    ONE,
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
    """Whether they dropped out before they had shared keys or after. Who has sent its input is not missing."""
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
