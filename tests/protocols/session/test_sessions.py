"""One session object per party: who is present, how long it waits, and that dropouts are reported once and are out."""

from collections.abc import Collection

import pytest

from protocols.alignment.plain import ClearNames
from protocols.foundation.errors import DeadlineExpired, PeerFailed, ProtocolError
from protocols.foundation.identifiers import PartyId
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Failed
from protocols.session.patience import Patience
from protocols.session.server_session import ServerSession
from protocols.session.turns import ask_in_turn
from tests.support.conversation_ends import CLIENTS, NOW, ONE, PAST, ROUND, STEP, THREE, TWO, Ends, names
from tests.support.sum_conversations import Silences


def session_of(ends: Ends, dropouts: Silences, patience: Patience = NOW) -> ServerSession:
    return ServerSession(ends.server, set(CLIENTS), patience, dropouts)


def test_who_is_present_is_live_and_shared_by_all_sessions_that_come_of_one(ends: Ends) -> None:
    whole = session_of(ends, Silences())
    some = whole.among([ONE, TWO]).with_patience(Patience.fixed(1.0))
    assert (whole.present, some.present) == ({ONE, TWO, THREE}, {ONE, TWO})
    some.dropout([TWO], STEP)
    assert (whole.present, some.present) == ({ONE, THREE}, {ONE})
    whole.attending.add(TWO)  # it is back
    assert some.present == {ONE, TWO}


def test_a_session_becomes_narrower_and_never_wider(ends: Ends) -> None:
    assert session_of(ends, Silences()).among([ONE, TWO]).among([TWO, THREE]).present == {TWO}


def test_another_patience_is_that_of_the_new_session_only(ends: Ends) -> None:
    whole, other = session_of(ends, Silences()), Patience.fixed(1.0)
    assert whole.with_patience(other).patience is other
    assert whole.patience is NOW


def test_nobody_is_no_dropout(ends: Ends) -> None:
    dropouts = Silences()
    session_of(ends, dropouts).dropout(frozenset(), STEP)
    assert dropouts.seen == []


def test_the_owner_hears_of_a_dropout_while_it_is_still_present(ends: Ends) -> None:
    seen: list[frozenset[PartyId]] = []

    def notice(parties: Collection[PartyId], step: str) -> None:
        seen.append(session.present)

    session = ServerSession(ends.server, set(CLIENTS), NOW, notice)
    session.dropout({TWO}, STEP)
    assert seen == [frozenset(CLIENTS)]
    assert session.present == {ONE, THREE}


def test_whoever_does_not_answer_is_reported_and_is_out(ends: Ends) -> None:
    dropouts = Silences()
    session = session_of(ends, dropouts)
    ends.say(ONE, names("a"))
    ends.say(THREE, names("c"))
    assert session.among([ONE, TWO]).gather(ClearNames, ROUND, STEP) == {ONE: names("a")}
    assert dropouts.seen == [({TWO}, STEP)]
    assert session.gather(ClearNames, ROUND, STEP) == {THREE: names("c")}  # client 2 is not asked again
    assert dropouts.seen == [({TWO}, STEP), ({ONE}, STEP)]
    assert session.present == {THREE}


def test_a_broadcast_is_for_those_present_and_reports_who_takes_nothing(ends: Ends) -> None:
    dropouts = Silences()
    session = session_of(ends, dropouts)
    ends.wire.deaf.add(THREE)
    session.among([ONE, THREE]).broadcast(CLIENTS, names("a"), ROUND, STEP)
    assert ClientSession(ends.clients[ONE], PAST).receive(ClearNames, ROUND) == names("a")
    with pytest.raises(DeadlineExpired):
        ClientSession(ends.clients[TWO], PAST).receive(ClearNames, ROUND)
    assert dropouts.seen == [({THREE}, STEP)]
    assert session.present == {ONE, TWO}


def test_answers_are_awaited_as_long_as_the_sessions_patience_has_it(ends: Ends) -> None:
    ends.say(TWO, names("b"))
    assert dict(session_of(ends, Silences()).gather_each([ONE, TWO], ClearNames, ROUND, STEP)) == {TWO: names("b")}


def test_a_phase_labels_the_traffic_of_either_side(ends: Ends) -> None:
    server, client = session_of(ends, Silences()), ClientSession(ends.clients[ONE], PAST)
    with client.phase(ROUND, STEP):
        client.send(names("a"), ROUND)
    with server.phase(ROUND, STEP):
        server.gather(ClearNames, ROUND, STEP)
    for session in (server, client):
        (counted,) = session.conversation.transport.traffic.counts
        assert (counted.round, counted.phase) == (ROUND, STEP)
    assert client.party == ONE


def test_those_asked_in_turn_and_in_vain_are_dropouts(ends: Ends) -> None:
    dropouts = Silences()
    session = session_of(ends, dropouts)
    ends.say(THREE, names("c"), 0)
    ends.wire.deaf.add(ONE)
    assert ask_in_turn(session, names(), ClearNames, STEP) == (THREE, names("c"))
    assert dropouts.seen == [({ONE}, STEP), ({TWO}, STEP)]
    with pytest.raises(ProtocolError, match="no client is left"):
        ask_in_turn(session, names(), ClearNames, STEP)
    assert session.present == frozenset()


def test_one_that_takes_no_messages_but_has_said_why_is_no_dropout(ends: Ends) -> None:
    dropouts = Silences()
    session = session_of(ends, dropouts)
    ends.wire.deaf.update({ONE, TWO})
    ends.say(ONE, names("stale"), round_id=ROUND - 1)
    session.broadcast([ONE], names("a"), ROUND, STEP)
    assert session.present == {TWO, THREE}
    ends.say(TWO, Failed("a file is damaged"), round_id=ROUND - 1)
    with pytest.raises(PeerFailed, match=r"^client 2: a file is damaged$"):
        session.broadcast(CLIENTS, names("a"), ROUND, STEP)
