"""The plain sum and the masked sums when participants drop out: the same sums of the others, or none."""

import pytest

from protocols.foundation import wire
from protocols.foundation.errors import (
    LeftOut,
    SumAbandoned,
)
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.session.conversation import Abandon, Back, Conversation, LeaveOut
from protocols.sums.interface import Collected, SumClient
from tests.support.in_threads import Part, at_once, at_server, converse, meeting, soon
from tests.support.sum_conversations import (
    EVERY_STEP,
    FIRST,
    PLAIN,
    PURPOSE,
    SECOND,
    TWINS,
    Foreseen,
    Silences,
    Twin,
    bent,
    everyone,
    instead_of,
    is_sum_of,
    layout_for,
    random_inputs,
    serving,
    step_of,
    stopping_at,
    taking_part,
    task_of,
)
from tests.support.twin_sums import CLIENTS, FOUR, INPUTS, LAYOUT, ONE, TASK, THREE, TWO, every_step, every_twin

# --- who drops out -----------------------------------------------------------------------------------------------


GONE_WITHOUT_ITS_INPUT = {"advertise keys", "share keys", "masked input", "input"}


@pytest.mark.parametrize("ring_bits", [32, 64])
@every_step
def test_the_sum_goes_on_exactly_without_a_client_that_falls_silent(name: str, step: str, ring_bits: int) -> None:
    """In every step, and for whichever client: the lowest and the highest number cancel their masks differently."""
    twin, layout = TWINS[name], layout_for(4, ring_bits)
    task, inputs = task_of(layout, CLIENTS), random_inputs(layout, CLIENTS, seed=3)
    honest = taking_part(twin, CLIENTS, [(task, inputs)])
    for gone in (ONE, THREE, FOUR):
        silent = Silences()
        parts = {SERVER: serving(twin, CLIENTS, [task], Foreseen((step_of(step), gone)), silent)}
        parts |= dict.fromkeys(CLIENTS, honest) | {gone: bent(honest, stopping_at(twin.says[step]))}
        (collected,) = converse(parts)[SERVER]
        assert silent.seen == [({gone}, step_of(step))]
        # Whoever has sent its input before it dropped out is in the sum.
        missing = {gone} if step in GONE_WITHOUT_ITS_INPUT else set()
        assert is_sum_of(collected, layout, inputs, set(CLIENTS) - missing)


@pytest.mark.parametrize("name", ["secagg", "signed"])
def test_clients_can_fall_silent_in_one_step_each(name: str) -> None:
    """Of five clients a semi-honest sum may lose two, one before its input and one after it; a signed one may not."""
    twin, clients = TWINS[name], everyone(5)
    layout = layout_for(5)
    task, inputs, silent = task_of(layout, clients), random_inputs(layout, clients, seed=4), Silences()
    foreseen = Foreseen((step_of("masked input"), TWO), (step_of("unmasking"), FOUR))
    honest = taking_part(twin, clients, [(task, inputs)])
    sum_of_task = serving(twin, clients, [task], foreseen, silent)

    def abandon(conversation: Conversation) -> None:
        with pytest.raises(SumAbandoned, match="3 clients gave a share of the mask key of client 2, 4 are needed"):
            sum_of_task(conversation)

    results = converse(
        {SERVER: sum_of_task if name == "secagg" else abandon}
        | dict.fromkeys(clients, honest)
        | {TWO: bent(honest, stopping_at(twin.input)), FOUR: bent(honest, stopping_at(twin.says["unmasking"]))}
    )
    assert silent.seen == [({TWO}, step_of("masked input")), ({FOUR}, step_of("unmasking"))]
    if name == "secagg":
        assert is_sum_of(results[SERVER][0], layout, inputs, set(clients) - {TWO})


