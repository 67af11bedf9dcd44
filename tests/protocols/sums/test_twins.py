"""The plain sum and the masked sums run the same conversations: same totals, same ends when somebody misbehaves."""

from contextlib import suppress
from itertools import combinations
from typing import Any

import msgspec
import numpy as np
import pytest

from protocols.alignment.plain import ClearNames
from protocols.foundation import wire
from protocols.foundation.errors import (
    Aborted,
    EncodingOverflow,
    LeftOut,
    PeerFailed,
    PeerMisbehaved,
    ProtocolError,
    SumAbandoned,
    UnexpectedMessage,
)
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.session.conversation import Abandon, Back, Conversation, Failed, LeaveOut
from protocols.sums.interface import Collected, Contribution, SumClient, SumLayout
from tests.support.in_threads import SESSION, Part, at_once, at_server, converse, meeting, soon
from tests.support.sum_conversations import (
    EVERY_STEP,
    FIRST,
    PLAIN,
    PURPOSE,
    SECAGG,
    SECOND,
    SIGNED,
    TWINS,
    Bend,
    Foreseen,
    Inputs,
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
    sum_up,
    taking_part,
    task_of,
)

CLIENTS = everyone(4)
ONE, TWO, THREE, FOUR = CLIENTS
LAYOUT = layout_for(4)
TASK = task_of(LAYOUT, CLIENTS)
INPUTS = random_inputs(LAYOUT, CLIENTS)
every_twin = pytest.mark.parametrize("twin", TWINS.values(), ids=TWINS)
every_step = pytest.mark.parametrize(("name", "step"), EVERY_STEP)


def exact(inputs: Inputs) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    real = np.sum([given.real.astype(np.float64) for given in inputs.values()], axis=0)
    return real, np.sum([given.counts for given in inputs.values()], axis=0)


# --- totals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ring_bits", [32, 64])
@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("secure", [SECAGG, SIGNED], ids=["secagg", "signed"])
def test_the_twins_agree_to_the_bit_and_with_the_truth_within_half_a_unit_per_client(
    count: int, ring_bits: int, secure: Twin
) -> None:
    clients, layout = everyone(count), layout_for(count, ring_bits)
    rounds = [random_inputs(layout, clients, seed) for seed in range(3)]
    (plain, _), (masked, reports) = sum_up(PLAIN, layout, clients, rounds), sum_up(secure, layout, clients, rounds)
    for clear, hidden, inputs in zip(plain, masked, rounds, strict=True):
        real, counts = exact(inputs)
        assert clear.contributors == hidden.contributors == set(clients)
        assert np.array_equal(clear.total.real, hidden.total.real)
        assert np.abs(hidden.total.real - real).max() <= count * layout.codec.unit / 2
        assert np.array_equal(clear.total.counts, counts)
        assert np.array_equal(hidden.total.counts, counts)
    for party in clients:
        for inputs, report in zip(rounds, reports[party], strict=True):
            assert report.clipped == 0
            lost = np.abs(layout.codec.decode(layout.codec.encode(inputs[party].real).vector) - inputs[party].real)
            assert report.max_error == lost.max() <= layout.codec.unit / 2
            assert report.mask_seconds > 0


@every_twin
def test_the_narrow_ring_does_round(twin: Twin) -> None:
    """Without this the test above would not notice a codec that loses nothing because it was never used."""
    layout = layout_for(4, 32, real=2000)
    inputs = random_inputs(layout, CLIENTS)
    (collected,), _ = sum_up(twin, layout, CLIENTS, [inputs])
    assert np.abs(collected.total.real - exact(inputs)[0]).max() > 0
    assert is_sum_of(collected, layout, inputs, CLIENTS)


