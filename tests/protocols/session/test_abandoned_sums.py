"""What only the server may say, and sums that either side gives up: no party takes one for another."""

from collections.abc import Callable
from typing import Any

import pytest

from protocols.alignment.plain import ClearNames
from protocols.foundation import wire
from protocols.foundation.errors import (
    LeftOut,
    SumAbandoned,
    UnexpectedMessage,
)
from protocols.foundation.identifiers import SERVER, RoundId
from protocols.session.conversation import Abandon, Back, Conversation, LeaveOut
from tests.support.conversation_ends import (
    HEARING,
    LISTENING,
    ONE,
    PAST,
    ROUND,
    STEP,
    TWO,
    UNHURRIED,
    Ends,
    Listen,
    every_hearing,
    names,
    typed_way,
    waiting,
)
from tests.support.in_threads import soon

# --- what only the server may say -----------------------------------------------------------------------------------


@pytest.mark.parametrize("round_id", [0, ROUND, ROUND + 1])
def test_a_client_that_waits_hears_that_it_was_left_out(ends: Ends, round_id: int) -> None:
    ends.server.broadcast([ONE, TWO], LeaveOut(), RoundId(round_id))
    with pytest.raises(LeftOut, match="gone on without this client"):
        waiting(ends.clients[ONE])
    with pytest.raises(LeftOut, match="gone on without this client"):
        ends.clients[TWO].receive_any(SERVER, ROUND, PAST)


def test_a_client_that_waits_hears_that_the_sum_was_abandoned(ends: Ends) -> None:
    ends.server.send(ONE, Abandon("rows", "too few\x1b[2J are left"), ROUND)
    with pytest.raises(SumAbandoned, match=r"^too few \[2J are left$"):
        waiting(ends.clients[ONE])


def test_a_sum_that_was_abandoned_in_an_earlier_round_is_late(ends: Ends) -> None:
    client = ends.clients[ONE]
    for _ in range(2):
        ends.server.send(ONE, Abandon("rows", "too few"), RoundId(ROUND - 1))
        ends.server.send(ONE, names("a"), ROUND)
    assert waiting(client) == names("a")
    assert client.receive_any(SERVER, ROUND, PAST) == (ROUND, names("a"))
    assert client.late_messages == 2


def test_a_sum_of_a_later_round_cannot_be_abandoned_now(ends: Ends) -> None:
    ends.server.send(ONE, Abandon("rows", "too few"), RoundId(ROUND + 1))
    with pytest.raises(UnexpectedMessage, match="the server sent Abandon of round 6 where ClearNames of round 5"):
        waiting(ends.clients[ONE])


def test_between_sums_an_abandoned_one_is_a_message_like_any_other(ends: Ends) -> None:
    ends.server.send(ONE, Abandon("rows", "too few"), ROUND)
    assert ends.clients[ONE].receive_any(SERVER, ROUND, PAST) == (ROUND, Abandon("rows", "too few"))


CONTROL: list[wire.Message] = [LeaveOut(), Back()]
every_control = pytest.mark.parametrize("message", CONTROL, ids=lambda message: type(message).__name__)


@typed_way
@every_control
def test_from_a_client_they_are_out_of_place(ends: Ends, way: str, message: wire.Message) -> None:
    ends.say(ONE, message)
    with pytest.raises(UnexpectedMessage, match=f"client 1 sent {type(message).__name__} of round 5 where ClearNames"):
        LISTENING[way](ends.server)


@every_hearing
@pytest.mark.parametrize(
    "message", [*CONTROL, Abandon("rows", "because I say so")], ids=lambda message: type(message).__name__
)
def test_from_a_client_and_an_earlier_round_they_are_late(ends: Ends, listen: Listen, message: wire.Message) -> None:
    ends.say(ONE, message, round_id=ROUND - 1)
    ends.say(ONE, names("a"))
    assert listen(ends.server) in (names("a"), (ROUND, names("a")), {ONE: names("a")})
    assert ends.server.late_messages == 1


@every_control
def test_from_a_client_they_are_no_more_than_messages(ends: Ends, message: wire.Message) -> None:
    ends.say(ONE, message)
    assert ends.server.receive_any(ONE, ROUND, PAST) == (ROUND, message)