REASONS = {
    "advertise keys": "2 clients have advertised keys, 3 are needed",
    "share keys": "2 clients have shared keys, 3 are needed",
    "masked input": "2 clients have sent an input, 3 are needed",
    "input": "2 clients have sent an input, 3 are needed",
    "consistency check": "2 clients have signed the survivors, 3 are needed",
    "unmasking": "2 clients gave a share of the self mask of client 1, 3 are needed",
}


@every_step
def test_a_sum_of_too_few_is_abandoned_and_whoever_waits_for_it_is_told(name: str, step: str) -> None:
    twin, silent = TWINS[name], Silences()
    honest = taking_part(twin, CLIENTS, [(TASK, INPUTS)])
    gone = {TWO, THREE}

    def serve(conversation: Conversation) -> None:
        with pytest.raises(SumAbandoned) as abandoned:
            serving(twin, CLIENTS, [TASK], Foreseen(*((step_of(step), party) for party in gone)), silent)(conversation)
        assert str(abandoned.value) == REASONS[step]
        conversation.broadcast({ONE, FOUR}, Abandon(PURPOSE, str(abandoned.value)), FIRST)

    def wait(conversation: Conversation) -> None:
        if twin is PLAIN or step == "unmasking":  # nothing left to wait for
            honest(conversation)
            return
        with pytest.raises(SumAbandoned) as abandoned:
            honest(conversation)
        assert str(abandoned.value) == REASONS[step]

    stopped = bent(honest, stopping_at(twin.says[step]))
    converse({SERVER: serve} | dict.fromkeys(CLIENTS, wait) | dict.fromkeys(gone, stopped))
    assert silent.seen == [(gone, step_of(step))]


@every_twin
def test_the_next_sum_is_exact_after_one_that_was_abandoned(twin: Twin) -> None:
    """Two of four drop out in round 1, one of them for good: the other is back in round 2."""
    second = task_of(LAYOUT, CLIENTS, SECOND)
    inputs = random_inputs(LAYOUT, CLIENTS, seed=5)

    def serve(conversation: Conversation) -> Collected:
        server, silent = twin.server(CLIENTS), Silences()
        patience = Foreseen((step_of(twin.input_step), ONE), (step_of(twin.input_step), TWO))
        server.setup(at_server(conversation, CLIENTS, patience, silent))
        server.prepare(at_server(conversation, CLIENTS, patience, silent), TASK)
        with pytest.raises(SumAbandoned, match="2 clients have sent an input") as abandoned:
            server.collect(at_server(conversation, None, patience, silent), TASK)
        conversation.broadcast(CLIENTS, Abandon(PURPOSE, str(abandoned.value)), FIRST)
        server.prepare(at_server(conversation, CLIENTS[1:], Foreseen(), silent), second)
        collected = server.collect(at_server(conversation, None, Foreseen(), silent), second)
        assert silent.seen == [({ONE, TWO}, step_of(twin.input_step))]
        return collected

    def first_round(conversation: Conversation, client: SumClient) -> None:
        me = conversation.transport.party
        client.prepare(at_once(conversation), TASK)
        if me not in (ONE, TWO):
            client.contribute(at_once(conversation), TASK, INPUTS[me])
        if me in (ONE, TWO) or twin is PLAIN:
            while True:  # over whatever the server had sent before
                conversation.receive(SERVER, wire.Message, FIRST, soon(), PURPOSE)

    def take_part(conversation: Conversation) -> None:
        me = conversation.transport.party
        client = twin.client(CLIENTS, me)
        client.setup(at_once(conversation))
        with pytest.raises(SumAbandoned, match="2 clients have sent an input"):
            first_round(conversation, client)
        if me != ONE:
            client.prepare(at_once(conversation), second)
            client.contribute(at_once(conversation), second, inputs[me])

    collected = converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))[SERVER]
    assert is_sum_of(collected, LAYOUT, inputs, CLIENTS[1:])


SLOW_STEPS = [(name, step) for name, step in EVERY_STEP if step in GONE_WITHOUT_ITS_INPUT]


