"""Server and clients over loopback: frames, counters, epochs, incarnations, restarts and ends."""

import threading
from pathlib import Path

import pytest

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import DeadlineExpired, LinkRefused, PeerLost, PeerMisbehaved, TransportError
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.transport.https.client import HttpsClientTransport
from protocols.transport.https.server import HttpsServer
from protocols.transport.tap import Tap, read_transcript
from tests.support.in_threads import SHORT, soon
from tests.support.links import FEDERATION, QUICK, Links, Provisioned, links
from tests.support.waiting import wait_until

ONE, TWO, THREE = PartyId(1), PartyId(2), PartyId(3)
PAST = Deadline(0.0)
LARGE = bytes(range(256)) * 28_000  # 7 MB: larger than what may lie unread


def test_frames_cross_in_order_and_are_counted(linked: Links, tmp_path: Path) -> None:
    clients = [linked.client(1), linked.client(2)]
    linked.wait(1, 2)
    server = linked.server.transport()
    server.attach(Tap(tmp_path / "record"))
    for client in clients:
        with client.phase(RoundId(3), "input"):
            for frame in (b"", b"one", LARGE):
                client.send(SERVER, frame)
    for party in (ONE, TWO):
        with server.phase(RoundId(3), "input"):
            received = [server.receive([party], soon()) for _ in range(3)]
        assert received == [(party, b""), (party, b"one"), (party, LARGE)]
        server.send(party, memoryview(LARGE)[:1000])
        assert clients[party - 1].receive([SERVER], soon()) == (SERVER, LARGE[:1000])
    sizes = (3, 3 + len(LARGE))
    for client in clients:
        count = client.traffic.total("sent", peer=SERVER, round_id=RoundId(3), phase="input")
        assert (count.messages, count.bytes) == sizes
        counted = server.traffic.total("received", peer=client.party)
        assert (counted.messages, counted.bytes) == sizes
    server.close()
    assert [len(record.frame) for record in read_transcript(tmp_path / "record")] == [
        0, 3, len(LARGE), 1000, 0, 3, len(LARGE), 1000,
    ]  # fmt: skip


def test_both_send_more_than_lies_unread_before_either_receives(linked: Links) -> None:
    client = linked.client(1)
    linked.wait(1)
    server = linked.server.transport()
    client.send(SERVER, LARGE)
    server.send(ONE, LARGE)
    assert server.receive([ONE], soon()) == (ONE, LARGE)
    assert client.receive([SERVER], soon()) == (SERVER, LARGE)


def test_deadlines_pass_and_what_is_there_counts(linked: Links) -> None:
    client = linked.client(1)
    linked.wait(1)
    server = linked.server.transport()
    with pytest.raises(DeadlineExpired, match="no message from client 1, client 2 in time"):
        server.receive([ONE, TWO], Deadline.after(SHORT))
    with pytest.raises(DeadlineExpired, match="no message from the server in time"):
        client.receive([SERVER], Deadline.after(SHORT))
    client.send(SERVER, b"here")
    client.flush(soon())
    assert server.receive([ONE, TWO], PAST) == (ONE, b"here")


def test_strangers_and_parties_that_have_not_connected_are_lost(linked: Links) -> None:
    client = linked.client(1)
    linked.wait(1)
    server = linked.server.transport()
    assert server.peers == (ONE, TWO, THREE)
    for end, to in ((client, TWO), (client, ONE), (server, PartyId(4)), (server, TWO)):
        with pytest.raises(PeerLost) as lost:
            end.send(to, b"x")
        assert lost.value.parties == (to,)


def test_a_late_comer_is_in_the_epoch(linked: Links) -> None:
    first = linked.client(1)
    linked.wait(1)
    server = linked.server.transport()
    second = linked.client(2)
    second.send(SERVER, b"late")
    assert server.receive([ONE, TWO], soon()) == (TWO, b"late")
    server.send(TWO, b"welcome")
    assert second.receive([SERVER], soon()) == (SERVER, b"welcome")
    assert server.newcomers == frozenset()
    wait_until(lambda: first.linked, 10)
    assert linked.server.linked() == {ONE, TWO}


def test_senders_are_served_in_turn(linked: Links) -> None:
    clients = [linked.client(number) for number in (1, 2, 3)]
    linked.wait(1, 2, 3)
    server = linked.server.transport()
    for client in clients:
        for number in range(3):
            client.send(SERVER, bytes([number]))
        client.flush(soon())
    order = [server.receive(server.peers, PAST) for _ in range(9)]
    assert order == [(party, bytes([number])) for number in range(3) for party in (ONE, TWO, THREE)]


def test_a_frame_beyond_the_limit_is_refused_and_the_next_one_taken(linked: Links) -> None:
    client = linked.client(1)
    linked.wait(1)
    server = linked.server.transport()
    for size in (2_000, len(LARGE)):
        client.send(SERVER, LARGE[:size])
        client.send(SERVER, b"small")
        with pytest.raises(PeerMisbehaved, match=f"client 1 sent {size:,} bytes where 1,000 are due at most"):
            server.receive([ONE], soon(), limit=1_000)
        assert server.receive([ONE], soon(), limit=1_000) == (ONE, b"small")


