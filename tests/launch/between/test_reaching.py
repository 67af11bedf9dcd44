"""The way to the server as a site finds it: proxies that help, refuse or babble, and whatever else may answer."""

import dataclasses
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from launch.between.reaching import Reached, listening, reach
from protocols.foundation.identifiers import PartyId
from secure_kg.provisioning.tls import client_tls
from tests.support.links import Provisioned, links
from tests.support.provisioned import Federation, free_port, serving


@pytest.fixture
def federation(tmp_path: Path) -> Federation:
    return Federation(tmp_path, f"127.0.0.1:{free_port()}")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


def port_of(federation: Federation) -> int:
    return int(federation.roster().address.rpartition(":")[2])


def reached(federation: Federation, seconds: float = 5.0) -> Reached:
    roster = federation.roster()
    return reach(roster, lambda: client_tls(roster, federation.sites[0].path), seconds)


@contextmanager
def answering(answer: Callable[[socket.socket], None], port: int = 0) -> Iterator[int]:
    """A listener that does this with one connection."""

    def one() -> None:
        with suppress(OSError):
            plain, _ = listener.accept()
            with plain:
                plain.settimeout(5)
                answer(plain)

    with socket.create_server(("127.0.0.1", port)) as listener:
        listener.settimeout(5)
        thread = threading.Thread(target=one)
        thread.start()
        yield listener.getsockname()[1]
        thread.join()


def head(plain: socket.socket) -> bytes:
    content = b""
    while b"\r\n\r\n" not in content:
        content += plain.recv(4096)
    return content


def forward(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while piece := one.recv(65536):
            other.sendall(piece)
        other.shutdown(socket.SHUT_WR)


@pytest.mark.parametrize("login", ["", "user:p%40ss@"])
def test_a_proxy_of_the_environment_is_gone_through(
    login: str, federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []

    def connect(plain: socket.socket) -> None:
        asked.append(head(plain))
        with socket.create_connection(("127.0.0.1", port_of(federation))) as onward:
            plain.sendall(b"HTTP/1.1 200 Connection established\r\nVia: x\r\n\r\n")
            back = threading.Thread(target=forward, args=(onward, plain))
            back.start()
            forward(plain, onward)
            back.join()

    with serving(federation, port_of(federation)), answering(connect) as port:
        monkeypatch.setenv("HTTPS_PROXY", f"http://{login}127.0.0.1:{port}")
        found = reached(federation)
    assert [one.status for one in found.findings] == ["ok", "ok"]
    assert found.date is not None
    assert f"CONNECT {federation.roster().address} HTTP/1.1".encode() in asked[0]
    assert (b"Basic dXNlcjpwQHNz" in asked[0]) == bool(login)
    assert "p@ss" not in str(found)
    assert "p%40ss" not in str(found)


@pytest.mark.parametrize(
    ("answer", "told", "step"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "HTTP 407", "user and password"),
        (b"HTTP/1.1 403 No\r\n\r\n", "HTTP 403", "administrators to allow"),
        (b"\x1b[31mhello\r\n\r\n", "no HTTP", "NO_PROXY"),
        (b"HTTP/1.1 200 OK" + b"x" * 100_000, "no HTTP", "NO_PROXY"),
        (b"HTTP/1.1 99999999 OK\r\n\r\n", "no HTTP", "NO_PROXY"),
        (b"", "no HTTP", "NO_PROXY"),
    ],
)
def test_a_proxy_that_does_not_connect_is_told(
    answer: bytes, told: str, step: str, federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(plain: socket.socket) -> None:
        head(plain)
        plain.sendall(answer)

    with answering(refuse) as port:
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{port}")
        (_, found) = reached(federation).findings
    assert found.status == "problem"
    assert told in found.found
    assert step in found.next_step
    assert "\x1b" not in str(found)


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:1", "http://", "http://a:99999", "https://a:1"])
def test_a_proxy_that_cannot_be_used_is_told(
    proxy: str, federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    (found,) = reached(federation).findings
    assert "HTTPS_PROXY" in found.next_step
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving(federation, port_of(federation)):
        assert reached(federation).findings[-1].status == "ok"


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH\r\n", b"", b"\x16\x03\x01\xff\xff" + b"x" * 70_000],
)
def test_something_else_on_the_port_is_a_problem_and_not_a_traceback(answer: bytes, federation: Federation) -> None:
    def babble(plain: socket.socket) -> None:
        plain.recv(10)
        plain.sendall(answer)

    with answering(babble, port_of(federation)):
        (found,) = reached(federation).findings
    assert found.status == "problem"
    assert found.next_step


def test_whoever_says_nothing_is_not_waited_for_for_ever(federation: Federation) -> None:
    ended = threading.Event()

    def nothing(plain: socket.socket) -> None:
        ended.wait(5)

    with answering(nothing, port_of(federation)):
        (found,) = reached(federation, 0.2).findings
        ended.set()
    assert found.status == "problem"


def test_a_member_that_was_revoked_hears_it_from_the_server(tmp_path: Path) -> None:
    """Its own federation.toml is from before; the server has the newer one, and answers over HTTP all the same."""
    provisioned = Provisioned(tmp_path, sites=2)
    before = provisioned.roster
    with links(provisioned) as made:
        address = made.url.removeprefix("https://")
        roster = dataclasses.replace(before, address=address)

        def check(number: int) -> Reached:
            return reach(roster, lambda: client_tls(before, provisioned.sites[PartyId(number)].path))

        assert [one.status for one in check(1).findings] == ["ok"]
        provisioned.revoke(1)
        refused = check(1)
        assert [one.status for one in check(2).findings] == ["ok"]
    (found,) = refused.findings
    assert found.status == "problem"
    assert "does not take this site's certificate" in found.found
    assert "was revoked, and for the newest federation.toml" in found.next_step
    assert refused.date is not None


def test_a_name_that_does_not_resolve_is_told(tmp_path: Path) -> None:
    (found,) = reached(Federation(tmp_path, "nowhere.invalid:443")).findings
    assert "no such name" in found.found


def test_the_servers_machine_is_told_whether_its_port_is_free(federation: Federation) -> None:
    assert [one.status for one in listening(federation.roster())] == ["ok"]
    with socket.create_server(("", port_of(federation))):
        assert [one.status for one in listening(federation.roster())] == ["note"]


def test_a_head_that_comes_byte_by_byte_is_not_waited_for_in_each_of_them(
    federation: Federation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte in time for itself, a proxy could keep a check at its 16 KiB for two days."""
    given = []

    def drip(plain: socket.socket) -> None:
        head(plain)
        plain.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        with suppress(OSError):
            for _ in range(100):
                plain.sendall(b"x")
                given.append(1)
                ended.wait(0.1)

    ended = threading.Event()
    with answering(drip) as port:
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{port}")
        found = reached(federation, seconds=0.5).findings[-1]
        ended.set()
    assert "does not connect" in found.found
    assert len(given) < 100
