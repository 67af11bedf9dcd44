"""A sum is opened for the second time over the same clients only, in whole conversations."""

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import pytest

from protocols.foundation import wire
from protocols.foundation.errors import SumAbandoned
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.session.conversation import Abandon, Conversation
from protocols.sums.interface import Collected
from protocols.sums.secagg.messages import MaskedInput, SurvivorSignature, UnmaskShares
from protocols.sums.secagg.openings import Openings
from protocols.sums.secagg.sums import SecAggSumClient
from protocols.sums.secagg.vectors import VectorClient
from tests.support import sum_conversations as sums
from tests.support.in_threads import Part, at_once, at_server, converse
from tests.support.openings import CLIENTS, opening, records
from tests.support.secagg_sessions import PURPOSE
from tests.support.sum_conversations import (
    ACTIVE,
    SECAGG,
    SEMI_HONEST,
    SIGNED,
    Foreseen,
    Silences,
    Twin,
    credentials,
    is_sum_of,
)

ONE, TWO, THREE, FOUR = CLIENTS
FIRST = RoundId(1)
REFUSAL = "was opened before over other clients"
signed_or_not = pytest.mark.parametrize("signed", [False, True], ids=["semi-honest", "active"])

LAYOUT = sums.layout_for(4)
TASK = sums.task_of(LAYOUT, CLIENTS)
INPUTS = sums.random_inputs(LAYOUT, CLIENTS)
SECURE = {"secagg": SECAGG, "signed": SIGNED}
both = pytest.mark.parametrize("twin", SECURE.values(), ids=SECURE)


def remembering(twin: Twin, kept: Mapping[PartyId, Openings]) -> Twin:
    if twin is SIGNED:
        return replace(
            twin,
            client=lambda clients, me: SecAggSumClient(
                VectorClient(clients, ACTIVE, credentials=credentials(me), openings=kept.get(me))
            ),
        )
    return replace(
        twin, client=lambda clients, me: SecAggSumClient(VectorClient(clients, SEMI_HONEST, openings=kept.get(me)))
    )


def session(twin: Twin, missing: PartyId | None = None) -> Collected:
    """One session with one sum, in which `missing` sends no input."""
    honest = sums.taking_part(twin, CLIENTS, [(TASK, INPUTS)])
    patience = Foreseen() if missing is None else Foreseen((sums.step_of("masked input"), missing))
    parts: dict[PartyId, Part] = {SERVER: sums.serving(twin, CLIENTS, [TASK], patience)}
    parts |= dict.fromkeys(CLIENTS, honest)
    if missing is not None:
        parts[missing] = sums.bent(honest, sums.stopping_at(MaskedInput))
    (collected,) = converse(parts)[SERVER]
    assert isinstance(collected, Collected)
    return collected


def refused_session(twin: Twin, missing: PartyId | None, refusing: Collection[PartyId]) -> None:
    """The same, but the server gets no sum, because `refusing` do not open it and say so."""
    honest = sums.taking_part(twin, CLIENTS, [(TASK, INPUTS)])
    said: dict[PartyId, list[wire.Message]] = {party: [] for party in CLIENTS}
    answer = SurvivorSignature if twin.says.keys() == SIGNED.says.keys() else UnmaskShares

    def serve(conversation: Conversation) -> None:
        patience = Foreseen() if missing is None else Foreseen((sums.step_of("masked input"), missing))
        with pytest.raises(SumAbandoned, match=rf"^client \d: the sum of {PURPOSE} of round 1 {REFUSAL}") as abandoned:
            sums.serving(twin, CLIENTS, [TASK], patience)(conversation)
        assert PartyId(int(str(abandoned.value)[len("client ")])) in refusing
        conversation.broadcast(CLIENTS, Abandon(PURPOSE, str(abandoned.value)), FIRST)

    def take_part(conversation: Conversation) -> None:
        me = conversation.transport.party

        def note(message: wire.Message, round_id: RoundId) -> wire.Message:
            if me == missing and isinstance(message, MaskedInput):
                raise sums.Stopped
            said[me].append(message)
            return message

        part = sums.bent(honest, note)
        if me in refusing:
            with pytest.raises(SumAbandoned, match=f"^the sum of {PURPOSE} of round 1 {REFUSAL}"):
                part(conversation)
        elif me != missing and answer is SurvivorSignature:  # it still waits for the signatures of the others
            with pytest.raises(SumAbandoned, match=REFUSAL):
                part(conversation)
        else:
            part(conversation)

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))
    for party in refusing:
        assert [message for message in said[party] if isinstance(message, Abandon)] == said[party][-1:]
        assert not any(isinstance(message, SurvivorSignature | UnmaskShares) for message in said[party])


