"""The plain sum and the masked sums when somebody misbehaves: the same ends."""

from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import pytest

from protocols.alignment.plain import ClearNames
from protocols.foundation import wire
from protocols.foundation.errors import (
    Aborted,
    PeerFailed,
    PeerMisbehaved,
    ProtocolError,
    SumAbandoned,
    UnexpectedMessage,
)
from protocols.foundation.identifiers import SERVER, RoundId
from protocols.session.conversation import Abandon, Back, Conversation, Failed, LeaveOut
from protocols.sums.interface import Collected
from tests.support.in_threads import SESSION, converse
from tests.support.sum_conversations import (
    EVERY_STEP,
    FIRST,
    PURPOSE,
    SECOND,
    TWINS,
    Bend,
    Twin,
    bent,
    instead_of,
    is_sum_of,
    serving,
    taking_part,
)
from tests.support.twin_sums import CLIENTS, INPUTS, LAYOUT, TASK, THREE, every_step, every_step_awaited, every_twin

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
def test_a_client_can_abandon_the_sum(name: str, step: str) -> None:
    words = "I must not\x1b[2J open it"
    abandoning = instead_of(TWINS[name].says[step], lambda usual, round_id: Abandon(PURPOSE, words))
    stage(TWINS[name], abandoning, SumAbandoned, r"^client 3: I must not \[2J open it$")


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
        def first_abandon(message: wire.Message, _: RoundId) -> wire.Message:
            if isinstance(message, twin.says[step]):
                conversation.send(SERVER, Abandon(purpose, "not that one"), RoundId(round_id))
            return message

        bent(honest, first_abandon)(conversation)

    collected = converse({SERVER: serve} | dict.fromkeys(CLIENTS, honest) | {THREE: take_part})[SERVER]
    assert is_sum_of(collected, LAYOUT, INPUTS, CLIENTS)
    assert late == [1]


@every_step_awaited
def test_a_message_of_a_later_round_is_refused(name: str, step: str) -> None:
    def hurry(message: wire.Message, round_id: RoundId) -> wire.Frame:
        return wire.encode(message, SESSION, SECOND)

    match = "client 3 .* of round 2 where .* of round 1 was due"
    stage(TWINS[name], instead_of(TWINS[name].says[step], hurry), UnexpectedMessage, match)


@every_step_awaited
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
