"""The rules of every conversation: late messages are dropped and counted, anything else out of place ends it."""

import time
from collections.abc import Callable, Collection
from typing import Any

import pytest

from protocols.alignment.plain import ClearNames
from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import (
    Aborted,
    DeadlineExpired,
    LeftOut,
    PeerFailed,
    PeerLost,
    PeerMisbehaved,
    SumAbandoned,
    UnexpectedMessage,
)
from protocols.foundation.identifiers import SERVER, PartyId, RoundId, SessionId
from protocols.foundation.wire import Frame
from protocols.session.conversation import MAX_PURPOSE, MAX_REASON, Abandon, Abort, Back, Conversation, Failed, LeaveOut
from protocols.session.patience import Patience
from protocols.sums.secagg.messages import AdvertiseKeys
from protocols.transport.in_process import InProcessNetwork, InProcessTransport
from tests.support.in_threads import PATIENCE, SHORT, soon
from tests.support.sum_conversations import Foreseen

SESSION = SessionId(bytes(range(16)))
ONE, TWO, THREE = PartyId(1), PartyId(2), PartyId(3)
CLIENTS = [ONE, TWO, THREE]
PAST = Deadline(0.0)
ROUND = RoundId(5)
STEP = "names"
UNHURRIED = Patience.fixed(PATIENCE)
NOW = Patience.fixed(0.0)
"""Takes what is there and waits for nothing."""


def names(*values: str) -> ClearNames:
    return ClearNames(list(values))


class Fragile(InProcessTransport):
    """An end that shows what MPI shows of a peer that dies: one no longer takes messages, or stops within one."""

    def __init__(self, network: InProcessNetwork) -> None:
        super().__init__(network, SERVER, CLIENTS)
        self.deaf: set[PartyId] = set()
        self.full: set[PartyId] = set()

    def busy(self, to: PartyId) -> bool:
        return to in self.full

    def _post(self, to: PartyId, frame: Frame) -> None:
        if to in self.deaf:
            raise PeerLost(f"client {to} can no longer be reached", to)
        super()._post(to, frame)

    def _take(self, senders: Collection[PartyId], deadline: Deadline) -> tuple[PartyId, Frame] | None:
        taken = super()._take(senders, deadline)
        if taken is not None and taken[1] == CUT_OFF:
            raise PeerLost(f"client {taken[0]} stopped in the middle of a message", taken[0])
        return taken


CUT_OFF = b"cut off"


class Ends:
    """The server's end and the clients' ends of one session; what is sent is there at once, so PAST is never early."""

    def __init__(self) -> None:
        network = InProcessNetwork(3)
        self.wire = Fragile(network)
        self.server = Conversation(self.wire, SESSION)
        self.clients = {party: Conversation(network.endpoint(party), SESSION) for party in CLIENTS}

    def say(self, party: PartyId, message: wire.Message, round_id: int = ROUND) -> None:
        self.clients[party].send(SERVER, message, RoundId(round_id))

    def say_bytes(self, party: PartyId, frame: wire.Frame) -> None:
        self.clients[party].transport.send(SERVER, frame)


@pytest.fixture
def ends() -> Ends:
    return Ends()


Listen = Callable[[Conversation], Any]
LISTENING: dict[str, Listen] = {
    "receive": lambda server: server.receive(ONE, ClearNames, ROUND, PAST),
    "receive_any": lambda server: server.receive_any(ONE, ROUND, PAST),
    "gather": lambda server: server.gather([ONE, TWO], ClearNames, ROUND, PAST),
    "gather_all": lambda server: server.gather_all([ONE], ClearNames, ROUND, PAST),
    "gather_each": lambda server: dict(server.gather_each([ONE, TWO], ClearNames, ROUND, NOW, STEP)),
}
every_way = pytest.mark.parametrize("listen", LISTENING.values(), ids=LISTENING)
HEARING: dict[str, Listen] = {
    "receive": lambda server: server.receive(ONE, ClearNames, ROUND, soon()),
    "receive_any": lambda server: server.receive_any(ONE, ROUND, soon()),
    "gather": lambda server: server.gather([ONE], ClearNames, ROUND, soon()),
    "gather_all": lambda server: server.gather_all([ONE], ClearNames, ROUND, soon()),
    "gather_each": lambda server: dict(server.gather_each([ONE], ClearNames, ROUND, UNHURRIED, STEP)),
}
"""With time left: what is late is dropped only as long as there is some."""
every_hearing = pytest.mark.parametrize("listen", HEARING.values(), ids=HEARING)
typed_way = pytest.mark.parametrize("way", ["receive", "gather", "gather_all", "gather_each"])


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
    ends.say(ONE, AdvertiseKeys("rows", bytes(32), b"", b""))
    with pytest.raises(UnexpectedMessage, match=r"client 1 sent AdvertiseKeys of round 5 where ClearNames"):
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


