"""Which link a client's connection belongs to, at the server. It opens no connection itself.

Rules, all under the registry's lock:

- A certificate says who the client is; what it claims is only compared with that.
- An incarnation that is not known becomes the newest of its member. The one before it is lost at once, also in the
  middle of an epoch, so that a copied certificate cannot be used beside its owner's unnoticed.
- A client that has been welcomed here before, and whose incarnation is not the newest, was superseded.
- A client that was welcomed by another server process is told so: that one's links have gone with it.
- Of one incarnation's connections the one with the highest number counts, in whatever order they arrive.
"""

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from protocols.foundation.errors import PeerLost, PeerMisbehaved
from protocols.foundation.identifiers import PartyId
from protocols.transport.base import party_names
from protocols.transport.https.connection import Connection
from protocols.transport.https.limits import LinkLimits
from protocols.transport.https.link import Link
from protocols.transport.https.pieces import UNKNOWN, VERSION, Hello, Reason, Refused, Welcome


@dataclass(eq=False, slots=True)
class ClientLink:
    """The server's end of one incarnation of one client."""

    party: PartyId
    incarnation: bytes
    link: Link
    epoch: object | None = None
    """The transport that has it; None: it waits for the next one."""
    connection: Connection | None = None
    left_at: float = 0.0
    """When its last connection ended."""

    @property
    def connected(self) -> bool:
        return self.connection is not None and self.connection.attached

    def present(self, seconds: float) -> bool:
        """Whether its process may still be there: connected, or so short a time ago that it may be on its way back."""
        return self.link.ended is None and (self.connected or time.monotonic() - self.left_at < seconds)

    def wake(self) -> None:
        """There is something to send."""
        if self.connection is not None:
            self.connection.wake()

    def cut_off(self, why: str) -> None:
        """End the link at once, and say why. What has come over it and was not read is forgotten."""
        self.link.inbox.clear()
        self.link.end(PeerLost(f"{party_names([self.party])} is cut off: {why}", self.party))
        if self.connection is not None:
            self.connection.refuse(Refused(Reason.MISBEHAVED, why))

    def end_soon(self) -> None:
        """Send what is left, then say that nothing more comes."""
        self.link.closing = True
        self.wake()


class RefusedClient(Exception):
    """A greeting that is answered with a refusal."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.refusal = Refused(reason, text)


class Registry:
    """The newest incarnation of every member."""

    def __init__(self, federation: bytes, incarnation: bytes, peers: Collection[PartyId], limits: LinkLimits) -> None:
        self._federation, self._incarnation, self._limits = federation, incarnation, limits
        self.peers = frozenset(peers)
        self.guard = threading.Condition()
        """Held by whoever reads or changes anything here or in a link; notified when something has changed."""
        self.newest: dict[PartyId, ClientLink] = {}
        self.came: Callable[[ClientLink], None] = lambda client: None
        """Told, under the lock, of every new incarnation."""

    def waiting(self) -> frozenset[PartyId]:
        """Members whose newest incarnation is in no epoch, and is connected or has been a moment ago."""
        seconds = self._limits.absent_seconds
        return frozenset(
            party for party, client in self.newest.items() if client.epoch is None and client.present(seconds)
        )

    def admit(self, party: PartyId, hello: Hello) -> ClientLink:
        """The link of a greeting; `RefusedClient` for one that has none. Nothing of a refused greeting is applied."""
        self._check(party, hello)
        known = self.newest.get(party)
        if known is not None and known.incarnation == hello.incarnation:
            self._resume(known, hello)
            return known
        if hello.server == self._incarnation:
            raise RefusedClient(
                Reason.SUPERSEDED, f"another process has connected with the certificate of {party_names([party])}"
            )
        return self._new(party, hello, known)

    def welcome(self, client: ClientLink) -> Welcome:
        received, granted = client.link.greet()
        return Welcome(self._federation, self._incarnation, received, granted)

    def _check(self, party: PartyId, hello: Hello) -> None:
        if party not in self.peers:
            raise RefusedClient(Reason.NOT_A_MEMBER, "this server does not serve that member")
        if hello.version != VERSION:
            raise RefusedClient(Reason.OTHER_VERSION, f"the server speaks version {VERSION} of the link")
        if hello.federation != self._federation:
            raise RefusedClient(Reason.OTHER_FEDERATION, "this server serves another federation")
        if hello.party != party:
            raise RefusedClient(Reason.OTHER_PARTY, "the certificate is that of another member")
        if hello.server not in (UNKNOWN, self._incarnation):
            raise RefusedClient(Reason.RESTARTED, "the server was restarted")

    def _resume(self, known: ClientLink, hello: Hello) -> None:
        if hello.attempt <= known.link.attempt:
            raise RefusedClient(Reason.STALE, "a newer connection of the same process came before")
        if known.link.ended is not None:
            raise RefusedClient(Reason.ENDED, "the server has ended this link")
        try:
            known.link.resume(hello.received, hello.granted)
        except PeerMisbehaved as problem:
            raise RefusedClient(Reason.MISBEHAVED, str(problem)) from None
        known.link.attempt = hello.attempt
        if known.connection is not None:
            known.connection.detach()

    def _new(self, party: PartyId, hello: Hello, known: ClientLink | None) -> ClientLink:
        if (hello.received, hello.server) != (0, UNKNOWN):
            raise RefusedClient(Reason.MISBEHAVED, "a first greeting cannot have received anything")
        link = Link(self._limits)
        link.attempt = hello.attempt
        link.resume(0, hello.granted)
        client = ClientLink(party, hello.incarnation, link)
        if known is not None:
            known.link.end(PeerLost(f"{party_names([party])} was restarted", party))
            if known.connection is not None:
                known.connection.detach(
                    Refused(Reason.SUPERSEDED, "another process has connected with the same certificate")
                )
        self.newest[party] = client
        self.came(client)
        return client
