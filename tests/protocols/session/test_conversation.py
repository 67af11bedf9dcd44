"""The rules of every conversation: late messages are dropped and counted, anything else out of place ends it."""

from collections.abc import Callable
from typing import Any

import pytest

from protocols.alignment.plain import ClearNames
from protocols.foundation import wire
from protocols.foundation.errors import (
    Aborted,
    DeadlineExpired,
    PeerFailed,
    PeerLost,
    PeerMisbehaved,
    UnexpectedMessage,
)
from protocols.foundation.identifiers import SERVER, RoundId, SessionId
from protocols.session.conversation import MAX_PURPOSE, MAX_REASON, Abandon, Abort, Conversation, Failed
from protocols.session.patience import Patience
from protocols.sums.secagg.messages import AdvertiseKeys, Survivors
from tests.support.conversation_ends import (
    CLIENTS,
    LISTENING,
    ONE,
    PAST,
    ROUND,
    SESSION,
    THREE,
    TWO,
    Ends,
    Listen,
    every_hearing,
    names,
    typed_way,
)
from tests.support.in_threads import PATIENCE

every_way = pytest.mark.parametrize("listen", LISTENING.values(), ids=LISTENING)


def test_messages_arrive_with_their_round(ends: Ends) -> None:
    ends.say(ONE, names("a"))
    assert ends.server.receive(ONE, ClearNames, ROUND, PAST) == names("a")
    ends.say(ONE, names("b"), round_id=ROUND + 7)
    assert ends.server.receive_any(ONE, ROUND, PAST) == (ROUND + 7, names("b"))
    ends.server.send(TWO, names("c"), ROUND)
    assert ends.clients[TWO].receive(SERVER, ClearNames, ROUND, PAST) == names("c")
    assert ends.server.late_messages == ends.clients[TWO].late_messages == 0


@every_hearing
def test_late_messages_are_dropped_and_counted(ends: Ends, listen: Listen) -> None:
    ends.say(ONE, names("old"), round_id=0)
    ends.say(ONE, AdvertiseKeys("rows", bytes(32), b"", b""), round_id=ROUND - 1)
    ends.say(ONE, names("new"))
    answer = listen(ends.server)
    assert answer in (names("new"), (ROUND, names("new")), {ONE: names("new")})
    assert ends.server.late_messages == 2


@every_way
def test_a_late_message_alone_is_silence(ends: Ends, listen: Listen) -> None:
    ends.say(ONE, names("old"), round_id=ROUND - 1)
    if listen in (LISTENING["gather"], LISTENING["gather_each"]):
        assert listen(ends.server) == {}
    else:
        with pytest.raises(DeadlineExpired, match="client 1"):
            listen(ends.server)
    assert ends.server.late_messages == 1


@typed_way
def test_a_message_of_a_later_round_is_refused(ends: Ends, way: str) -> None:
    ends.say(ONE, names("early"), round_id=ROUND + 1)
    with pytest.raises(UnexpectedMessage, match=r"client 1 sent ClearNames of round 6 where ClearNames of round 5"):
        LISTENING[way](ends.server)


@typed_way
def test_a_message_of_another_kind_is_refused(ends: Ends, way: str) -> None:
    ends.say(ONE, Survivors("rows", []))
    with pytest.raises(UnexpectedMessage, match=r"client 1 sent Survivors of round 5 where ClearNames"):
        LISTENING[way](ends.server)


GOOD = bytes(wire.encode(names("a"), SESSION, ROUND))


@every_way
@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"noise",
        GOOD[:-1],
        GOOD + b"\x00",
        b"\x02" + GOOD[1:],
        bytes(wire.encode(names("a"), SessionId(bytes(16)), ROUND)),
        bytes(wire.encode(names("a"), SessionId(bytes(16)), RoundId(0))),
    ],
    ids=["empty", "noise", "truncated", "surplus", "version", "another session", "another session, late"],
)
def test_bytes_that_are_no_message_of_the_session_are_misbehaviour(ends: Ends, listen: Listen, frame: bytes) -> None:
    ends.say_bytes(ONE, frame)
    with pytest.raises(PeerMisbehaved, match="client 1 sent a malformed message"):
        listen(ends.server)


@every_way
@pytest.mark.parametrize("round_id", [0, ROUND, ROUND + 1])
def test_a_party_that_failed_is_named_with_its_reason(ends: Ends, listen: Listen, round_id: int) -> None:
    ends.say(ONE, Failed("the disk is full"), round_id)
    with pytest.raises(PeerFailed, match="client 1: the disk is full"):
        listen(ends.server)


