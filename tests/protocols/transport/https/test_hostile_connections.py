"""Whoever reaches the port: strangers, members that lie, members that are none any more. Others are undisturbed."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest

from protocols.foundation.errors import LinkRefused, PeerLost
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.session.site_keys import issue, leaf_in
from protocols.transport.https import pieces
from protocols.transport.https.channels import PATH
from protocols.transport.https.limits import LinkLimits
from protocols.transport.https.notices import Notices
from tests.support.hostile_links import UPGRADE, greeting, hung_up, masked, raw, upgraded
from tests.support.in_threads import soon
from tests.support.links import QUICK, Links, Provisioned, links
from tests.support.stolen_certificate import show_without_key
from tests.support.waiting import wait_until

ONE, TWO = PartyId(1), PartyId(2)


def test_a_plain_tcp_client_is_refused(attacked: Links) -> None:
    connection = raw(attacked, None)
    connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    assert not hung_up(connection).startswith(b"HTTP")
    wait_until(lambda: any("refused a connection from 127.0.0.1" in line for line in attacked.lines), 10)


def test_a_tls_1_2_client_is_refused(attacked: Links) -> None:
    tls = attacked.federation.client_tls(1)
    tls.minimum_version = tls.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        raw(attacked, tls)


def test_a_client_without_a_certificate_is_refused(attacked: Links) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    connection = raw(attacked, tls)
    with contextlib.suppress(OSError):
        connection.sendall(UPGRADE)
    assert hung_up(connection) == b""


def test_a_stranger_with_a_certificate_is_refused(attacked: Links, tmp_path: Path) -> None:
    """Of another federation: it does not trust this server either, unless it is made to."""
    other = Provisioned(tmp_path, sites=1)
    stranger = attacked.client(1, tls=other.client_tls(1))
    with pytest.raises(LinkRefused, match="TLS with the server failed"):
        stranger.receive([SERVER], soon())
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    tls.load_cert_chain(other.sites[ONE].leaf_file("client"))
    trusting = attacked.client(1, tls=tls)
    with pytest.raises(LinkRefused, match="it may not know this site's certificate"):
        trusting.receive([SERVER], soon())
    assert attacked.server.linked() == {TWO}


def test_a_member_that_was_revoked_is_refused_and_a_live_one_cut_off(tmp_path: Path) -> None:
    provisioned = Provisioned(tmp_path, sites=2)
    with links(provisioned) as made:
        tls = provisioned.client_tls(1)
        client, other = made.client(1, tls=tls), made.client(2)
        made.wait(1, 2)
        server = made.server.transport()
        provisioned.revoke(1)
        with pytest.raises(PeerLost, match="client 1 is no member any more") as lost:
            server.receive([ONE, TWO], soon())
        assert lost.value.parties == (ONE,)
        for one in (client, made.client(1, tls=tls), made.client(1, tls=tls, mode="poll")):
            with pytest.raises(LinkRefused, match="unknown, expired or revoked"):
                one.receive([SERVER], soon())
        other.send(SERVER, b"still here")
        assert server.receive([TWO], soon()) == (TWO, b"still here")
        assert any("client 1 is cut off" in line for line in made.lines)
        assert any("was revoked" in line for line in made.lines)


def test_an_expired_certificate_is_refused(attacked: Links, tmp_path: Path) -> None:
    expired = issue(attacked.federation.sites[ONE].identity_pem, "client", datetime.now(UTC) - timedelta(days=500))
    (tmp_path / "expired.pem").write_bytes(expired.private_pem + expired.certificate_pem)
    tls = attacked.federation.client_tls(1)
    tls.load_cert_chain(tmp_path / "expired.pem")
    client = attacked.client(1, tls=tls)
    with pytest.raises(LinkRefused, match="it may not know this site's certificate"):
        client.receive([SERVER], soon())
    assert any("refused a connection from 127.0.0.1: certificate verify failed" in line for line in attacked.lines)


def test_a_certificate_without_its_key_lets_nobody_in(attacked: Links, tmp_path: Path) -> None:
    """Its thief has a key of another certificate only, with which OpenSSL does not even begin; the server sees why."""
    own = attacked.federation.sites[ONE].leaf_file("client").read_text()
    other = attacked.federation.sites[TWO].leaf_file("client").read_text()
    cut = own.index("-----BEGIN CERTIFICATE-----")
    (tmp_path / "copied.pem").write_text(other[: other.index("-----BEGIN CERTIFICATE-----")] + own[cut:])
    with pytest.raises(ssl.SSLError):
        attacked.federation.client_tls(1).load_cert_chain(tmp_path / "copied.pem")
    for _ in range(3):
        show_without_key(attacked.port, leaf_in(own.encode()))
    told = "refused a connection from 127.0.0.1: bad signature (it shows a certificate without having the key"
    assert sum(told in line for line in attacked.lines) == 1, attacked.lines


def test_a_member_that_was_revoked_before_the_server_began_is_named_once_and_given_nothing(tmp_path: Path) -> None:
    provisioned = Provisioned(tmp_path, sites=2)
    tls = provisioned.client_tls(1)
    provisioned.revoke(1)
    with links(provisioned) as made:
        for mode in ("websocket", "poll", "websocket"):
            with pytest.raises(LinkRefused, match="unknown, expired or revoked"):
                made.client(1, tls=tls, mode=mode).receive([SERVER], soon())
        upload = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n".encode()
        for said, answer in ((upload, b" 413 "), (UPGRADE + masked(b"", announced=1000), b" 101 ")):
            connection = tls.wrap_socket(socket.create_connection(("127.0.0.1", made.port), 10))
            connection.sendall(said)
            assert answer in hung_up(connection)
        assert made.server.linked() == frozenset()
        assert [line for line in made.lines if "refused" in line] == [
            "refused a connection: member 1 (Site 1) was revoked",
        ], made.lines


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (b"no greeting", "not a greeting of this software"),
        (greeting(2), "the certificate is that of another member"),
        (greeting(1, federation=bytes(32)), "this server serves another federation"),
        (greeting(1, version=2), "the server speaks version 1 of the link"),
        (greeting(1, received=7), "a first greeting cannot have received anything"),
        (greeting(1) + b"x", "not a greeting of this software"),
    ],
    ids=["no greeting", "party", "federation", "version", "received", "length"],
)
def test_a_greeting_that_is_wrong_is_refused_in_one_line(attacked: Links, said: bytes, line: str) -> None:
    connection = upgraded(attacked, 1)
    connection.sendall(masked(said))
    assert line.encode() in hung_up(connection)
    assert sum(line in told for told in attacked.lines) == 1
    assert attacked.server.linked() == {TWO}


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ([pieces.ack(1, 1 << 20)], "acknowledged what was not sent"),
        ([pieces.ack(0, 5)], "took back what it had acknowledged or granted"),
        ([pieces.data(2, 1, memoryview(b"x"))], "sent piece 2 where 1 was due"),
        ([pieces.data(1, 1, memoryview(b"x"))] * 2, "sent piece 1 where 2 was due"),
        ([greeting(1)], "sent a greeting in the middle of a connection"),
        ([b""], "a piece of an unknown kind"),
        ([bytes(40)], "a piece of an unknown kind"),
    ],
    ids=["ack", "credit", "gap", "repetition", "greeting", "empty", "unknown"],
)
def test_a_member_that_lies_is_cut_off_in_one_line(attacked: Links, said: list[bytes], line: str) -> None:
    connection = upgraded(attacked, 1)
    connection.sendall(masked(greeting(1)) + b"".join(masked(piece) for piece in said))
    assert line.encode() in hung_up(connection)
    wait_until(lambda: sum(line in told for told in attacked.lines) == 1, 10)


def test_a_silent_connection_is_ended(attacked: Links) -> None:
    connections = [raw(attacked, None), raw(attacked, attacked.federation.client_tls(1)), upgraded(attacked, 1)]
    connections.append(raw(attacked, attacked.federation.client_tls(1)))
    connections[-1].sendall(b"GET / HTTP/1.1\r\nHost: ")
    for connection in connections:
        connection.settimeout(20)
        hung_up(connection)


def test_handshakes_are_bounded_and_an_honest_client_gets_in(provisioned: Provisioned) -> None:
    limits = LinkLimits(handshakes=4, heartbeat_seconds=0.2, silence_seconds=20.0, handshake_seconds=20.0)
    with links(provisioned, limits) as made:
        silent = [raw(made, None) for _ in range(12)]
        made.client(1)
        made.wait(1)
        assert any("more than 4 handshakes at once" in line for line in made.lines)
        assert sum("handshakes at once" in line for line in made.lines) == 1
        for connection in silent:
            connection.close()


def test_a_member_has_few_connections_at_once(attacked: Links) -> None:
    tls = attacked.federation.client_tls(1)
    connections = [raw(attacked, tls) for _ in range(QUICK.connections_per_member + 3)]
    wait_until(lambda: any("connections of client 1" in line for line in attacked.lines), 10)
    for connection in connections:
        connection.close()


def test_requests_for_anything_else_get_nothing(attacked: Links) -> None:
    async def answers() -> list[int]:
        found = []
        async with aiohttp.ClientSession(base_url=attacked.url) as session:
            tls = attacked.federation.client_tls(1)
            name = "0" * 32
            for method, path, body in (
                ("GET", "/", b""),
                ("GET", PATH, b""),
                ("PUT", PATH, b""),
                ("POST", PATH, b"\xff\xff\xff\xff"),
                ("POST", f"{PATH}/{name}/up", b""),
                ("POST", f"{PATH}/{name}/down", b""),
                ("GET", "/../" * 300, b""),
                ("GET", "/" + "x" * 5000, b""),
            ):
                async with session.request(method, path, data=body, ssl=tls) as answer:
                    found.append(answer.status)
        return found

    assert asyncio.run(answers()) == [404, 426, 404, 400, 410, 410, 404, 400]


@pytest.mark.parametrize(
    ("length", "body", "status", "line"),
    [
        ("Transfer-Encoding: chunked", b"", b" 413 ", "announced a body of unknown length"),
        ("Content-Length: 4", b"\xff" * 4, b" 400 ", "sent a piece of an impossible length"),
        ("Content-Length: 3", b"\xff" * 3, b" 400 ", "sent a malformed body"),
        ("Content-Length: 1000", b"slow", b" 400 ", "did not send all of a body within 2 s"),
    ],
)
def test_a_body_that_is_none_is_refused_in_one_line(
    attacked: Links, length: str, body: bytes, status: bytes, line: str
) -> None:
    for _ in range(2):
        connection = raw(attacked, attacked.federation.client_tls(1))
        connection.sendall(f"POST {PATH} HTTP/1.1\r\nHost: x\r\n{length}\r\n\r\n".encode() + body)
        assert status in connection.recv(1 << 12)
        connection.close()
    assert [told for told in attacked.lines if "body" in told or "piece" in told] == [
        f"refused a request of client 1: it {line}"
    ]


def test_a_kind_of_trouble_is_told_once_a_minute() -> None:
    now, lines = [0.0], list[str]()
    notices = Notices(lines.append, lambda: now[0])
    for _ in range(1000):
        notices.tell("slow", "slow")
    notices.tell("other", "other")
    assert lines == ["slow", "other"]
    now[0] = 61.0
    notices.tell("slow", "slow")
    assert lines[2:] == ["slow (and 999 more like it)"]
    for kind in range(10_000):
        notices.tell(f"kind {kind}", "x")
    assert len(notices._kinds) <= 256


def test_a_server_that_takes_up_and_drops_a_client_fills_no_log_of_it(linked: Links) -> None:
    told = list[str]()
    client = linked.client(1, notice=told.append)
    for _ in range(100):
        client._redialler.notice("the link to the server is down; connecting again")
        client._redialler.notice("the link to the server is up again")
    assert len(told) == 2


def test_broken_connections_are_no_lines_of_a_log(linked: Links) -> None:
    for name in ("asyncio", "protocols.transport.https"):
        assert not logging.getLogger(name).propagate
        assert logging.getLogger(name).hasHandlers()  # or it would write to standard error


def test_ctrl_c_ends_a_wait_and_closing_is_not_held_up(linked: Links) -> None:
    client = linked.client(1)
    linked.wait(1)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()
        with pytest.raises(KeyboardInterrupt):
            client.receive([SERVER], soon())
        client.close()
    finally:
        signal.signal(signal.SIGINT, before)
    assert not client.linked
