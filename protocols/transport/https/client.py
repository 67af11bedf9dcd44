"""A client's end: one object is one incarnation, which connects and reconnects by itself for as long as it is open.

Parties:      a client with a TLS key, and the server whose identity the client's TLS context pins.
Adversary:    whoever sits between, proxies included; the server, beyond what it may do as the protocols' server.
Keeps:        frames arrive once and in order. No other server than the pinned one is spoken to, and nothing but TLS.
Bounded:      memory as `inbox` states; every wait.
Not covered:  who speaks with whom, when and how much; a proxy that ends TLS: client certificates cannot work there, and
              the connection is refused.
"""

import asyncio
import secrets
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Final, TypedDict, Unpack

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import LinkRefused, PeerLost, PeerMisbehaved, ProtocolError
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.foundation.wire import Frame
from protocols.transport.base import Transport
from protocols.transport.https import pieces
from protocols.transport.https.dialling import MODES, Dialler, Mode
from protocols.transport.https.limits import LinkLimits
from protocols.transport.https.link import Link
from protocols.transport.https.loop_thread import LoopThread
from protocols.transport.https.notices import Notices
from protocols.transport.https.proxies import ENVIRONMENT, proxy_for
from protocols.transport.https.redialling import Incarnation, Redialler
from protocols.transport.https.refusals import Hopeless

_LOST: Final = (pieces.Reason.RESTARTED, pieces.Reason.ENDED)
_STOLEN: Final = (
    "; if that was not this site, somebody has copied its key: let the coordinator revoke it at once (federation "
    "revoke; docs/guides/across-organisations.md, Changes)"
)


class ClientOptions(TypedDict, total=False):
    """What a client may choose."""

    proxy: str | None
    """A proxy's URL, None for none; by default the environment variables https_proxy, all_proxy and no_proxy decide."""
    limits: LinkLimits
    notice: Callable[[str], None]
    """Gets one line when the link goes down, and when it is back; of each kind one a minute at most."""
    mode: Mode
    """`websocket`, `poll`, or `auto`: long polls once somebody has not let a WebSocket through."""


class _ServerEndings:
    """What the end of the link means to a client."""

    def ended(self) -> ProtocolError:
        return PeerLost("the server has ended the session", SERVER)

    def refused(self, refusal: pieces.Refused) -> ProtocolError:
        if refusal.reason in _LOST:
            return PeerLost(refusal.text, SERVER)
        advice = _STOLEN if refusal.reason is pieces.Reason.SUPERSEDED else ""
        return LinkRefused(f"the server refuses this site: {refusal.text}{advice}")

    def misbehaved(self, what: str) -> ProtocolError:
        return PeerMisbehaved(f"the server {what}")


