"""Gathering answers as they arrive, and parties that are gone: nobody waits for them, and they may come back."""

import time

import pytest

from protocols.alignment.plain import ClearNames
from protocols.foundation.errors import (
    Aborted,
    DeadlineExpired,
    PeerFailed,
    PeerMisbehaved,
)
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.session.conversation import MAX_REASON, Back, Failed
from protocols.session.patience import Patience
from protocols.sums.secagg.messages import AdvertiseKeys
from tests.support.conversation_ends import (
    CLIENTS,
    CUT_OFF,
    NOW,
    ONE,
    PAST,
    ROUND,
    STEP,
    THREE,
    TWO,
    UNHURRIED,
    Ends,
    names,
)
from tests.support.in_threads import PATIENCE, SHORT
from tests.support.sum_conversations import Foreseen

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


def test_gather_each_remembers_who_took_how_long_and_who_dropped_out(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[tuple[str, PartyId]] = []
    dropouts: list[tuple[str, PartyId]] = []

    def note(step: str, party: PartyId, seconds: float) -> None:
        assert 0 <= seconds < PATIENCE
        noted.append((step, party))

    patience = Patience.fixed(0.0)
    monkeypatch.setattr(patience, "note", note)
    monkeypatch.setattr(patience, "note_dropout", lambda step, party, started: dropouts.append((step, party)))
    ends.say(ONE, names("a"))
    ends.say_bytes(THREE, CUT_OFF)
    list(ends.server.gather_each(CLIENTS, ClearNames, ROUND, patience, STEP))
    assert noted == [(STEP, ONE)]
    assert sorted(dropouts) == [(STEP, TWO), (STEP, THREE)]


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