def test_a_restarted_client_is_lost_at_once_and_waits_for_the_next_epoch(linked: Links) -> None:
    first, other = linked.client(1), linked.client(2)
    linked.wait(1, 2)
    server = linked.server.transport()
    first.send(SERVER, b"last words")
    first.flush(soon())
    second = linked.client(1)
    second.send(SERVER, b"for the next epoch")
    linked.wait(1)
    assert server.receive([ONE], PAST) == (ONE, b"last words")
    with pytest.raises(PeerLost, match="client 1 was restarted") as lost:
        server.receive([ONE, TWO], soon())
    assert lost.value.parties == (ONE,)
    with pytest.raises(PeerLost, match="client 1 was restarted"):
        server.send(ONE, b"x")
    assert server.newcomers == {ONE}
    with pytest.raises(LinkRefused, match=r"another process .* let the coordinator revoke it at once"):
        first.receive([SERVER], soon())
    other.send(SERVER, b"still here")
    assert server.receive([TWO], soon()) == (TWO, b"still here")
    server.close()
    with pytest.raises(PeerLost, match="the server has ended the session"):
        other.receive([SERVER], soon())
    again = linked.client(2)
    linked.wait(1, 2)
    following = linked.server.transport()
    assert following.receive([ONE], soon()) == (ONE, b"for the next epoch")
    following.send(TWO, b"you too")
    assert again.receive([SERVER], soon()) == (SERVER, b"you too")


def test_the_last_frames_of_an_epoch_arrive_before_its_end(linked: Links) -> None:
    client = linked.client(1)
    linked.wait(1)
    server = linked.server.transport()
    server.send(ONE, LARGE)
    server.send(ONE, b"goodbye")
    server.close()
    assert client.receive([SERVER], soon()) == (SERVER, LARGE)
    assert client.receive([SERVER], soon()) == (SERVER, b"goodbye")
    with pytest.raises(PeerLost, match="has ended the session"):
        client.receive([SERVER], soon())
    with pytest.raises(PeerLost):
        client.send(SERVER, b"x")


def test_the_last_frame_of_a_client_arrives_and_then_its_end(linked: Links) -> None:
    client = linked.client(1)
    linked.wait(1)
    server = linked.server.transport()
    client.send(SERVER, b"I cannot go on")
    client.close()
    assert server.receive([ONE], soon()) == (ONE, b"I cannot go on")
    with pytest.raises(PeerLost, match="client 1 has ended"):
        server.receive([ONE, TWO], soon())


def test_a_client_hears_that_the_server_was_restarted(provisioned: Provisioned) -> None:
    with links(provisioned) as first:
        client = first.client(1)
        first.wait(1)
        first.server.transport()
        # As if killed: connections break, and nobody says a word.
        assert first.server._thread is not None
        first.server._thread.stop()
        first.server._reception._listening.close()  # type: ignore[union-attr]
        first.server._closed = True
        with links(provisioned, port=first.port) as second:
            with pytest.raises(PeerLost, match="the server was restarted") as lost:
                client.receive([SERVER], soon())
            assert lost.value.parties == (SERVER,)
            assert second.server.waiting() == frozenset()
            assert second.lines == ["client 1 belongs to the session before the restart; it comes again"]
            client.close()
            again = second.client(1)
            second.wait(1)
            again.send(SERVER, b"here again")
            assert second.server.transport().receive([ONE], soon()) == (ONE, b"here again")


def test_another_federation_and_another_number_are_refused(linked: Links) -> None:
    other = linked.client(1, federation=bytes(32))
    with pytest.raises(LinkRefused, match="serves another federation"):
        other.receive([SERVER], soon())
    thief = linked.client(2, party=ONE)
    with pytest.raises(LinkRefused, match="the certificate is that of another member"):
        thief.receive([SERVER], soon())
    honest = linked.client(1)
    linked.wait(1)
    assert linked.server.waiting() == {ONE}
    wait_until(lambda: honest.linked, 10)


def test_a_server_that_cannot_listen_says_so_in_one_line(linked: Links, provisioned: Provisioned) -> None:
    def server(port: int) -> HttpsServer:
        return HttpsServer(("127.0.0.1", port), provisioned.server_tls(), lambda leaf: None, [ONE], FEDERATION, QUICK)

    with pytest.raises(TransportError, match=f"cannot listen at 127.0.0.1:{linked.port}: Address already in use"):
        server(linked.port).start()
    with pytest.raises(TransportError, match="cannot listen"):
        server(1 << 17).start()


def test_a_sender_waits_when_the_window_is_full_and_others_do_not(provisioned: Provisioned) -> None:
    with links(provisioned) as made:
        clients = [made.client(1), made.client(2)]
        made.wait(1, 2)
        server = made.server.transport()
        assert not server.busy(ONE)
        for _ in range(40):  # client 1 reads nothing: its unread bytes fill, then the window
            if server.busy(ONE):
                break
            server.send(ONE, LARGE)
        assert server.busy(ONE)
        assert not server.busy(TWO)
        server.send(TWO, b"for you")
        assert clients[1].receive([SERVER], soon()) == (SERVER, b"for you")
        waiting = threading.Thread(target=server.send, args=(ONE, b"the last one"))
        waiting.start()
        taken = clients[0].receive([SERVER], soon())[1]
        waiting.join(20)
        assert not waiting.is_alive()
        while taken != b"the last one":
            assert taken == LARGE
            taken = clients[0].receive([SERVER], soon())[1]


def test_nothing_is_left_running_and_closing_without_a_server_ends(provisioned: Provisioned) -> None:
    before = set(threading.enumerate())
    client = HttpsClientTransport(
        "https://127.0.0.1:9", provisioned.client_tls(1), ONE, FEDERATION, proxy=None, limits=QUICK
    )
    client.send(SERVER, b"nobody listens")
    client.close()
    client.close()
    with links(provisioned) as made:
        made.client(1)
        made.wait(1)
        made.server.transport()
    wait_until(lambda: set(threading.enumerate()) <= before, 10)
