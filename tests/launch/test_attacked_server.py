"""A server at work, with strangers and lying members at its port: each is refused in a line, and the run is as ever."""

import contextlib
import socket
import ssl
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from protocols.session.site_keys import leaf_in
from protocols.transport.https import pieces
from protocols.transport.https.channels import PATH
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.learning.config import TrainingConfig
from secure_kg.provisioning.site_folder import SiteFolder
from secure_kg.provisioning.tls import client_tls
from tests.support.hostile_links import UPGRADE, greeting, masked
from tests.support.organisations import Organisations, ended_well, organisations
from tests.support.stolen_certificate import show_without_key

SETTINGS: Final = RunConfig(
    dataset="nations", rounds=60, eval_every=10, checkpoint_every=10, patience=50, training=TrainingConfig(dim=4)
)
AT_WORK, LYING, REVOKED = (1, 2, 3), 4, 5
TWO_GIB: Final = 2 << 30
_ROOM_KB: Final = 64 << 10
REFUSALS: Final = (
    "http request (it speaks HTTP without TLS)",
    "unsupported protocol",
    "certificate verify failed (",
    "bad signature (it shows a certificate without having the key that belongs to it)",
    "member 5 (Site 5) was revoked",
    "refused a request of client 4: it announced a body of 2,147,483,648 bytes",
    "refused a connection of client 4: it announced a message larger than any piece",
    "client 4 is cut off: it announced a frame of 2,147,483,648 bytes",
)


def says(place: Organisations, tls: ssl.SSLContext | None, *words: bytes) -> None:
    """Over a connection of its own, until the server hangs up."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", place.port), 60) as plain:
        connection = tls.wrap_socket(plain) if tls is not None else plain
        for one in words:
            connection.sendall(one)
            if one == UPGRADE:
                connection.recv(1 << 12)
        while connection.recv(1 << 16):
            pass


def attack(place: Organisations, revoked: ssl.SSLContext) -> None:
    roster = place.coordinator.roster
    lying, old = (client_tls(roster, place.path / f"site{LYING}") for _ in range(2))
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_2
    stranger = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    stranger.check_hostname, stranger.verify_mode = False, ssl.CERT_NONE
    stranger.load_cert_chain(SiteFolder.new(place.path / "stranger", "Stranger").leaf_file("client"))
    upload = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {TWO_GIB}\r\n\r\n".encode()
    announced = struct.pack("<BQQ", pieces.Kind.BEGIN, 1, TWO_GIB)
    says(place, None, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    says(place, None, b"\x16\x03\x01\xff\xff" + bytes(200))
    says(place, stranger, UPGRADE)
    says(place, old)
    show_without_key(place.port, leaf_in((place.path / f"site{AT_WORK[0]}/tls-client.pem").read_bytes()))
    says(place, revoked, UPGRADE, masked(greeting(REVOKED, federation=roster.digest)))
    says(place, lying, upload)
    says(place, lying, UPGRADE, masked(b"", announced=TWO_GIB))
    says(place, lying, UPGRADE, masked(greeting(LYING, federation=roster.digest)) + masked(announced))


def run(path: Path, meanwhile: Callable[[Organisations, ssl.SSLContext], None]) -> tuple[dict[str, Any], str, int]:
    """The summary of a run of three members out of five, the server's lines, and its most memory so far in kB."""
    with organisations(path, SETTINGS, members=REVOKED) as place:
        coordinator = place.coordinator
        member = coordinator.roster.members[REVOKED - 1]
        revoked = client_tls(coordinator.roster, place.path / f"site{REVOKED}")
        place.coordinator = coordinator.publish(coordinator.revoke(member, certificates_only=False))
        server = place.serve("--wait", "10")
        members = [place.join(number) for number in AT_WORK]
        server.wait_to_say("round   10/60")
        meanwhile(place, revoked)
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        ended_well([server, *members])
        return place.summary(), server.text, int(status.partition("VmHWM:")[2].split()[0])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_run_under_attack_ends_as_an_undisturbed_one(tmp_path: Path) -> None:
    usual, _, memory = run(tmp_path / "undisturbed", lambda place, revoked: None)
    found, lines, most = run(tmp_path / "attacked", attack)
    for figure in ("mrr", "dropouts", "abandoned_sums", "rounds"):
        assert found[figure] == usual[figure], lines
    assert most < memory + _ROOM_KB
    assert sum("refused" in line or "cut off" in line for line in lines.splitlines()) <= len(REFUSALS) + 1, lines
    for words in REFUSALS:
        assert sum(words in line for line in lines.splitlines()) == 1, (words, lines)