@pytest.mark.parametrize("round_id", [0, ROUND, ROUND + 1])
def test_the_server_can_end_the_session_at_any_time(ends: Ends, round_id: int) -> None:
    ends.server.broadcast(CLIENTS, Abort("client 3 is lost"), RoundId(round_id))
    listening: list[Callable[[Conversation], Any]] = [
        lambda client: client.receive(SERVER, ClearNames, ROUND, PAST),
        lambda client: client.receive_any(SERVER, ROUND, PAST),
    ]
    for party, listen in zip(CLIENTS, listening, strict=False):
        with pytest.raises(Aborted, match="client 3 is lost"):
            listen(ends.clients[party])


def test_only_the_server_ends_a_session(ends: Ends) -> None:
    ends.say(ONE, Abort("because I say so"))
    with pytest.raises(UnexpectedMessage, match="client 1 sent Abort"):
        ends.server.receive(ONE, ClearNames, ROUND, PAST)


def test_reasons_cannot_steer_a_terminal(ends: Ends) -> None:
    ends.server.broadcast([ONE], Abort("gone\x1b[2J"), ROUND)
    with pytest.raises(Aborted, match=r"^gone \[2J$"):
        ends.clients[ONE].receive_any(SERVER, ROUND, PAST)


def test_a_transport_that_loses_nobody_in_particular_loses_all(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> Any:
        raise PeerLost("the network is gone")

    monkeypatch.setattr(ends.server.transport, "receive", lost)
    patience = Patience.fixed(PATIENCE)
    assert list(ends.server.gather_each(CLIENTS, ClearNames, ROUND, patience, "step")) == []


def test_reasons_have_a_limit() -> None:
    for kind in (Failed, Abort):
        assert len(kind("x" * MAX_REASON).reason) == MAX_REASON
        with pytest.raises(ValueError, match="too long"):
            kind("x" * (MAX_REASON + 1))
    assert Abandon("p" * MAX_PURPOSE, "x" * MAX_REASON).reason == "x" * MAX_REASON
    with pytest.raises(ValueError, match="reason too long"):
        Abandon("p", "x" * (MAX_REASON + 1))
    with pytest.raises(ValueError, match="purpose too long"):
        Abandon("p" * (MAX_PURPOSE + 1), "x")


def test_silence_has_a_name(ends: Ends) -> None:
    with pytest.raises(DeadlineExpired, match="no message from client 2 in time"):
        ends.server.receive(TWO, ClearNames, ROUND, PAST)
    with pytest.raises(DeadlineExpired, match="no message from the server in time"):
        ends.clients[ONE].receive_any(SERVER, ROUND, PAST)


def test_gather_takes_one_message_of_each_that_answered(ends: Ends) -> None:
    ends.say(THREE, names("c"))
    ends.say(ONE, names("a"))
    ends.say(ONE, names("second"))
    assert ends.server.gather(CLIENTS, ClearNames, ROUND, PAST) == {ONE: names("a"), THREE: names("c")}
    assert ends.server.gather([], ClearNames, ROUND, PAST) == {}
    # The second message was not taken; in the next round it is late.
    assert ends.server.gather([ONE], ClearNames, RoundId(ROUND + 1), PAST) == {}
    assert ends.server.late_messages == 1


def test_gather_all_names_everyone_who_is_silent(ends: Ends) -> None:
    ends.say(TWO, names("b"))
    with pytest.raises(DeadlineExpired, match=r"^client 1, client 3 did not answer in time \(ClearNames\)$"):
        ends.server.gather_all(CLIENTS, ClearNames, ROUND, PAST)


def test_gather_all_gives_every_answer(ends: Ends) -> None:
    for party, name in zip(CLIENTS, "abc", strict=True):
        ends.say(party, names(name))
    answers = ends.server.gather_all(CLIENTS, ClearNames, ROUND, PAST)
    assert answers == {ONE: names("a"), TWO: names("b"), THREE: names("c")}


def test_one_bad_message_ends_a_gathering(ends: Ends) -> None:
    ends.say(ONE, names("a"))
    ends.say_bytes(TWO, b"noise")
    ends.say(THREE, names("c"))
    with pytest.raises(PeerMisbehaved, match="client 2"):
        ends.server.gather(CLIENTS, ClearNames, ROUND, PAST)


def test_a_broadcast_is_serialised_once(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[wire.Message] = []
    encode = wire.encode

    def counting(message: wire.Message, session: SessionId, round_id: RoundId) -> wire.Frame:
        encoded.append(message)
        return encode(message, session, round_id)

    monkeypatch.setattr(wire, "encode", counting)
    ends.server.broadcast({THREE, ONE}, names("a"), ROUND)
    ends.server.broadcast([], names("b"), ROUND)
    assert encoded == [names("a")]
    for party in (ONE, THREE):
        assert ends.clients[party].receive(SERVER, ClearNames, ROUND, PAST) == names("a")
    with pytest.raises(DeadlineExpired):
        ends.clients[TWO].receive_any(SERVER, RoundId(0), PAST)
