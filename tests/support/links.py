"""Links over HTTPS between threads of one process: certificates of the real provisioning, servers, clients, proxies."""

import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import PartyId
from protocols.session.site_keys import fingerprint
from protocols.transport.https.client import HttpsClientTransport
from protocols.transport.https.limits import LinkLimits
from protocols.transport.https.server import HttpsServer
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.provisioning.coordinator import Coordinator
from secure_kg.provisioning.membership import member_of
from secure_kg.provisioning.request import parse_request, request_text
from secure_kg.provisioning.roster import Roster, load_roster
from secure_kg.provisioning.site_folder import SiteFolder
from secure_kg.provisioning.tls import client_tls, server_tls

FEDERATION = bytes(range(32))
QUICK = LinkLimits(
    heartbeat_seconds=0.2,
    silence_seconds=2.0,
    handshake_seconds=2.0,
    linger_seconds=1.0,
    absent_seconds=1.0,
    first_retry_seconds=0.02,
    longest_retry_seconds=0.2,
)
"""Fit for one machine, where nothing takes long."""


class Provisioned:
    """A coordinator that serves, and its sites."""

    def __init__(self, path: Path, sites: int = 2) -> None:
        self.coordinator = Coordinator.new(
            path / "coordinator", "Centre", "127.0.0.1:8443", RunConfig(strategy="fedr"), days=30, server=None
        )
        self.sites = {
            PartyId(number): SiteFolder.new(path / f"site{number}", f"Site {number}") for number in range(1, sites + 1)
        }
        requests = [
            parse_request(request_text(f"Site {number}", site.identity_pem, datetime.now(UTC)))
            for number, site in self.sites.items()
        ]
        self.coordinator = self.coordinator.publish(self.coordinator.approve(requests))

    @property
    def roster(self) -> Roster:
        return load_roster(self.coordinator.path, fingerprint(self.coordinator.site.identity))

    def server_tls(self) -> ssl.SSLContext:
        return server_tls(self.roster, self.coordinator.site.path)

    def client_tls(self, number: int) -> ssl.SSLContext:
        return client_tls(self.roster, self.sites[PartyId(number)].path)

    def revoke(self, number: int) -> None:
        self.coordinator = self.coordinator.publish(
            self.coordinator.revoke(self.coordinator.member(str(number)), certificates_only=False)
        )


class Links:
    """A server and the clients that a test makes; all are closed at its end."""

    def __init__(self, federation: Provisioned, limits: LinkLimits = QUICK, port: int = 0) -> None:
        self.federation, self.limits = federation, limits
        self.lines: list[str] = []
        self.open = ExitStack()
        self.server = HttpsServer(
            ("127.0.0.1", port),
            federation.server_tls(),
            member_of(federation.roster, federation.coordinator.path, report=self.lines.append),
            list(federation.sites),
            FEDERATION,
            limits,
        )
        self.server.notice = self.lines.append
        self.port = self.server.start()
        self.open.callback(self.server.close)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def client(self, number: int, **options: Any) -> HttpsClientTransport:
        chosen: dict[str, Any] = {"proxy": None, "limits": self.limits, "notice": self.lines.append} | options
        url = chosen.pop("url", self.url)
        tls = chosen.pop("tls", None) or self.federation.client_tls(number)
        party = chosen.pop("party", PartyId(number))
        return self.open.enter_context(
            HttpsClientTransport(url, tls, party, chosen.pop("federation", FEDERATION), **chosen)
        )

    def wait(self, *numbers: int, seconds: float = 20.0) -> None:
        wanted = {PartyId(number) for number in numbers}
        found = self.server.wait_for(wanted, Deadline.after(seconds))
        assert wanted <= found, (wanted, found, self.lines)


@contextmanager
def links(federation: Provisioned, limits: LinkLimits = QUICK, port: int = 0) -> Iterator[Links]:
    made = Links(federation, limits, port)
    with made.open:
        yield made