@both
@pytest.mark.parametrize("missing", [None, FOUR], ids=["all", "one missing"])
def test_two_sessions_over_the_same_clients_have_the_same_sum(twin: Twin, missing: PartyId | None) -> None:
    kept = remembering(twin, records())
    here = [party for party in CLIENTS if party != missing]
    for _ in range(2):
        assert is_sum_of(session(kept, missing), LAYOUT, INPUTS, here)


@both
@pytest.mark.parametrize(
    ("before", "after"), [(None, FOUR), (FOUR, None), (THREE, FOUR)], ids=["fewer", "more", "other"]
)
def test_a_second_session_over_other_clients_has_no_sum(
    twin: Twin, before: PartyId | None, after: PartyId | None
) -> None:
    kept = remembering(twin, records())
    first = [party for party in CLIENTS if party != before]
    assert is_sum_of(session(kept, before), LAYOUT, INPUTS, first)
    refused_session(kept, after, [party for party in first if party != after])
    # And a third one over the first ones has: whoever must not open the second has not recorded it.
    if before != THREE:
        assert is_sum_of(session(kept, before), LAYOUT, INPUTS, first)


@both
@pytest.mark.parametrize("keeper", [ONE, TWO, THREE], ids=int)
def test_one_client_that_remembers_is_enough(twin: Twin, keeper: PartyId) -> None:
    kept = records()
    session(remembering(twin, kept))
    refused_session(remembering(twin, {keeper: kept[keeper]}), FOUR, [keeper])


@both
def test_the_session_goes_on_after_a_sum_that_must_not_be_opened(twin: Twin) -> None:
    """All refuse alike. What they say about it is late in the next round."""
    kept = {party: Openings([opening(1, PURPOSE, [ONE, TWO])]) for party in CLIENTS}
    remember, second = remembering(twin, kept), sums.task_of(LAYOUT, CLIENTS, 2)

    def serve(conversation: Conversation) -> Collected:
        server, silent = remember.server(CLIENTS), Silences()
        server.setup(at_server(conversation, CLIENTS, Foreseen(), silent))
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), silent), TASK)
        with pytest.raises(SumAbandoned, match=REFUSAL):
            server.collect(at_server(conversation, None, Foreseen(), silent), TASK)
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), silent), second)
        collected = server.collect(at_server(conversation, None, Foreseen(), silent), second)
        assert conversation.late_messages == len(CLIENTS) - 1
        return collected

    def take_part(conversation: Conversation) -> Any:
        me = conversation.transport.party
        client = remember.client(CLIENTS, me)
        client.setup(at_once(conversation))
        client.prepare(at_once(conversation), TASK)
        with pytest.raises(SumAbandoned, match=REFUSAL):
            client.contribute(at_once(conversation), TASK, INPUTS[me])
        client.prepare(at_once(conversation), second)
        client.contribute(at_once(conversation), second, INPUTS[me])

    collected = converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))[SERVER]
    assert is_sum_of(collected, LAYOUT, INPUTS, CLIENTS)


def test_after_a_refusal_the_next_sum_of_the_same_round_is_exact() -> None:
    """Three refuse and one, who was missing the first time, answers: what it said belongs to no later sum."""
    kept = {party: Openings([opening(1, PURPOSE, [ONE, TWO, THREE])]) for party in (ONE, TWO, THREE)}
    remember, second = remembering(SECAGG, kept), sums.task_of(LAYOUT, CLIENTS, 1, "metrics")

    def serve(conversation: Conversation) -> Collected:
        server, silent = remember.server(CLIENTS), Silences()
        server.setup(at_server(conversation, CLIENTS, Foreseen(), silent))
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), silent), TASK)
        with pytest.raises(SumAbandoned, match=REFUSAL):
            server.collect(at_server(conversation, None, Foreseen(), silent), TASK)
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), silent), second)
        return server.collect(at_server(conversation, None, Foreseen(), silent), second)

    def take_part(conversation: Conversation) -> None:
        me = conversation.transport.party
        client = remember.client(CLIENTS, me)
        client.setup(at_once(conversation))
        client.prepare(at_once(conversation), TASK)
        with contextlib.suppress(SumAbandoned):
            client.contribute(at_once(conversation), TASK, INPUTS[me])
        client.prepare(at_once(conversation), second)
        client.contribute(at_once(conversation), second, INPUTS[me])

    collected = converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))[SERVER]
    assert is_sum_of(collected, LAYOUT, INPUTS, CLIENTS)
