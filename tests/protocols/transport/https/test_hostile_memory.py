"""What whoever reaches the port makes a server hold in memory: of announcements nothing, of the rest a stated bound."""

import contextlib
import socket
import struct
import tracemalloc

import pytest

from protocols.foundation.identifiers import PartyId
from protocols.transport.https import pieces, polling
from protocols.transport.https.channels import PATH
from protocols.transport.https.limits import PIECE_BYTES, LinkLimits
from protocols.transport.https.server import _BACKLOG
from tests.support.hostile_links import UPGRADE, greeting, hung_up, masked, raw, upgraded
from tests.support.links import QUICK, Links, Provisioned, links
from tests.support.waiting import wait_until

ONE = PartyId(1)
TWO_GIB = 2 << 30
UPLOAD = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {TWO_GIB}\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ([UPLOAD], "refused a request of client 1: it announced a body of 2,147,483,648 bytes"),
        (
            [UPGRADE, masked(b"", announced=TWO_GIB)],
            "refused a connection of client 1: it announced a message larger than any piece",
        ),
        (
            [UPGRADE, masked(greeting(1)), masked(b"", announced=TWO_GIB)],
            "client 1 is cut off: it announced a message larger than any piece",
        ),
        (
            [UPGRADE, masked(greeting(1)), masked(struct.pack("<BQQ", pieces.Kind.BEGIN, 1, TWO_GIB))],
            "client 1 is cut off: it announced a frame of 2,147,483,648 bytes",
        ),
    ],
    ids=["body", "message", "message after a greeting", "frame"],
)
def test_a_2_gib_announcement_is_refused_by_its_first_bytes(attacked: Links, said: list[bytes], line: str) -> None:
    tls = attacked.federation.client_tls(1)
    tracemalloc.start()
    try:
        for _ in range(3):
            connection = raw(attacked, tls)
            connection.sendall(b"".join(said))
            hung_up(connection)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20
    wait_until(lambda: line in attacked.lines, 10)
    assert attacked.lines.count(line) == 1
    assert len(attacked.lines) <= 2, attacked.lines  # a greeting that is repeated is refused for that


def test_a_member_fills_no_more_memory_than_is_stated(attacked: Links) -> None:
    connection = upgraded(attacked, 1)
    connection.sendall(masked(greeting(1)))
    tracemalloc.start()
    number = 0
    try:
        with contextlib.suppress(OSError):
            while number < 100:  # 25 MB, of which nobody has asked for any
                number += 1
                payload = memoryview(bytes(PIECE_BYTES))
                connection.sendall(masked(pieces.data(number, PIECE_BYTES, payload)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    hung_up(connection)
    assert peak < QUICK.unread_bytes + (4 << 20)
    wait_until(lambda: any("sent more than it had room for" in line for line in attacked.lines), 10)


def test_strangers_fill_no_more_memory_than_their_handshakes(provisioned: Provisioned) -> None:
    """Half of a first message each, from many more connections than may be in a handshake: 0.3 MB for each that may,
    and for each that the system has accepted at once (its backlog)."""
    limits = LinkLimits()
    with links(provisioned, limits) as made:
        tracemalloc.start()
        try:
            strangers = [socket.create_connection(("127.0.0.1", made.port), 10) for _ in range(300)]
            for stranger in strangers:
                with contextlib.suppress(OSError):
                    stranger.sendall(b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc" + bytes(16_000))
            made.client(1)
            made.wait(1)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        for stranger in strangers:
            stranger.close()
    assert peak < (limits.handshakes + _BACKLOG + 8) * 300_000
    assert sum("handshakes at once" in line for line in made.lines) == 1


def test_a_member_that_opens_channel_after_channel_fills_no_memory(attacked: Links) -> None:
    """Each is answered with pieces of what waits for the member, and a channel that is over is kept for a moment."""
    connection = raw(attacked, attacked.federation.client_tls(1))
    server, reception = attacked.server._epoch, attacked.server._reception
    assert server is not None
    assert reception is not None

    def answered() -> bool:
        newest = next(reversed(reception._polls.values()))
        return newest._size > 0

    tracemalloc.start()
    try:
        for attempt in range(1, 101):
            body = polling.joined([greeting(1, attempt=attempt, granted=1 << 30)])
            head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)
            while not connection.recv(1 << 16):
                pass
            if attempt == 1:
                server.send(ONE, bytes(8 << 20))
            wait_until(answered, 10)
            assert len(reception._polls) <= 8
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    connection.close()
    assert peak < (8 + 8 + 4) << 20
