"""Accepting connections: who may be in a handshake, for how long, and how many of one member there may be.

A stranger costs a socket, a TLS handshake in progress, and no more: OpenSSL refuses it before any HTTP is read. The
number of handshakes is bounded; when one too many begins, the oldest of the address with the most is ended, so that an
attacker with few addresses ends its own.
"""

import asyncio
import contextlib
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from typing import Final

from aiohttp import web

from protocols.foundation.identifiers import PartyId
from protocols.transport.https.limits import LinkLimits

_PAUSE_SECONDS = 0.1
_TOLD: Final = {
    "BAD_SIGNATURE": "it shows a certificate without having the key that belongs to it",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it shows no certificate",
    "HTTP_REQUEST": "it speaks HTTP without TLS",
}
"""What OpenSSL says in words that do not say who did what."""
Tell = Callable[[str, str], None]
"""Kind of what happened, and one line about it: of a kind only the first is told for a while."""


def certificate_of(transport: asyncio.BaseTransport | None) -> bytes:
    """DER of the certificate of a connection's peer; empty if it has none."""
    connection = transport.get_extra_info("ssl_object") if transport is not None else None
    return (connection.getpeercert(True) or b"") if connection is not None else b""


class Door:
    """Hands connections that have finished TLS to an HTTP server."""

    def __init__(
        self,
        http: web.Server,
        tls: ssl.SSLContext,
        member_of: Callable[[bytes], PartyId | None],
        limits: LinkLimits,
        tell: Tell,
    ) -> None:
        self._http, self._tls, self._member_of, self._limits, self._tell = http, tls, member_of, limits, tell
        self._handshakes: dict[asyncio.Task[None], str] = {}
        self._open: dict[PartyId | None, list[asyncio.Transport]] = {}
        self._unasked = set[asyncio.BaseTransport]()

    async def accept(self, listening: socket.socket) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(listening)
            except OSError as problem:  # no descriptor left: there will be one again
                self._tell("accept", f"cannot accept connections for the moment: {problem.strerror}")
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            if len(self._handshakes) >= self._limits.handshakes:
                self._end_oldest()
            task = asyncio.create_task(self._shake_hands(accepted, str(address[0])))
            self._handshakes[task] = str(address[0])
            task.add_done_callback(lambda done: self._handshakes.pop(done, None))

    def asked(self, transport: asyncio.BaseTransport | None) -> None:
        """A request has come over this connection."""
        if transport is not None:
            self._unasked.discard(transport)

    def close(self) -> None:
        for task in list(self._handshakes):
            task.cancel()
        for transports in self._open.values():
            for transport in transports:
                transport.abort()

    def _end_oldest(self) -> None:
        most, _ = Counter(self._handshakes.values()).most_common(1)[0]
        oldest = next(task for task, address in self._handshakes.items() if address == most)
        del self._handshakes[oldest]
        oldest.cancel()
        self._tell("crowd", f"more than {self._limits.handshakes} handshakes at once; the oldest of {most} was ended")

    async def _shake_hands(self, accepted: socket.socket, address: str) -> None:
        loop = asyncio.get_running_loop()
        accepted.setblocking(False)
        with contextlib.suppress(OSError):
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        seconds = self._limits.handshake_seconds
        try:
            async with asyncio.timeout(seconds):
                transport, _ = await loop.connect_accepted_socket(
                    self._http, accepted, ssl=self._tls, ssl_handshake_timeout=seconds
                )
        except TimeoutError:
            self._tell("slow", f"refused a connection from {address}: no TLS handshake within {seconds:g} s")
        except ssl.SSLError as problem:
            reason = _reason(problem)
            self._tell(f"tls {reason}", f"refused a connection from {address}: {reason}")
        except OSError:
            self._tell("broken", f"a connection from {address} broke off in its TLS handshake")
        else:
            self._admit(transport)
            return
        accepted.close()

    def _admit(self, transport: asyncio.Transport) -> None:
        """A connection of somebody with a certificate. Nobody may have many, or one in which nothing is asked."""
        party = self._member_of(certificate_of(transport))
        ours = [one for one in self._open.get(party, []) if not one.is_closing()]
        self._open[party] = [*ours, transport]
        if len(ours) >= self._limits.connections_per_member:
            whose = "of certificates that let nobody in" if party is None else f"of client {party}"
            self._tell(f"many {party}", f"more than {len(ours)} connections {whose}; the oldest was ended")
            ours[0].abort()
        self._unasked.add(transport)
        asyncio.get_running_loop().call_later(self._limits.handshake_seconds, self._end_if_silent, transport)

    def _end_if_silent(self, transport: asyncio.Transport) -> None:
        if transport in self._unasked:
            self._unasked.discard(transport)
            transport.abort()


def _reason(problem: ssl.SSLError) -> str:
    """In one line. Why a certificate did not hold is OpenSSL's word; whose it was it does not tell."""
    reason = (problem.reason or "TLS failed").replace("_", " ").lower()
    more = _TOLD.get(problem.reason or "") or getattr(problem, "verify_message", "")
    return f"{reason} ({more})" if more else reason
