"""Peers that send without end: nobody is kept beyond its deadline."""

import time
from collections.abc import Collection

import pytest

from protocols.alignment.plain import ClearNames
from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import (
    DeadlineExpired,
    UnexpectedMessage,
)
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.foundation.wire import Frame
from protocols.session.conversation import Abandon, Back, Conversation
from protocols.session.patience import Patience
from protocols.transport.in_process import InProcessNetwork, InProcessTransport
from tests.support.conversation_ends import (
    CLIENTS,
    LISTENING,
    NOW,
    ONE,
    PAST,
    ROUND,
    SESSION,
    STEP,
    THREE,
    TWO,
    UNHURRIED,
    Ends,
    names,
    waiting,
)
from tests.support.in_threads import PATIENCE, SHORT, soon

# --- peers that send without end ------------------------------------------------------------------------------------


MANY = 5000
OLD = wire.encode(names("old"), SESSION, RoundId(ROUND - 1))
ELSEWHERE = wire.encode(Abandon("metrics", "over"), SESSION, ROUND)
every_flood = pytest.mark.parametrize("frame", [OLD, ELSEWHERE], ids=["earlier round", "another sum"])


class Endless(InProcessTransport):
    """An end at which the same frame of client 1 arrives whenever it is asked for, deadline or not."""

    def __init__(self, frame: wire.Frame) -> None:
        super().__init__(InProcessNetwork(3), SERVER, CLIENTS)
        self._frame = frame
        self.taken = 0

    def _take(self, senders: Collection[PartyId], deadline: Deadline) -> tuple[PartyId, Frame] | None:
        if ONE not in senders:
            return None
        self.taken += 1
        return ONE, self._frame


@every_flood
@pytest.mark.parametrize("way", ["receive", "gather", "gather_all", "gather_each"])
def test_a_flood_of_late_messages_keeps_nobody_after_the_deadline(frame: wire.Frame, way: str) -> None:
    flooded = Endless(frame)
    server = Conversation(flooded, SESSION)
    if way in ("gather", "gather_each"):
        assert LISTENING[way](server) == {}
    else:
        with pytest.raises(DeadlineExpired, match=r"no message from client 1 in time|client 1 did not answer in time"):
            LISTENING[way](server)
    assert flooded.taken <= 2 * 100
    assert server.late_messages == flooded.taken


@every_flood
def test_a_flood_of_late_messages_keeps_nobody_for_longer_than_the_deadline(frame: wire.Frame) -> None:
    flooded = Endless(frame)
    server = Conversation(flooded, SESSION)
    started = time.monotonic()
    with pytest.raises(DeadlineExpired):
        server.receive(ONE, ClearNames, ROUND, Deadline.after(SHORT))
    assert dict(server.gather_each([ONE, TWO], ClearNames, ROUND, Patience.fixed(SHORT), STEP)) == {}
    assert 2 * SHORT <= time.monotonic() - started < PATIENCE / 4
    assert server.late_messages == flooded.taken > 2


def test_a_mailbox_full_of_late_messages_is_read_no_further_than_the_deadline(ends: Ends) -> None:
    for _ in range(MANY):
        ends.say_bytes(ONE, OLD)
    with pytest.raises(DeadlineExpired):
        ends.server.receive(ONE, ClearNames, ROUND, PAST)
    assert ends.server.late_messages == 100
    ends.say(ONE, names("new"))
    assert ends.server.receive(ONE, ClearNames, ROUND, soon()) == names("new")
    assert ends.server.late_messages == MANY


def test_a_flood_of_one_does_not_keep_the_others_from_being_heard(ends: Ends) -> None:
    """Their answers are among the first messages read, wherever they stand in the order of clients."""
    for _ in range(MANY):
        ends.say_bytes(TWO, OLD)
    ends.say(ONE, names("one"))
    ends.say(THREE, names("three"))
    answers = ends.server.gather_each(CLIENTS, ClearNames, ROUND, UNHURRIED, STEP)
    assert dict([next(answers), next(answers)]) == {ONE: names("one"), THREE: names("three")}
    assert ends.server.late_messages <= 2


def test_one_that_was_left_out_is_read_a_hundred_messages_at_a_time(ends: Ends) -> None:
    for _ in range(250):
        ends.say_bytes(ONE, OLD)
    ends.say(ONE, Back())
    assert not ends.server.came_back(ONE)
    assert ends.server.late_messages == 100
    assert not ends.server.came_back(ONE)
    assert ends.server.late_messages == 200
    assert ends.server.came_back(ONE)
    assert ends.server.late_messages == 250


def test_one_that_was_left_out_and_floods_keeps_nobody() -> None:
    flooded = Endless(OLD)
    assert not Conversation(flooded, SESSION).came_back(ONE)
    assert flooded.taken == 100


def test_the_server_cannot_come_back(ends: Ends) -> None:
    ends.server.send(ONE, Back(), ROUND)
    with pytest.raises(UnexpectedMessage, match="the server sent Back"):
        waiting(ends.clients[ONE])


def test_a_late_frame_of_one_costs_no_other_its_answer(ends: Ends) -> None:
    ends.say_bytes(ONE, OLD)
    for party in (TWO, THREE):
        ends.say(party, names(str(party)))
    answers = dict(ends.server.gather_each(CLIENTS, ClearNames, ROUND, NOW, "step"))
    assert answers == {TWO: names("2"), THREE: names("3")}


def test_endless_late_frames_do_not_hold_one_that_waits_for_anything() -> None:
    with pytest.raises(DeadlineExpired):
        Conversation(Endless(OLD), SESSION).receive_any(ONE, ROUND, PAST)