def test_a_client_that_was_left_out_cannot_leave_out_others(ends: Ends) -> None:
    """What it says until it is back is dropped, whatever it is."""
    for message in (LeaveOut(), Abandon("rows", "because I say so")):
        ends.say(ONE, message)
    ends.say(ONE, Back())
    assert ends.server.came_back(ONE)
    assert ends.server.late_messages == 2


# --- a sum that either side gives up --------------------------------------------------------------------------------


GIVING_UP = Abandon("rows", "must not\x1b[2J open it")
FOR_A_SUM: dict[str, Callable[[Conversation, str | None], Any]] = {
    "receive": lambda server, purpose: server.receive(ONE, ClearNames, ROUND, soon(), purpose),
    "gather_each": lambda server, purpose: dict(server.gather_each([ONE], ClearNames, ROUND, UNHURRIED, STEP, purpose)),
}
every_sum = pytest.mark.parametrize("listen", FOR_A_SUM.values(), ids=FOR_A_SUM)


@every_sum
def test_the_server_hears_which_client_gives_the_sum_up(
    ends: Ends, listen: Callable[[Conversation, str | None], Any]
) -> None:
    ends.say(ONE, GIVING_UP)
    with pytest.raises(SumAbandoned, match=r"^client 1: must not \[2J open it$"):
        listen(ends.server, "rows")
    assert ends.server.late_messages == 0


@every_sum
@pytest.mark.parametrize("purpose", ["metrics", "", "row", None])
def test_a_sum_that_was_abandoned_is_not_another_one_of_the_round(
    ends: Ends, listen: Callable[[Conversation, str | None], Any], purpose: str | None
) -> None:
    ends.say(ONE, GIVING_UP)
    ends.say(ONE, names("a"))
    assert listen(ends.server, purpose) in (names("a"), {ONE: names("a")})
    assert ends.server.late_messages == 1


@every_sum
@pytest.mark.parametrize("purpose", ["rows", "metrics", None])
def test_a_client_cannot_abandon_a_sum_of_a_later_round(
    ends: Ends, listen: Callable[[Conversation, str | None], Any], purpose: str | None
) -> None:
    ends.say(ONE, GIVING_UP, ROUND + 1)
    with pytest.raises(UnexpectedMessage, match="client 1 sent Abandon of round 6 where ClearNames of round 5"):
        listen(ends.server, purpose)


@every_hearing
def test_outside_of_sums_one_that_was_abandoned_is_late(ends: Ends, listen: Listen) -> None:
    ends.say(ONE, GIVING_UP)
    ends.say(ONE, names("a"))
    if listen is HEARING["receive_any"]:
        assert listen(ends.server) == (ROUND, GIVING_UP)
    assert listen(ends.server) in (names("a"), (ROUND, names("a")), {ONE: names("a")})


def test_a_client_does_not_take_another_sums_end_for_its_own(ends: Ends) -> None:
    client = ends.clients[ONE]
    ends.server.send(ONE, Abandon("metrics", "too few"), ROUND)
    ends.server.send(ONE, names("a"), ROUND)
    assert waiting(client) == names("a")
    assert client.late_messages == 1
    assert client.abandoned(ROUND) == {"metrics"}


def test_what_a_client_hears_of_other_sums_is_of_its_round_and_bounded(ends: Ends) -> None:
    client = ends.clients[ONE]
    ends.server.send(ONE, Abandon("rows", "too few"), RoundId(ROUND - 1))
    for number in range(1000):
        ends.server.send(ONE, Abandon(f"sum {number}", "too few"), ROUND)
    ends.server.send(ONE, names("a"), ROUND)
    assert waiting(client) == names("a")
    assert client.abandoned(RoundId(ROUND - 1)) == set()
    assert 0 < len(client.abandoned(ROUND)) <= 100


def test_a_server_keeps_nothing_of_what_a_client_says_of_other_sums(ends: Ends) -> None:
    """Else one client could make it drop what the others send for a sum that is still to come."""
    ends.say(ONE, Abandon("metrics", "no"))
    ends.say(ONE, names("a"))
    assert ends.server.gather([ONE], ClearNames, ROUND, PAST) == {ONE: names("a")}
    assert ends.server.abandoned(ROUND) == set()