# --- taking answers as they arrive ----------------------------------------------------------------------------------


def test_gather_each_gives_answers_as_they_arrive(ends: Ends) -> None:
    answers = ends.server.gather_each(CLIENTS, ClearNames, ROUND, Patience.fixed(PATIENCE), STEP)
    for party, name in ((TWO, "b"), (ONE, "a"), (THREE, "c")):
        ends.say(party, names(name))
        assert next(answers) == (party, names(name))
    with pytest.raises(StopIteration):
        next(answers)


def test_gather_each_takes_one_message_of_each_and_leaves_the_rest(ends: Ends) -> None:
    ends.say(ONE, names("a"))
    ends.say(ONE, names("second"))
    ends.say(THREE, names("c"))
    assert dict(ends.server.gather_each([ONE, TWO], ClearNames, ROUND, NOW, STEP)) == {ONE: names("a")}
    assert list(ends.server.gather_each([], ClearNames, ROUND, NOW, STEP)) == []
    assert ends.server.gather(CLIENTS, ClearNames, ROUND, PAST) == {ONE: names("second"), THREE: names("c")}


def test_gather_each_waits_for_each_as_long_as_its_own_limit(ends: Ends) -> None:
    """Client 1 has no time left, the others have all of it: what client 3 says later still counts."""
    ends.say(TWO, names("b"))
    answers = ends.server.gather_each(CLIENTS, ClearNames, ROUND, Foreseen((STEP, ONE)), STEP)
    assert next(answers) == (TWO, names("b"))
    ends.say(THREE, names("c"))
    assert list(answers) == [(THREE, names("c"))]
    # Too late for this step: the next round drops it.
    ends.say(ONE, names("a"))
    later = RoundId(ROUND + 1)
    assert list(ends.server.gather_each([ONE], ClearNames, later, NOW, STEP)) == []
    assert ends.server.late_messages == 1


def test_gather_each_does_not_wait_long_for_one_when_the_others_were_quick(ends: Ends) -> None:
    ends.say(ONE, names("a"))
    ends.say(THREE, names("c"))
    started = time.monotonic()
    answers = dict(ends.server.gather_each(CLIENTS, ClearNames, ROUND, Patience(PATIENCE, SHORT), STEP))
    assert answers.keys() == {ONE, THREE}
    assert SHORT <= time.monotonic() - started < PATIENCE / 2