@every_twin
def test_every_set_of_participants_has_its_sum(twin: Twin) -> None:
    clients = everyone(3)
    subsets = [list(chosen) for size in (2, 3) for chosen in combinations(clients, size)]
    layout = layout_for(3)
    rounds = [random_inputs(layout, chosen, seed) for seed, chosen in enumerate(subsets)]
    sums, _ = sum_up(twin, layout, clients, rounds)
    for collected, inputs in zip(sums, rounds, strict=True):
        real, counts = exact(inputs)
        assert collected.contributors == inputs.keys()
        assert np.abs(collected.total.real - real).max() <= len(inputs) * layout.codec.unit / 2
        assert np.array_equal(collected.total.counts, counts)


@every_twin
def test_a_round_can_have_several_sums_of_different_kinds(twin: Twin) -> None:
    narrow = layout_for(4, 32, real=0, counts=3)
    sums = [(TASK, INPUTS), (task_of(narrow, CLIENTS, purpose="counts"), random_inputs(narrow, CLIENTS, seed=9))]
    tasks = [task for task, _ in sums]
    results = converse(
        {SERVER: serving(twin, CLIENTS, tasks)} | dict.fromkeys(CLIENTS, taking_part(twin, CLIENTS, sums))
    )
    for collected, (task, inputs) in zip(results[SERVER], sums, strict=True):
        assert is_sum_of(collected, task.layout, inputs, CLIENTS)


@every_twin
@pytest.mark.parametrize(("real", "counts"), [(0, 0), (0, 3), (3, 0)])
def test_a_part_may_be_empty(twin: Twin, real: int, counts: int) -> None:
    layout = layout_for(4, real=real, counts=counts)
    inputs = random_inputs(layout, CLIENTS)
    (collected,), _ = sum_up(twin, layout, CLIENTS, [inputs])
    assert (collected.total.real.shape, collected.total.counts.shape) == ((real,), (counts,))
    assert np.allclose(collected.total.real, exact(inputs)[0])
    assert np.array_equal(collected.total.counts, exact(inputs)[1])


@every_twin
def test_values_beyond_the_bound_are_clipped_and_counted(twin: Twin) -> None:
    layout = layout_for(2, real=3, counts=0)
    counts = np.zeros(0, dtype=np.int64)
    rounds = [{ONE: Contribution(np.array([9.0, -1e308, 1.0]), counts), TWO: Contribution(np.zeros(3), counts)}]
    (collected,), reports = sum_up(twin, layout, [ONE, TWO], rounds)
    assert collected.total.real.tolist() == [4.0, -4.0, 1.0]
    assert [reports[ONE][0].clipped, reports[TWO][0].clipped] == [2, 0]


@every_twin
@pytest.mark.parametrize("ring_bits", [32, 64])
def test_an_input_is_as_wide_as_its_ring(twin: Twin, ring_bits: int) -> None:
    """So that a comparison of the twins' traffic compares like with like."""
    layout = layout_for(4, ring_bits, real=1000, counts=1000)
    task, inputs = task_of(layout, CLIENTS), random_inputs(layout, CLIENTS)

    def serve(conversation: Conversation) -> list[int]:
        serving(twin, CLIENTS, [task])(conversation)
        traffic = conversation.transport.traffic
        label = {"round_id": FIRST, "phase": step_of(twin.input_step)}
        return [traffic.total("received", peer=peer, **label).bytes for peer in CLIENTS]  # type: ignore[arg-type]

    payload = 2000 * ring_bits // 8
    parts = {SERVER: serve} | dict.fromkeys(CLIENTS, taking_part(twin, CLIENTS, [(task, inputs)]))
    for received in converse(parts)[SERVER]:
        assert payload < received < payload + 100


@every_twin
def test_contributions_are_left_as_they_were(twin: Twin) -> None:
    inputs = random_inputs(LAYOUT, CLIENTS)
    before = {party: (given.real.copy(), given.counts.copy()) for party, given in inputs.items()}
    sum_up(twin, LAYOUT, CLIENTS, [inputs])
    for party, given in inputs.items():
        assert np.array_equal(given.real, before[party][0])
        assert np.array_equal(given.counts, before[party][1])


@every_twin
@pytest.mark.parametrize("ring_bits", [32, 64])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_never_leave(twin: Twin, ring_bits: int, bad: float) -> None:
    layout = layout_for(2, ring_bits, real=1, counts=0)
    refused(twin, layout, Contribution(np.array([bad]), np.zeros(0, dtype=np.int64)), "not finite")


