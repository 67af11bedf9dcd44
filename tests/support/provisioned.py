"""A federation in a folder, and a live TLS server of it over plain sockets, which answers as the HTTPS server does."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

from protocols.session.site_keys import fingerprint
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.provisioning.coordinator import Coordinator
from secure_kg.provisioning.membership import member_of
from secure_kg.provisioning.request import Request, parse_request, request_text
from secure_kg.provisioning.roster import Roster, load_roster
from secure_kg.provisioning.site_folder import SiteFolder
from secure_kg.provisioning.tls import server_tls


def request_of(site: SiteFolder, name: str | None = None) -> Request:
    return parse_request(request_text(name or site.name, site.identity_pem, datetime.now(UTC)))


def rotation_of(site: SiteFolder) -> Request:
    return parse_request(request_text(site.name, site.next_identity(), datetime.now(UTC), site.identity_pem))


class Federation:
    """A coordinator that serves, and two sites."""

    def __init__(self, path: Path, address: str = "127.0.0.1:8443") -> None:
        self.coordinator = Coordinator.new(
            path / "coordinator", "Centre", address, RunConfig(strategy="fedr"), days=60, server=None
        )
        self.sites = [SiteFolder.new(path / f"site{number}", f"Site {number}") for number in (1, 2)]
        requests = [request_of(site) for site in self.sites]
        self.coordinator = self.coordinator.publish(self.coordinator.approve(requests))

    @property
    def pin(self) -> str:
        return fingerprint(self.coordinator.site.identity)

    @property
    def path(self) -> Path:
        return self.coordinator.path

    def roster(self) -> Roster:
        return load_roster(self.path, self.pin)

    def revoke(self, who: str, *, certificates_only: bool = False) -> None:
        member = self.coordinator.member(who)
        self.coordinator = self.coordinator.publish(
            self.coordinator.revoke(member, certificates_only=certificates_only)
        )


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def serving(
    federation: Federation, port: int = 0, ahead: Callable[[datetime], datetime] = lambda now: now
) -> Iterator[tuple[int, list[str]]]:
    """The port of a live server, and its log. It greets members by their number in a 404, and nobody else."""
    roster, lines = federation.roster(), list[str]()
    tls = server_tls(roster, federation.coordinator.site.path)
    number_of = member_of(roster, federation.path, tls=tls, report=lines.append)
    listener = socket.create_server(("127.0.0.1", port))
    listener.settimeout(0.05)
    ended = threading.Event()

    def one(plain: socket.socket) -> None:
        with suppress(OSError), tls.wrap_socket(plain, server_side=True) as secured:
            number = number_of(secured.getpeercert(True) or b"")
            secured.recv(4096)
            if number is not None:
                date = format_datetime(ahead(datetime.now(UTC)), usegmt=True)
                secured.sendall(f"HTTP/1.1 404 Not Found\r\nDate: {date}\r\nMember: {number}\r\n\r\n".encode())

    def accept() -> None:
        while not ended.is_set():
            try:
                plain, _ = listener.accept()
            except TimeoutError:
                continue
            plain.settimeout(5)
            one(plain)

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield listener.getsockname()[1], lines
    finally:
        ended.set()
        thread.join()
        listener.close()


def greeting(port: int, context: ssl.SSLContext) -> str:
    """What the server says to whoever comes with this context; empty if it hangs up."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as plain, context.wrap_socket(plain) as secured:
        secured.sendall(b"GET / HTTP/1.1\r\n\r\n")
        return secured.recv(4096).decode()
