"""The server's end of all links: an HTTPS server in a thread, which lives as long as the process serves.

Parties:      a server; members that hold TLS keys certified by identities that the server was told of.
Adversary:    whoever can reach the port or sits between; members, beyond what they may do as clients.
Keeps:        frames between each member and the server arrive once, in order, and unread by others (TLS 1.3 both ways).
              Nobody without the key of a member, or of one that was revoked, gets beyond the TLS handshake. A member
              speaks in its own name only; one that was revoked hears that it is refused.
Reveals:      to the network: addresses, times and sizes of messages.
Bounded:      per member the memory that `inbox` states, one window of frames on their way, and a few connections with
              some pieces in each; of strangers a number of handshakes, each for some seconds.
Not covered:  a flood that fills the line or the processor; a member's own mistakes with its key.
"""

import asyncio
import errno
import secrets
import socket
import ssl
import threading
from collections.abc import Callable, Collection
from contextlib import suppress

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import TransportError
from protocols.foundation.identifiers import PartyId
from protocols.transport.https.limits import LinkLimits
from protocols.transport.https.loop_thread import LoopThread
from protocols.transport.https.pieces import FEDERATION_BYTES, INCARNATION_BYTES
from protocols.transport.https.reception import Reception
from protocols.transport.https.registry import ClientLink, Registry
from protocols.transport.https.server_transport import HttpsServerTransport

_BACKLOG = 128
_START_SECONDS = 30.0


class HttpsServer:
    """Listens from `start` to `close`; `transport` begins an epoch, which is one session of the protocols."""

    notice: Callable[[str], None] = staticmethod(lambda line: None)
    """Gets one line for each kind of refusal or trouble, at most once a minute; set it before `start`."""

    def __init__(
        self,
        listen: tuple[str, int],
        tls: ssl.SSLContext,
        member_of: Callable[[bytes], PartyId | None],
        peers: Collection[PartyId],
        federation: bytes,
        limits: LinkLimits = LinkLimits(),  # noqa: B008  frozen
    ) -> None:
        """`member_of`: DER of a peer's certificate -> member, None to refuse; called on the server's own thread only.

        `federation`: bytes that both ends must agree on. `peers`: the members that may connect.
        """
        if len(federation) != FEDERATION_BYTES:
            raise ValueError(f"a federation is named by {FEDERATION_BYTES} bytes")
        self._listen, self._tls, self._member_of, self._limits = listen, tls, member_of, limits
        self._registry = Registry(federation, secrets.token_bytes(INCARNATION_BYTES), peers, limits)
        self._registry.came = self._came
        self._guard = self._registry.guard
        self._thread: LoopThread | None = None
        self._reception: Reception | None = None
        self._epoch: HttpsServerTransport | None = None
        self._closed = False

    def start(self) -> int:
        """The port at which the server listens from now on; `TransportError` if it cannot."""
        if self._thread is not None or self._closed:
            raise RuntimeError("a server starts once")
        listening = _listening(*self._listen)
        self._thread = LoopThread("https server")
        port: int = listening.getsockname()[1]
        self._thread.call(self._begin(listening), _START_SECONDS)
        return port

    async def _begin(self, listening: socket.socket) -> None:
        self._reception = Reception(self._registry, self._tls, self._member_of, self._limits, self.notice)
        self._reception.open(listening)

    def linked(self) -> frozenset[PartyId]:
        """Parties with a live connection now."""
        with self._guard:
            return frozenset(party for party, client in self._registry.newest.items() if client.connected)

    def waiting(self) -> frozenset[PartyId]:
        """Parties with an incarnation that is in no epoch yet."""
        with self._guard:
            return self._registry.waiting()

    def wait_for(self, parties: Collection[PartyId], deadline: Deadline) -> frozenset[PartyId]:
        """`waiting()` as soon as it includes all of `parties`, or at the deadline."""
        wanted = frozenset(parties)
        with self._guard:
            while not wanted <= (found := self._registry.waiting()) and not deadline.expired and not self._closed:
                self._guard.wait(min(deadline.remaining(), threading.TIMEOUT_MAX))
            return found

    def transport(self) -> HttpsServerTransport:
        """The next epoch, with the newest incarnation of everybody who waits; the one before it has ended."""
        if self._thread is None or self._closed:
            raise TransportError("the server is not open")
        if self._epoch is not None:
            self._epoch.close()
        epoch = HttpsServerTransport(self._registry, self._limits)
        with self._guard:
            for party in self._registry.waiting():
                epoch.adopt(self._registry.newest[party])
            self._epoch = epoch
        return epoch

    def close(self) -> None:
        """Let what was sent last arrive, for some seconds, then end all connections. Idempotent."""
        if self._closed:
            return
        if self._epoch is not None:
            self._epoch.close()
        with self._guard:
            for client in self._registry.newest.values():
                client.end_soon()
            deadline = Deadline.after(self._limits.linger_seconds)
            while not deadline.expired and any(
                client.connected and not client.link.drained for client in self._registry.newest.values()
            ):
                self._guard.wait(deadline.remaining())
            self._closed = True
            self._guard.notify_all()
        if self._thread is not None:
            if self._reception is not None:
                with suppress(TimeoutError, asyncio.CancelledError):
                    self._thread.call(self._reception.close(), self._limits.linger_seconds)
            self._thread.stop()

    def __enter__(self) -> "HttpsServer":
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _came(self, client: ClientLink) -> None:
        """Whoever comes first after the epoch has begun is in it; a restarted one waits for the next."""
        if self._epoch is not None:
            self._epoch.welcome(client)
        self._guard.notify_all()


def _listening(host: str, port: int) -> socket.socket:
    if not 0 <= port < 1 << 16:  # the system would take another one
        raise TransportError(f"cannot listen at {host}:{port}: no such port")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.socket(family[0], socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(family[4])
            listening.listen(_BACKLOG)
            listening.setblocking(False)
        except BaseException:
            listening.close()
            raise
    except (OSError, OverflowError, UnicodeError) as problem:
        what = problem.strerror if isinstance(problem, OSError) else "no address"
        if isinstance(problem, OSError) and problem.errno == errno.EADDRINUSE:
            what = f"{what}: another process listens there, perhaps this server started before; end that one first"
        raise TransportError(f"cannot listen at {host}:{port}: {what}") from None
    return listening