@every_twin
def test_counts_beyond_their_limit_never_leave(twin: Twin) -> None:
    layout = layout_for(2, real=0, counts=1)
    refused(twin, layout, Contribution(np.zeros(0), np.array([1001])), "outside 0..1000")


def refused(twin: Twin, layout: SumLayout, wrong: Contribution, problem: str) -> None:
    """Both clients are ready to contribute when they notice that they cannot."""
    clients = [ONE, TWO]
    task = task_of(layout, clients)

    def serve(conversation: Conversation) -> None:
        server = twin.server(clients)
        server.setup(at_server(conversation, clients, Foreseen(), Silences()))
        server.prepare(at_server(conversation, clients, Foreseen(), Silences()), task)

    def take_part(conversation: Conversation) -> None:
        client = twin.client(clients, conversation.transport.party)
        client.setup(at_once(conversation))
        client.prepare(at_once(conversation), task)
        before = conversation.transport.traffic.total("sent")
        with pytest.raises(EncodingOverflow, match=problem):
            client.contribute(at_once(conversation), task, wrong)
        assert conversation.transport.traffic.total("sent") == before

    converse({SERVER: serve, ONE: take_part, TWO: take_part})


# --- who falls silent -----------------------------------------------------------------------------------------------

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
        # Whoever has sent its input before it fell silent is in the sum.
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
    "masked input": "2 clients have sent their input, 3 are needed",
    "input": "2 clients have sent their input, 3 are needed",
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
    """Two of four fall silent in round 1, one of them for good: the other is back in round 2."""
    second = task_of(LAYOUT, CLIENTS, SECOND)
    inputs = random_inputs(LAYOUT, CLIENTS, seed=5)

    def serve(conversation: Conversation) -> Collected:
        server, silent = twin.server(CLIENTS), Silences()
        patience = Foreseen((step_of(twin.input_step), ONE), (step_of(twin.input_step), TWO))
        server.setup(at_server(conversation, CLIENTS, patience, silent))
        server.prepare(at_server(conversation, CLIENTS, patience, silent), TASK)
        with pytest.raises(SumAbandoned, match="2 clients have sent their input") as abandoned:
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
        with pytest.raises(SumAbandoned, match="2 clients have sent their input"):
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


# --- who misbehaves -------------------------------------------------------------------------------------------------


def stage(twin: Twin, bend: Bend, problem: type[ProtocolError], match: str) -> None:
    """Client 3 says what `bend` makes of its messages, the others are honest; the server's sum must end in `problem`.

    The server then ends the session, and no client hangs.
    """
    honest = taking_part(twin, CLIENTS, [(TASK, INPUTS)])

    def serve(conversation: Conversation) -> None:
        try:
            with pytest.raises(problem, match=match):
                serving(twin, CLIENTS, [TASK])(conversation)
        finally:
            conversation.abort(CLIENTS, "a client misbehaves", FIRST)

    def take_part(conversation: Conversation) -> None:
        with suppress(Aborted):
            honest(conversation)

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part) | {THREE: bent(take_part, bend)})


@every_twin
def test_the_stage_itself_lets_a_sum_succeed(twin: Twin) -> None:
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        stage(twin, lambda message, round_id: message, ProtocolError, "anything")


@every_step
def test_malformed_bytes_are_misbehaviour(name: str, step: str) -> None:
    garble = instead_of(TWINS[name].says[step], lambda message, round_id: b"not a frame")
    stage(TWINS[name], garble, PeerMisbehaved, "client 3 sent a malformed message")


@every_step
def test_a_client_that_fails_is_named(name: str, step: str) -> None:
    fail = instead_of(TWINS[name].says[step], lambda message, round_id: Failed("no space left"))
    stage(TWINS[name], fail, PeerFailed, "client 3: no space left")


