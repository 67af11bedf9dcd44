"""Links through a proxy that breaks them: every frame once and in order, at whatever piece a connection is cut."""

import os
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from benchmarks.links.faults import Answer, Break, Faults
from benchmarks.links.proxy import FaultProxy
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.transport.https.client import HttpsClientTransport
from protocols.transport.https.limits import PIECE_BYTES
from protocols.transport.https.server_transport import HttpsServerTransport
from tests.support.in_threads import soon
from tests.support.links import QUICK, Links, Provisioned, links
from tests.support.waiting import wait_until

ONE = PartyId(1)
LARGE = os.urandom(PIECE_BYTES + 3)
WAYS = ["websocket", "poll"]
_MOST_PIECES = 130
"""TLS records of the conversation below, by long polls with handshakes of several connections."""


@pytest.fixture
def made(provisioned: Provisioned) -> Iterator[Links]:
    with links(provisioned) as made:
        yield made


def converse(client: HttpsClientTransport, made: Links) -> HttpsServerTransport:
    """A short conversation, with frames that cross each other, empty ones, and some in several pieces."""
    client.send(SERVER, b"greeting")
    made.wait(1)
    server = made.server.transport()
    assert server.receive([ONE], soon()) == (ONE, b"greeting")
    for number in range(2):
        server.send(ONE, bytes([number]) + LARGE)
        client.send(SERVER, b"")
        client.send(SERVER, LARGE + bytes([number]))
        assert client.receive([SERVER], soon()) == (SERVER, bytes([number]) + LARGE)
        assert server.receive([ONE], soon()) == (ONE, b"")
        assert server.receive([ONE], soon()) == (ONE, LARGE + bytes([number]))
        server.send(ONE, bytes([number]))
        assert client.receive([SERVER], soon()) == (SERVER, bytes([number]))
    client.flush(soon())
    server.flush(soon())
    assert client._link.outbox.empty
    assert client.traffic.total("sent").bytes == server.traffic.total("received").bytes
    assert server.traffic.total("sent").bytes == client.traffic.total("received").bytes
    return server


def conversation_through(made: Links, faults: Faults, mode: str = "websocket") -> FaultProxy:
    with FaultProxy(("127.0.0.1", made.port), faults) as proxy:
        client = made.client(1, url=f"https://127.0.0.1:{proxy.port}", mode=mode)
        converse(client, made)
        client.close()
    return proxy


def test_a_conversation_has_so_many_pieces(provisioned: Provisioned) -> None:
    patient = replace(QUICK, silence_seconds=30.0, handshake_seconds=30.0)  # a busy machine is no broken link
    with links(provisioned, patient) as made:
        counted = [conversation_through(made, Faults(), mode).pieces for mode in WAYS]
        assert max(counted) <= _MOST_PIECES
        assert not any("down" in line for line in made.lines)


@pytest.mark.parametrize("mode", WAYS)
@pytest.mark.parametrize("piece", [1, 3, 7, 9, 12, 20, 60])
def test_a_cut_at_one_piece_loses_and_repeats_nothing(made: Links, piece: int, mode: str) -> None:
    proxy = conversation_through(made, Faults(break_at_pieces=frozenset({piece})), mode)
    assert proxy.connections > 1


@pytest.mark.slow
@pytest.mark.parametrize("breaking", [Break.CUT, Break.HALF_CLOSE])
@pytest.mark.parametrize("mode", WAYS)
@pytest.mark.parametrize("piece", range(1, _MOST_PIECES))
def test_a_break_at_any_piece_loses_and_repeats_nothing(made: Links, piece: int, mode: str, breaking: Break) -> None:
    conversation_through(made, Faults(break_at_pieces=frozenset({piece}), breaking=breaking), mode)


def test_many_cuts_in_one_conversation(made: Links) -> None:
    proxy = conversation_through(made, Faults(break_at_pieces=frozenset(range(9, 200, 17))))
    assert proxy.connections >= 4
    assert any(line.startswith("the link to the server is down") for line in made.lines)
    assert any(line.startswith("the link to the server is up again") for line in made.lines)


def test_a_connection_that_breaks_while_a_client_closes_is_no_news(made: Links) -> None:
    """Both ends part; whichever is first breaks the connection for the other."""
    with FaultProxy(("127.0.0.1", made.port)) as proxy:
        client = made.client(1, url=f"https://127.0.0.1:{proxy.port}")
        converse(client, made)
        with client._guard:
            client._link.closing = True
        proxy.cut()
        wait_until(lambda: client._redialler._failures > 0, 10.0)  # it has noticed, and would have said so
        assert not any("is down" in line for line in made.lines)


def test_one_direction_ends_and_the_link_goes_on(made: Links) -> None:
    for piece in (12, 30):
        assert conversation_through(made, Faults(break_at_pieces=frozenset({piece}), breaking=Break.HALF_CLOSE)).pieces


@pytest.mark.parametrize("answer", [Answer.REFUSE, Answer.BLACK_HOLE])
def test_a_server_that_cannot_be_reached_at_first(made: Links, answer: Answer) -> None:
    proxy = conversation_through(made, Faults(answer=answer, answered=1))
    assert proxy.connections >= 2


def test_an_older_connection_that_arrives_after_a_newer_one_changes_nothing(made: Links) -> None:
    """The client gives up the first connection; the proxy lets it through when the second one is at work."""
    with FaultProxy(("127.0.0.1", made.port), Faults(overtaken=frozenset({1}))) as proxy:
        client = made.client(1, url=f"https://127.0.0.1:{proxy.port}")
        converse(client, made)
        assert proxy.connections >= 2


def test_a_slow_and_narrow_link(made: Links) -> None:
    proxy = conversation_through(made, Faults(delay=0.02, rate=20e6))
    assert proxy.connections == 1


def test_links_of_others_go_on_while_one_is_cut(provisioned: Provisioned) -> None:
    with links(provisioned) as made, FaultProxy(("127.0.0.1", made.port)) as proxy:
        cut, whole = made.client(1, url=f"https://127.0.0.1:{proxy.port}"), made.client(2)
        made.wait(1, 2)
        server = made.server.transport()
        stop = threading.Event()

        def cuts() -> None:
            while not stop.wait(0.05):
                proxy.cut()

        cutting = threading.Thread(target=cuts)
        cutting.start()
        try:
            number, until = 0, soon()
            while number < 20 or (proxy.connections < 2 and not until.expired):  # fast links are done before a cut
                for client in (cut, whole):
                    client.send(SERVER, bytes([number % 256]) + LARGE)
                for party in (ONE, PartyId(2)):
                    assert server.receive([party], soon()) == (party, bytes([number % 256]) + LARGE)
                number += 1
        finally:
            stop.set()
            cutting.join()
        assert proxy.connections > 1
