"""The status page over loopback: who may ask for what, and what a board tells."""

import http.client
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from launch.status.board import StatusBoard
from launch.status.server import StatusServer
from protocols.foundation.identifiers import PartyId
from protocols.session.patience import Patience
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.attendance import Attendance
from secure_kg.foundation.errors import UserError
from secure_kg.report.live import live_page
from tests.support.pages import Page


@pytest.fixture
def board() -> StatusBoard:
    return StatusBoard(0, RunConfig(clients=3, rounds=10))


@pytest.fixture
def server(board: StatusBoard, tmp_path: Path) -> Iterator[StatusServer]:
    with StatusServer(board, 0, tmp_path) as shown:
        yield shown


def ask(
    server: StatusServer, path: str, method: str = "GET", host: str | None = None
) -> tuple[int, dict[str, str], bytes]:
    assert server.url is not None
    port = int(server.url.rstrip("/").rpartition(":")[2])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def test_the_page_and_its_figures(server: StatusServer, board: StatusBoard) -> None:
    board.report("<script>alert(1)</script>")
    status, headers, body = ask(server, "/")
    assert status == 200
    assert b"<script>alert" not in body
    assert "script-src 'nonce-" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Frame-Options"] == "DENY"
    assert json.loads(ask(server, "/status.json")[2])["rounds"] == 10


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_other_methods_are_refused(server: StatusServer, method: str) -> None:
    assert ask(server, "/", method)[0] == 405


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost:x", "10.0.0.1", "[::1"])
def test_names_of_other_machines_are_refused(server: StatusServer, host: str) -> None:
    assert ask(server, "/", host=host)[0] == 421


def test_what_is_no_http_is_refused_without_a_word(server: StatusServer, capfd: pytest.CaptureFixture[str]) -> None:
    assert server.url is not None
    for said in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01 no HTTP\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", int(server.url.rstrip("/").rpartition(":")[2])), 10) as connection:
            connection.sendall(said)
            assert b" 400 Bad Request" in connection.recv(100)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("host", ["localhost", "localhost:9", "127.0.0.1:80", "[::1]:80"])
def test_own_names_are_taken(server: StatusServer, host: str) -> None:
    assert ask(server, "/", host=host)[0] == 200


@pytest.mark.parametrize(
    "path", ["/x", "/../etc/passwd", "/%2e%2e/config.toml", "/config.toml", "//report.html", "/report.html?x"]
)
def test_unknown_paths(server: StatusServer, board: StatusBoard, tmp_path: Path, path: str) -> None:
    (tmp_path / "config.toml").write_text("secret")
    board.done(tmp_path)
    assert ask(server, path)[0] == 404


def test_finished_pages_are_shown_at_the_end_only(server: StatusServer, board: StatusBoard, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("<p>told</p>")
    (tmp_path / "audit.html").symlink_to("/etc/passwd")
    assert ask(server, "/report.html")[0] == 404
    board.done(tmp_path)
    status, headers, body = ask(server, "/report.html")
    assert (status, body) == (200, b"<p>told</p>")
    assert "sandbox" in headers["Content-Security-Policy"]
    assert ask(server, "/audit.html")[0] == 404


def test_it_stays_on_this_machine(board: StatusBoard) -> None:
    with pytest.raises(UserError, match="loopback"):
        StatusServer(board, 0, address="0.0.0.0")


def test_a_port_in_use_is_one_line(server: StatusServer, board: StatusBoard) -> None:
    assert server.url is not None
    with pytest.raises(UserError, match="cannot be at"):
        StatusServer(board, int(server.url.rstrip("/").rpartition(":")[2])).start()


def test_it_closes_quickly(board: StatusBoard) -> None:
    server = StatusServer(board, 0)
    server.start()
    ask(server, "/")
    before = time.monotonic()
    server.close()
    assert time.monotonic() - before < 2


def test_dropouts_are_read_from_the_servers_own_lines(board: StatusBoard) -> None:
    class Silent:
        class transport:
            @staticmethod
            def busy(party: PartyId) -> bool:
                return True

    people = Attendance([PartyId(1), PartyId(2), PartyId(3)], Patience.fixed(1.0), board.report)
    people.drop(Silent(), [PartyId(2)], 4, "masked input")  # type: ignore[arg-type]
    assert [peer.present for peer in board.snapshot().peers] == [True, False, True]


def test_the_page_is_well_formed(board: StatusBoard) -> None:
    page = Page(live_page(board.snapshot(), "n"))
    assert page.all("title")
    assert "Who learns what" in page.text
