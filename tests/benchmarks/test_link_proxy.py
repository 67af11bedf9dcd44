"""The proxy between parties: what it forwards, breaks, holds and refuses, and that it ends by itself."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.links.faults import Answer, Break, Faults, parse_link
from benchmarks.links.pieces import Records
from benchmarks.links.proxy import FaultProxy, main
from secure_kg.foundation.errors import UserError
from tests.support.waiting import wait_until


def record(content: bytes) -> bytes:
    """Looks like one of TLS."""
    return b"\x17\x03\x03" + len(content).to_bytes(2, "big") + content


class Echo:
    """A server that says everything back."""

    def __init__(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self.listening.getsockname()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._echo, args=(self.listening.accept()[0],), daemon=True).start()

    def _echo(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            while part := connection.recv(1 << 16):
                connection.sendall(part)


@pytest.fixture
def echo() -> Iterator[Echo]:
    made = Echo()
    yield made
    made.listening.close()


def connected(proxy: FaultProxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), 10)


def read(connection: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size and (part := connection.recv(size - len(found))):
        found += part
    return found


def test_bytes_pass_unchanged_and_are_counted(echo: Echo) -> None:
    with FaultProxy(echo.address) as proxy, connected(proxy) as connection:
        sent = record(b"one") + record(bytes(1000)) + b"GET / HTTP/1.1\r\n"
        connection.sendall(sent)
        assert read(connection, len(sent)) == sent
        assert proxy.bytes == 2 * len(sent)


def test_a_delay_is_kept_and_does_not_stack_up(echo: Echo) -> None:
    with FaultProxy(echo.address, Faults(delay=0.1)) as proxy, connected(proxy) as connection:
        begun = time.monotonic()
        sent = b"".join(record(bytes([number])) for number in range(200))
        connection.sendall(sent)
        assert read(connection, len(sent)) == sent
        assert time.monotonic() - begun >= 0.2


def test_a_rate_is_kept(echo: Echo) -> None:
    with FaultProxy(echo.address, Faults(rate=100_000)) as proxy, connected(proxy) as connection:
        begun = time.monotonic()
        sent = record(bytes(10_000)) * 3
        connection.sendall(sent)
        assert read(connection, len(sent)) == sent
        assert time.monotonic() - begun >= 0.15


def test_a_cut_comes_in_the_middle_of_its_piece_and_only_once(echo: Echo) -> None:
    with FaultProxy(echo.address, Faults(break_at_pieces=frozenset({2}))) as proxy:
        with connected(proxy) as connection, contextlib.suppress(ConnectionError):
            connection.sendall(record(b"one"))
            assert record(b"one").startswith(cut := read(connection, 8))
            assert len(cut) < 8
        with connected(proxy) as connection:
            connection.sendall(record(b"two"))
            assert read(connection, 8) == record(b"two")


def test_a_cut_after_so_many_bytes(echo: Echo) -> None:
    with FaultProxy(echo.address, Faults(break_after_bytes=50)) as proxy, connected(proxy) as connection:
        connection.sendall(record(bytes(30)))
        with contextlib.suppress(ConnectionError):
            assert read(connection, 35) != record(bytes(30))
        wait_until(lambda: not proxy._live, 10)


def test_a_half_close_ends_one_direction(echo: Echo) -> None:
    faults = Faults(break_at_pieces=frozenset({2}), breaking=Break.HALF_CLOSE)
    with FaultProxy(echo.address, faults) as proxy, connected(proxy) as connection:
        connection.sendall(record(b"one"))
        assert connection.recv(10) == b""
        connection.sendall(record(b"two"))  # still taken


def test_connections_are_refused_or_swallowed(echo: Echo) -> None:
    with FaultProxy(echo.address, Faults(answer=Answer.REFUSE, answered=1)) as proxy:
        with contextlib.suppress(ConnectionError), connected(proxy) as connection:
            assert connection.recv(1) == b""
        with connected(proxy) as connection:
            connection.sendall(b"\x00")
            assert read(connection, 1) == b"\x00"
        proxy.faults = Faults(answer=Answer.BLACK_HOLE)
        with connected(proxy) as connection:
            connection.sendall(b"\x00")
            connection.settimeout(0.1)
            with pytest.raises(TimeoutError):
                connection.recv(1)


def test_a_newer_connection_overtakes_an_older_one(echo: Echo) -> None:
    faults = Faults(overtaken=frozenset({1}), patience=60.0)
    with FaultProxy(echo.address, faults) as proxy, connected(proxy) as older:
        older.sendall(b"\x00")
        older.settimeout(0.1)
        with pytest.raises(TimeoutError):
            older.recv(1)
        with connected(proxy) as newer:
            newer.sendall(b"\x01")
            assert read(newer, 1) == b"\x01"
            older.settimeout(10)
            assert read(older, 1) == b"\x00"


def test_it_ends_by_itself(echo: Echo) -> None:
    with FaultProxy(echo.address, seconds=0.1) as proxy, connected(proxy) as connection:
        with contextlib.suppress(ConnectionError):
            assert connection.recv(1) == b""
        proxy.wait()
        assert not proxy._thread.is_alive()


@given(st.lists(st.binary(max_size=40), max_size=6), st.binary(max_size=5), st.integers(1, 50))
def test_pieces_are_what_passes_whatever_it_is(contents: list[bytes], rest: bytes, step: int) -> None:
    stream = b"".join(record(content) for content in contents)
    records, found = Records(), list[bytes]()
    for at in range(0, len(stream), step):
        found += records.feed(stream[at : at + step])
    assert found == [record(content) for content in contents]
    found += [*records.feed(rest), records.rest()]
    assert b"".join(found) == stream + rest


def test_links_as_text() -> None:
    assert parse_link("delay=25ms,rate=100Mbit") == Faults(delay=0.025, rate=12.5e6)
    assert parse_link("delay=1s") == Faults(delay=1.0)
    assert parse_link("") == Faults()
    for wrong in ("delay", "delay=25", "delay=ms", "rate=1ms", "delay=1s,delay=1s", "speed=1", "delay=-1s"):
        with pytest.raises(UserError):
            parse_link(wrong)


def test_the_command(echo: Echo, capsys: pytest.CaptureFixture[str]) -> None:
    to = f"127.0.0.1:{echo.address[1]}"
    assert main(["--to", to, "--seconds", "0.1", "--link", "delay=5ms", "--cut-at", "3,5"]) == 0
    assert "0 connections, 0 pieces, 0 bytes" in capsys.readouterr().out
    for wrong in (["--to", "nowhere"], ["--to", to, "--link", "fast"], ["--to", to, "--cut-at", "x"],
                  ["--to", to, "--listen", to]):  # fmt: skip
        assert main(wrong) == 2
        assert capsys.readouterr().err.count("\n") == 1
