"""Mailboxes between threads: order, copies, deadlines, and who may talk to whom."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import DeadlineExpired, PeerLost
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.transport.base import in_turn, party_names
from protocols.transport.in_process import InProcessNetwork, InProcessTransport
from tests.support.in_threads import SHORT, soon

ONE, TWO, THREE = PartyId(1), PartyId(2), PartyId(3)
PAST = Deadline(0.0)


def ends(clients: int = 3) -> list[InProcessTransport]:
    network = InProcessNetwork(clients)
    return [network.endpoint(party) for party in network.parties]


def test_who_talks_to_whom() -> None:
    server, one, two, three = ends()
    assert server.peers == (ONE, TWO, THREE)
    assert one.peers == two.peers == three.peers == (SERVER,)
    for sender, to in ((one, TWO), (one, ONE), (server, SERVER), (server, PartyId(4))):
        with pytest.raises(PeerLost, match=f"party {to}") as lost:
            sender.send(to, b"x")
        assert lost.value.parties == (to,)


@given(st.lists(st.tuples(st.sampled_from([ONE, TWO, THREE]), st.binary(max_size=5)), max_size=20))
@settings(deadline=None)
def test_frames_of_a_pair_keep_their_order(sent: list[tuple[PartyId, bytes]]) -> None:
    server, *clients = ends()
    for party, frame in sent:
        clients[party - 1].send(SERVER, frame)
        server.send(party, frame)
    for party in (ONE, TWO, THREE):
        own = [frame for sender, frame in sent if sender == party]
        assert [server.receive([party], PAST) for _ in own] == [(party, frame) for frame in own]
        assert [clients[party - 1].receive([SERVER], PAST) for _ in own] == [(SERVER, frame) for frame in own]
    with pytest.raises(DeadlineExpired):
        server.receive(server.peers, PAST)


def test_a_frame_is_copied() -> None:
    server, one, *_ = ends()
    frame = bytearray(b"as sent")
    one.send(SERVER, frame)
    frame[:] = b"changed"
    assert server.receive([ONE], PAST) == (ONE, b"as sent")


def test_only_the_named_senders_are_heard() -> None:
    server, one, two, _ = ends()
    one.send(SERVER, b"from one")
    two.send(SERVER, b"from two")
    assert server.receive([TWO, THREE], PAST) == (TWO, b"from two")
    with pytest.raises(DeadlineExpired, match=r"no message from client 2, client 3 in time"):
        server.receive([THREE, TWO], PAST)
    assert server.receive([ONE], PAST) == (ONE, b"from one")


def test_waiting_ends_when_a_frame_arrives_and_when_the_deadline_passes() -> None:
    server, one, *_ = ends()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(server.receive, [ONE, TWO], soon())
        one.send(SERVER, b"at last")
        assert waiting.result() == (ONE, b"at last")
    with pytest.raises(DeadlineExpired):
        server.receive([ONE], Deadline.after(0.05))
    assert server.traffic.wait_seconds > 0


def test_gather_returns_those_that_answered() -> None:
    server, one, _, three = ends()
    three.send(SERVER, b"three")
    one.send(SERVER, b"one")
    one.send(SERVER, b"one again")
    assert server.gather(server.peers, Deadline.after(0.05)) == {ONE: b"one", THREE: b"three"}
    assert server.gather([ONE], PAST) == {ONE: b"one again"}
    assert server.gather(server.peers, PAST) == {}
    assert server.gather([], PAST) == {}


def test_gather_does_not_wait_once_all_have_answered() -> None:
    server, *clients = ends()
    with ThreadPoolExecutor(3) as pool:
        gathering = pool.submit(server.gather, server.peers, soon())
        for client in clients:
            client.send(SERVER, bytes([client.party]))
        assert gathering.result() == {ONE: b"\x01", TWO: b"\x02", THREE: b"\x03"}


def test_parties_have_names() -> None:
    assert party_names([THREE, SERVER, ONE]) == "the server, client 1, client 3"
    assert party_names([]) == ""


@given(st.sets(st.integers(0, 9).map(PartyId)), st.integers(0, 9).map(PartyId))
def test_turns_go_up_from_the_one_served_last_and_begin_again(waiting: set[PartyId], served: PartyId) -> None:
    order = in_turn(waiting, served)
    assert order == sorted(party for party in waiting if party > served) + sorted(
        party for party in waiting if party <= served
    )


def test_senders_are_served_in_turn() -> None:
    server, *clients = ends()
    for client in clients:
        for number in range(3):
            client.send(SERVER, bytes([number]))
    order = [server.receive(server.peers, PAST) for _ in range(9)]
    assert order == [(party, bytes([number])) for number in range(3) for party in (ONE, TWO, THREE)]


@pytest.mark.parametrize("flooding", [ONE, TWO, THREE], ids=int)
def test_one_that_floods_does_not_starve_the_others(flooding: PartyId) -> None:
    server, *clients = ends()
    for _ in range(2000):
        clients[flooding - 1].send(SERVER, b"again")
    others = [party for party in (ONE, TWO, THREE) if party != flooding]
    for _ in range(5):
        for party in others:
            clients[party - 1].send(SERVER, b"once")
        assert {server.receive(server.peers, PAST)[0] for _ in range(3)} == {ONE, TWO, THREE}


def test_turns_skip_those_that_are_not_asked_for_or_have_sent_nothing() -> None:
    server, one, _, three = ends()
    for _ in range(2):
        one.send(SERVER, b"one")
        three.send(SERVER, b"three")
    assert server.receive([ONE], PAST) == (ONE, b"one")
    assert server.receive([ONE, TWO], PAST) == (ONE, b"one")
    assert server.receive(server.peers, PAST) == (THREE, b"three")
    assert server.receive(server.peers, PAST) == (THREE, b"three")


def test_whoever_waits_for_a_party_that_has_ended_hears_so_after_its_last_message() -> None:
    network = InProcessNetwork(2)
    server, client = network.endpoint(SERVER), network.endpoint(PartyId(1))
    server.send(PartyId(1), b"last words")
    network.end(SERVER)
    assert client.receive([SERVER], soon()) == (SERVER, b"last words")
    with pytest.raises(PeerLost, match="the server has ended"):
        client.receive([SERVER], soon())
    network.end(PartyId(1))
    with pytest.raises(DeadlineExpired):  # client 2 may still speak
        server.receive([PartyId(1), PartyId(2)], Deadline.after(SHORT))


def test_a_wait_under_way_ends_with_the_party() -> None:
    network = InProcessNetwork(1)
    threading.Timer(SHORT, network.end, [SERVER]).start()
    with pytest.raises(PeerLost):
        network.endpoint(PartyId(1)).receive([SERVER], soon())