@every_step
def test_a_message_of_another_kind_is_unexpected(name: str, step: str) -> None:
    other = instead_of(TWINS[name].says[step], lambda message, round_id: ClearNames(["x"]))
    stage(TWINS[name], other, UnexpectedMessage, "client 3 sent ClearNames")


CONTROL: list[wire.Message] = [LeaveOut(), Back()]


@every_step
@pytest.mark.parametrize("message", CONTROL, ids=lambda message: type(message).__name__)
def test_a_client_cannot_steer_a_sum_with_what_the_server_says(name: str, step: str, message: wire.Message) -> None:
    steer = instead_of(TWINS[name].says[step], lambda usual, round_id: message)
    stage(TWINS[name], steer, UnexpectedMessage, f"client 3 sent {type(message).__name__} of round 1")


@pytest.mark.parametrize(("name", "step"), [(name, step) for name, step in EVERY_STEP if name != "plain"])
def test_a_client_can_give_up_the_sum(name: str, step: str) -> None:
    give_up = instead_of(TWINS[name].says[step], lambda usual, round_id: Abandon(PURPOSE, "I must not\x1b[2J open it"))
    stage(TWINS[name], give_up, SumAbandoned, r"^client 3: I must not \[2J open it$")


@every_step
@pytest.mark.parametrize(("round_id", "purpose"), [(0, PURPOSE), (1, "metrics")], ids=["earlier", "other"])
def test_a_client_that_gives_up_another_sum_does_not_end_this_one(
    name: str, step: str, round_id: int, purpose: str
) -> None:
    """What it says is late; then comes its answer."""
    twin, late = TWINS[name], list[int]()
    honest = taking_part(twin, CLIENTS, [(TASK, INPUTS)])

    def serve(conversation: Conversation) -> Collected:
        (collected,) = serving(twin, CLIENTS, [TASK])(conversation)
        late.append(conversation.late_messages)
        assert isinstance(collected, Collected)
        return collected

    def take_part(conversation: Conversation) -> None:
        def first_give_up(message: wire.Message, _: RoundId) -> wire.Message:
            if isinstance(message, twin.says[step]):
                conversation.send(SERVER, Abandon(purpose, "not that one"), RoundId(round_id))
            return message

        bent(honest, first_give_up)(conversation)

    collected = converse({SERVER: serve} | dict.fromkeys(CLIENTS, honest) | {THREE: take_part})[SERVER]
    assert is_sum_of(collected, LAYOUT, INPUTS, CLIENTS)
    assert late == [1]


@every_step
def test_a_message_of_a_later_round_is_refused(name: str, step: str) -> None:
    def hurry(message: wire.Message, round_id: RoundId) -> wire.Frame:
        return wire.encode(message, SESSION, SECOND)

    match = "client 3 .* of round 2 where .* of round 1 was due"
    stage(TWINS[name], instead_of(TWINS[name].says[step], hurry), UnexpectedMessage, match)


@every_step
def test_an_answer_for_another_sum_is_refused(name: str, step: str) -> None:
    def mislabel(message: wire.Message, round_id: RoundId) -> wire.Message:
        return msgspec.structs.replace(message, purpose="metrics")

    match = "client 3 (contributed to|answers for) another sum"
    stage(TWINS[name], instead_of(TWINS[name].says[step], mislabel), PeerMisbehaved, match)


@every_twin
@pytest.mark.parametrize(
    "vector",
    [
        np.zeros(LAYOUT.entries - 1, "<u8"),
        np.zeros(LAYOUT.entries + 1, "<u8"),
        np.zeros(0, "<u8"),
        np.zeros(LAYOUT.entries, "<u4"),
    ],
    ids=["short", "long", "empty", "narrow"],
)
def test_an_input_of_another_length_or_ring_is_refused(twin: Twin, vector: np.ndarray[Any, Any]) -> None:
    def resize(message: wire.Message, round_id: RoundId) -> wire.Message:
        return msgspec.structs.replace(message, vector=vector)

    match = "client 3 (contributed|sends) a vector of another length or"
    stage(twin, instead_of(twin.input, resize), PeerMisbehaved, match)