def test_gather_each_remembers_who_took_how_long_and_who_was_given_up(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[tuple[str, PartyId]] = []
    given_up: list[tuple[str, PartyId]] = []

    def note(step: str, party: PartyId, seconds: float) -> None:
        assert 0 <= seconds < PATIENCE
        noted.append((step, party))

    patience = Patience.fixed(0.0)
    monkeypatch.setattr(patience, "note", note)
    monkeypatch.setattr(patience, "give_up", lambda step, party, started: given_up.append((step, party)))
    ends.say(ONE, names("a"))
    ends.say_bytes(THREE, CUT_OFF)
    list(ends.server.gather_each(CLIENTS, ClearNames, ROUND, patience, STEP))
    assert noted == [(STEP, ONE)]
    assert sorted(given_up) == [(STEP, TWO), (STEP, THREE)]


def test_gather_each_goes_on_without_one_that_stops_in_the_middle_of_a_message(ends: Ends) -> None:
    ends.say(ONE, names("a"))
    ends.say_bytes(TWO, CUT_OFF)
    ends.say(TWO, names("afterwards"))
    ends.say(THREE, names("c"))
    answers = dict(ends.server.gather_each(CLIENTS, ClearNames, ROUND, Patience.fixed(PATIENCE), STEP))
    assert answers == {ONE: names("a"), THREE: names("c")}


def test_gather_each_drops_late_messages_and_counts_them(ends: Ends) -> None:
    for party in (ONE, TWO):
        ends.say(party, names("old"), round_id=ROUND - 1)
        ends.say(party, names("new"))
    answers = dict(ends.server.gather_each([ONE, TWO], ClearNames, ROUND, UNHURRIED, STEP))
    assert answers == {ONE: names("new"), TWO: names("new")}
    assert ends.server.late_messages == 2


# --- parties that are gone ------------------------------------------------------------------------------------------


def test_deliver_gives_everybody_its_own_and_names_who_takes_nothing(ends: Ends) -> None:
    ends.wire.deaf = {TWO}
    messages = {party: names(f"for {party}") for party in CLIENTS}
    assert ends.server.deliver(messages, ROUND) == {TWO}
    for party in (ONE, THREE):
        assert ends.clients[party].receive(SERVER, ClearNames, ROUND, PAST) == names(f"for {party}")
    assert ends.server.deliver({}, ROUND) == set()
    ends.wire.deaf = set()
    assert ends.server.deliver(messages, ROUND) == set()


def test_a_broadcast_names_who_takes_nothing(ends: Ends) -> None:
    ends.wire.deaf = {ONE, TWO}
    assert ends.server.broadcast(CLIENTS, names("a"), ROUND) == {ONE, TWO}
    assert ends.clients[THREE].receive(SERVER, ClearNames, ROUND, PAST) == names("a")
    assert ends.server.broadcast([THREE], names("b"), ROUND) == set()


def test_the_last_word_is_said_to_those_who_listen(ends: Ends) -> None:
    ends.wire.full, ends.wire.deaf = {ONE}, {TWO}
    ends.server.abort(CLIENTS, "x" * 2 * MAX_REASON, ROUND)
    with pytest.raises(DeadlineExpired):
        ends.clients[ONE].receive_any(SERVER, ROUND, PAST)
    with pytest.raises(Aborted, match=f"^{'x' * MAX_REASON}$"):
        ends.clients[THREE].receive_any(SERVER, ROUND, PAST)


def test_whoever_was_left_out_is_back_when_it_says_so(ends: Ends) -> None:
    assert not ends.server.came_back(ONE)
    ends.say(ONE, names("stale"), round_id=ROUND - 1)
    ends.say(ONE, AdvertiseKeys("rows", bytes(32), b"", b""))
    assert not ends.server.came_back(ONE)
    assert ends.server.late_messages == 2
    ends.say(ONE, names("stale"), round_id=ROUND + 1)
    ends.say(ONE, Back(), round_id=ROUND - 1)
    ends.say(ONE, names("fresh"))
    assert ends.server.came_back(ONE)
    assert ends.server.late_messages == 3
    assert ends.server.receive(ONE, ClearNames, ROUND, PAST) == names("fresh")
    assert not ends.server.came_back(ONE)
    assert ends.server.late_messages == 3


def test_only_the_one_that_is_asked_for_comes_back(ends: Ends) -> None:
    ends.say(TWO, Back())
    assert not ends.server.came_back(ONE)
    assert ends.server.came_back(TWO)


def test_one_that_breaks_off_is_not_back_yet(ends: Ends) -> None:
    ends.say_bytes(ONE, CUT_OFF)
    ends.say(ONE, Back())
    assert not ends.server.came_back(ONE)
    assert ends.server.came_back(ONE)


def test_one_that_fails_or_babbles_does_not_come_back(ends: Ends) -> None:
    ends.say(ONE, Failed("the disk is full"), round_id=0)
    with pytest.raises(PeerFailed, match="client 1: the disk is full"):
        ends.server.came_back(ONE)
    ends.say_bytes(TWO, b"noise")
    with pytest.raises(PeerMisbehaved, match="client 2 sent a malformed message"):
        ends.server.came_back(TWO)


# --- what only the server may say -----------------------------------------------------------------------------------


def waiting(client: Conversation) -> object:
    return client.receive(SERVER, ClearNames, ROUND, soon(), "rows")


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
def test_a_sum_that_was_given_up_is_not_another_one_of_the_round(
    ends: Ends, listen: Callable[[Conversation, str | None], Any], purpose: str | None
) -> None:
    ends.say(ONE, GIVING_UP)
    ends.say(ONE, names("a"))
    assert listen(ends.server, purpose) in (names("a"), {ONE: names("a")})
    assert ends.server.late_messages == 1


@every_sum
@pytest.mark.parametrize("purpose", ["rows", "metrics", None])
def test_a_client_cannot_give_up_a_sum_of_a_later_round(
    ends: Ends, listen: Callable[[Conversation, str | None], Any], purpose: str | None
) -> None:
    ends.say(ONE, GIVING_UP, ROUND + 1)
    with pytest.raises(UnexpectedMessage, match="client 1 sent Abandon of round 6 where ClearNames of round 5"):
        listen(ends.server, purpose)


@every_hearing
def test_outside_of_sums_one_that_was_given_up_is_late(ends: Ends, listen: Listen) -> None:
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