@pytest.mark.parametrize(("name", "step"), SLOW_STEPS)
def test_a_client_that_was_left_out_comes_back_and_the_next_sum_has_it(name: str, step: str) -> None:
    """What client 4 says in round 1 arrives after that round's sum; it hears of it, and takes part in round 2."""
    twin, first_is_over, four_is_back = TWINS[name], meeting(2), meeting(2)
    rounds = [(TASK, INPUTS), (task_of(LAYOUT, CLIENTS, SECOND), random_inputs(LAYOUT, CLIENTS, seed=6))]

    def serve(conversation: Conversation) -> list[Collected]:
        server, silent = twin.server(CLIENTS), Silences()
        server.setup(at_server(conversation, CLIENTS, Foreseen(), silent))
        patience = Foreseen((step_of(step), FOUR))
        server.prepare(at_server(conversation, CLIENTS, patience, silent), TASK)
        first = server.collect(at_server(conversation, None, patience, silent), TASK)
        assert silent.seen == [({FOUR}, step_of(step))]
        assert not conversation.came_back(FOUR)
        conversation.send(FOUR, LeaveOut(), FIRST)
        first_is_over()
        four_is_back()
        assert conversation.late_messages == 0
        assert conversation.came_back(FOUR)
        assert conversation.late_messages == 1
        task = rounds[1][0]
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), silent), task)
        second = server.collect(at_server(conversation, None, Foreseen(), silent), task)
        assert len(silent.seen) == conversation.late_messages == 1
        return [first, second]

    def late(message: wire.Message, round_id: RoundId) -> wire.Message:
        if round_id == FIRST:
            first_is_over()
        return message

    def first_round(conversation: Conversation, slow: SumClient) -> None:
        slow.prepare(at_once(conversation), TASK)
        slow.contribute(at_once(conversation), TASK, INPUTS[FOUR])
        conversation.receive_any(SERVER, FIRST, soon())  # only the plain client has waited for nothing yet

    def be_slow(conversation: Conversation) -> None:
        slow = twin.client(CLIENTS, FOUR)
        slow.setup(at_once(conversation))
        with pytest.raises(LeftOut, match="gone on without this client"):
            first_round(conversation, slow)
        conversation.send(SERVER, Back(), FIRST)
        four_is_back()
        task, inputs = rounds[1]
        slow.prepare(at_once(conversation), task)
        slow.contribute(at_once(conversation), task, inputs[FOUR])

    parts: dict[PartyId, Part] = {SERVER: serve} | dict.fromkeys(CLIENTS, taking_part(twin, CLIENTS, rounds))
    first, second = converse(parts | {FOUR: bent(be_slow, instead_of(twin.says[step], late))})[SERVER]
    assert is_sum_of(first, LAYOUT, INPUTS, [ONE, TWO, THREE])
    assert is_sum_of(second, LAYOUT, rounds[1][1], CLIENTS)


@every_twin
def test_a_client_that_is_not_present_is_not_waited_for(twin: Twin) -> None:
    """It is a participant of the task, so the others reckon with it; the server knows that it is away."""
    silent = Silences()

    def serve(conversation: Conversation) -> Collected:
        server = twin.server(CLIENTS)
        server.setup(at_server(conversation, CLIENTS, Foreseen(), silent))
        server.prepare(at_server(conversation, {ONE, TWO, FOUR}, Foreseen(), silent), TASK)
        return server.collect(at_server(conversation, None, Foreseen(), silent), TASK)

    away = {party: given for party, given in INPUTS.items() if party != THREE}
    parts = {SERVER: serve} | dict.fromkeys(CLIENTS, taking_part(twin, CLIENTS, [(TASK, away)]))
    assert is_sum_of(converse(parts)[SERVER], LAYOUT, INPUTS, [ONE, TWO, FOUR])
    assert silent.seen == []
