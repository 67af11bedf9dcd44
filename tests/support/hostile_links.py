"""Connections to a server over which anything may be said: raw sockets, hand-made HTTP, WebSockets and greetings."""

import contextlib
import socket
import ssl
import struct

from protocols.transport.https import pieces
from protocols.transport.https.channels import PATH
from tests.support.links import FEDERATION, Links


def raw(made: Links, tls: ssl.SSLContext | None) -> socket.socket:
    plain = socket.create_connection(("127.0.0.1", made.port), 10)
    return tls.wrap_socket(plain) if tls is not None else plain


def hung_up(connection: socket.socket) -> bytes:
    """What the server still says before it ends the connection, which it must do."""
    said = b""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while part := connection.recv(1 << 16):
            said += part
    connection.close()
    return said


UPGRADE = (
    f"GET {PATH} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
).encode()


def upgraded(made: Links, number: int) -> socket.socket:
    """A member's connection with an open WebSocket, over which it says whatever it likes."""
    connection = raw(made, made.federation.client_tls(number))
    connection.sendall(UPGRADE)
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += connection.recv(1)
    assert answer.startswith(b"HTTP/1.1 101")
    return connection


def masked(content: bytes, announced: int | None = None) -> bytes:
    length = len(content) if announced is None else announced
    return b"\x82\xff" + struct.pack(">Q", length) + bytes(4) + content


def greeting(number: int, **changes: object) -> bytes:
    words = {"party": number, "federation": FEDERATION, "incarnation": bytes(range(16)), "attempt": 1}
    words |= {"server": pieces.UNKNOWN, "received": 0, "granted": 1 << 20} | changes
    return pieces.hello(pieces.Hello(**words))  # type: ignore[arg-type]