class HttpsClientTransport(Transport):
    """A client's link to its server, from now until `close`.

    `LinkRefused` if trying again cannot help (not a member, another federation, TLS trust). `PeerLost` when the server
    was restarted or has ended this client's epoch: close this object, and make another one.
    """

    def __init__(
        self, url: str, tls: ssl.SSLContext, party: PartyId, federation: bytes, **options: Unpack[ClientOptions]
    ) -> None:
        """`url`: https://host[:port]. `federation`: 32 bytes that both ends must agree on."""
        parts = urllib.parse.urlsplit(url)
        if parts.scheme != "https" or parts.path not in ("", "/") or "@" in parts.netloc or not parts.hostname:
            raise ValueError("the server's URL must be https://HOST or https://HOST:PORT")
        if len(federation) != pieces.FEDERATION_BYTES:
            raise ValueError(f"a federation is named by {pieces.FEDERATION_BYTES} bytes")
        if options.get("mode", "auto") not in MODES:
            raise ValueError(f"the mode must be one of {', '.join(MODES)}")
        super().__init__(party, [SERVER])
        self._limits = options.get("limits", LinkLimits())
        self._guard = threading.Condition()
        self._link = Link(self._limits)
        self._closed = False
        url = url.rstrip("/")
        self._thread: LoopThread | None = None
        try:
            proxy = proxy_for(url, options.get("proxy", ENVIRONMENT))
        except Hopeless as problem:
            self._link.end(LinkRefused(str(problem)))
            return
        incarnation = Incarnation(party, federation, secrets.token_bytes(pieces.INCARNATION_BYTES))
        dialler = Dialler(url, tls, proxy, options.get("mode", "auto"), self._limits)
        self._redialler = Redialler(incarnation, dialler, self._link, self._guard, self._limits, _ServerEndings())
        if "notice" in options:  # a server that takes its clients up and drops them fills no log
            notices = Notices(options["notice"])
            self._redialler.notice = lambda line: notices.tell(line, line)
        self._thread = LoopThread(f"https client {party}")
        self._thread.begin(self._redialler.run())

    @property
    def linked(self) -> bool:
        """Whether there is a live connection now."""
        return self._thread is not None and self._redialler.linked

    def busy(self, to: PartyId) -> bool:
        with self._guard:
            return self._link.ended is None and self._link.outbox.full

    def flush(self, deadline: Deadline) -> None:
        """Until the server has acknowledged everything."""
        self.release()
        with self._guard:
            while self._link.ended is None and not self._link.outbox.empty and not deadline.expired:
                self._guard.wait(min(deadline.remaining(), threading.TIMEOUT_MAX))

    def close(self) -> None:
        """Let what was sent last arrive, for some seconds. Idempotent."""
        super().close()
        if self._closed:
            return
        self._closed = True
        if self._thread is None:
            return
        deadline = Deadline.after(self._limits.linger_seconds)
        with self._guard:
            self._link.closing = True
        self._redialler.wake()
        with self._guard:
            while self._owed and not deadline.expired:
                self._guard.wait(deadline.remaining())
        with suppress(TimeoutError, asyncio.CancelledError, RuntimeError):
            self._thread.call(self._redialler.close(), self._limits.linger_seconds)
        self._thread.stop()

    @property
    def _owed(self) -> bool:
        """Whether the server lacks a frame, or a connected one the word that nothing more comes."""
        if self._link.ended is not None:
            return False
        return not self._link.outbox.empty or (self._redialler.linked and not self._link.drained)

    def _post(self, to: PartyId, frame: Frame) -> None:
        if to != SERVER:
            raise PeerLost(f"party {self.party} has no connection to party {to}", to)
        deadline = Deadline.after(self._limits.send_seconds)
        with self._guard:
            while self._link.ended is None and self._link.outbox.full:
                if deadline.expired:
                    raise PeerLost("the server has not taken an earlier message", SERVER)
                self._guard.wait(min(deadline.remaining(), threading.TIMEOUT_MAX))
            if self._link.ended is not None:
                raise self._link.ended.with_traceback(None)
            if self._closed:
                raise PeerLost("this end is closed", SERVER)
            self._link.post(frame)
        self._redialler.wake()

    def _take(self, senders: Collection[PartyId], deadline: Deadline) -> tuple[PartyId, Frame] | None:
        inbox = self._link.inbox
        with self._guard:
            while SERVER in senders:
                if (frame := inbox.pop()) is not None:
                    if self._link.credit_is_due:
                        self._redialler.wake()
                    return SERVER, frame
                if inbox.arriving is not None:
                    self._make_room(inbox.arriving)
                if self._link.ended is not None:
                    raise self._link.ended.with_traceback(None)
                if deadline.expired:
                    return None
                self._guard.wait(min(deadline.remaining(), threading.TIMEOUT_MAX))
        return None

    def _make_room(self, size: int) -> None:
        """For a frame that is arriving; it is refused before its bytes have come if it is too large."""
        if size > self._limit:
            self._link.inbox.discard()
            self._redialler.wake()
            self._require_within_limit(SERVER, size)
        if self._link.inbox.allow(self._limit):
            self._redialler.wake()
