"""What the server answers to HTTP requests: links by WebSocket and by long polls, and nothing else.

Every request is authenticated for itself: by the certificate of the connection that it came on, as the newest roster
sees it.
"""

import asyncio
import logging
import secrets
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from protocols.foundation.errors import DecodeError, PeerLost, ProtocolError
from protocols.foundation.identifiers import PartyId
from protocols.transport.base import party_names
from protocols.transport.https import pieces, polling
from protocols.transport.https.channels import PATH, Channel, ChannelClosed, Unreadable, WebSocketChannel
from protocols.transport.https.connection import Connection
from protocols.transport.https.door import Door, certificate_of
from protocols.transport.https.limits import LinkLimits
from protocols.transport.https.notices import Notices
from protocols.transport.https.registry import ClientLink, RefusedClient, Registry

_LARGEST_HEADER: Final = 4096
_MOST_HEADERS: Final = 40
_POLLS_OF_A_MEMBER: Final = 8
_LARGEST_OF_A_STRANGER: Final = 256
"""Bytes of a body or message of a certificate that lets nobody in: enough for a greeting, which hears why."""
_NOT_A_MEMBER: Final = pieces.Refused(
    pieces.Reason.NOT_A_MEMBER, "the server does not take this site's certificate: unknown, expired or revoked"
)
_LOGGER: Final = logging.getLogger("protocols.transport.https")
"""Silent: what peers send must not fill logs. What is worth a line is told by `Notices`."""
_LOGGER.propagate = False
_LOGGER.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class _ClientEndings:
    """What the end of a client's link means to the server: a dropout, whatever it was, and never an end for others."""

    party: PartyId
    notices: Notices

    def ended(self) -> ProtocolError:
        return self._lost("has ended")

    def refused(self, refusal: pieces.Refused) -> ProtocolError:
        return self._lost(f"refuses this server: {refusal.text}")

    def misbehaved(self, what: str) -> ProtocolError:
        self.notices.tell(f"misbehaved {self.party}", f"{party_names([self.party])} is cut off: it {what}")
        return self._lost(f"is cut off: it {what}")

    def _lost(self, how: str) -> ProtocolError:
        return PeerLost(f"{party_names([self.party])} {how}", self.party)


class Reception:
    """On the server's loop."""

    def __init__(
        self,
        registry: Registry,
        tls: ssl.SSLContext,
        member_of: Callable[[bytes], PartyId | None],
        limits: LinkLimits,
        notice: Callable[[str], None],
    ) -> None:
        self._registry, self._member_of, self._limits = registry, member_of, limits
        self._notices = Notices(notice)
        self._http = web.Server(
            self._answer,
            logger=_LOGGER,
            access_log=None,
            max_line_size=_LARGEST_HEADER,
            max_field_size=_LARGEST_HEADER,
            max_headers=_MOST_HEADERS,
            keepalive_timeout=limits.silence_seconds,
            lingering_time=0,
            auto_decompress=False,
        )
        self._door = Door(self._http, tls, member_of, limits, self._notices.tell)
        self._polls: dict[tuple[PartyId, str], polling.ServedPolls] = {}
        self._tasks = set[asyncio.Task[None]]()

    def open(self, listening: socket.socket) -> None:
        self._listening = listening
        self._begin(self._door.accept(listening))

    async def close(self) -> None:
        self._listening.close()
        self._door.close()
        for task in list(self._tasks):
            task.cancel()
        await self._http.shutdown(timeout=self._limits.linger_seconds / 2)

    def _begin(self, work: "asyncio._CoroutineLike[None]") -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self._door.asked(request.transport)
        leaf = certificate_of(request.transport)
        party = self._member_of(leaf)
        if request.path == PATH and request.method == "GET":
            return await self._web_socket(request, party, leaf)
        if request.path.startswith(PATH) and request.method == "POST":
            return await self._poll(request, party, leaf)
        return web.Response(status=404 if party is not None else 403)  # a member that checks its way is told which

    async def _web_socket(self, request: web.BaseRequest, party: PartyId | None, leaf: bytes) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() != "websocket":
            return web.Response(status=426)  # somebody in between has taken it out: the client goes on by long polls
        most = pieces.LARGEST_PIECE + 1 if party is not None else _LARGEST_OF_A_STRANGER
        socket = web.WebSocketResponse(compress=False, max_msg_size=most, autoping=True, timeout=1.0)
        async with asyncio.timeout(self._limits.handshake_seconds):
            await socket.prepare(request)
        await self._serve(WebSocketChannel(socket), party, leaf)
        return socket

    async def _serve(self, channel: Channel, party: PartyId | None, leaf: bytes) -> None:
        """One connection, from its greeting to its end."""
        try:
            client, connection = await self._greeted(channel, party)
        except RefusedClient as refused:
            await self._refuse(channel, party, refused.refusal)
            return
        except (ChannelClosed, TimeoutError):
            return
        try:
            with self._registry.guard:
                words = self._registry.welcome(client)
                self._registry.guard.notify_all()
            await channel.send(pieces.welcome(words))
            await connection.run(lambda: self._still_refused(client, leaf))
        except ChannelClosed:
            return
        finally:
            connection.attached = False
            with self._registry.guard:
                client.left_at = time.monotonic()
                self._registry.guard.notify_all()

    async def _greeted(self, channel: Channel, party: PartyId | None) -> tuple[ClientLink, Connection]:
        try:
            async with asyncio.timeout(self._limits.handshake_seconds):
                greeting = await channel.receive()
        except Unreadable as problem:
            raise RefusedClient(pieces.Reason.MISBEHAVED, f"it {problem}") from None
        if party is None:
            raise RefusedClient(_NOT_A_MEMBER.reason, _NOT_A_MEMBER.text)
        try:
            hello = pieces.decode(greeting)
        except DecodeError:
            hello = None
        if not isinstance(hello, pieces.Hello):
            raise RefusedClient(pieces.Reason.MISBEHAVED, "not a greeting of this software")
        with self._registry.guard:
            client = self._registry.admit(party, hello)
            endings = _ClientEndings(party, self._notices)
            connection = Connection(client.link, channel, self._registry.guard, self._limits, endings)
            client.connection = connection
        return client, connection

    def _still_refused(self, client: ClientLink, leaf: bytes) -> pieces.Refused | None:
        """Asked with every heartbeat: a member that was revoked meanwhile is cut off."""
        if self._member_of(leaf) == client.party:
            return None
        name = party_names([client.party])
        with self._registry.guard:
            client.link.end(PeerLost(f"{name} is no member any more", client.party))
            self._registry.guard.notify_all()
        self._notices.tell(f"cut {client.party}", f"{name} is cut off: it is no member any more")
        return _NOT_A_MEMBER

    async def _refuse(self, channel: Channel, party: PartyId | None, refusal: pieces.Refused) -> None:
        if party is not None:  # of certificates that let nobody in, `member_of` tells
            who = party_names([party])
            told = f"refused a connection of {who}: {refusal.text}"
            if refusal.reason is pieces.Reason.RESTARTED:  # its process has outlived this server's, and begins a link
                told = f"{who} belongs to the session before the restart; it comes again"
            self._notices.tell(f"refused {party} {refusal.reason}", told)
        try:
            async with asyncio.timeout(self._limits.handshake_seconds):
                await channel.send(pieces.refused(refusal.reason, refusal.text))
                await channel.close()
        except (ChannelClosed, TimeoutError):
            return

    async def _poll(self, request: web.BaseRequest, party: PartyId | None, leaf: bytes) -> web.StreamResponse:
        length, most = request.content_length, polling.LARGEST_BODY if party is not None else _LARGEST_OF_A_STRANGER
        if length is None or length > most:
            size = "unknown length" if length is None else f"{length:,} bytes"
            self._tell_bad_body(party, f"announced a body of {size}")
            return web.Response(status=413)
        try:
            async with asyncio.timeout(self._limits.silence_seconds):
                arrived = await polling.read_pieces(request.content, length)
        except TimeoutError:
            self._tell_bad_body(party, f"did not send all of a body within {self._limits.silence_seconds:g} s")
            return web.Response(status=400)
        except polling.BadBody as problem:
            self._tell_bad_body(party, f"sent {problem}")
            return web.Response(status=400)
        if request.path == PATH:
            return await self._open_poll(party, leaf, arrived)
        name, _, direction = request.path.removeprefix(PATH + "/").partition("/")
        channel = self._polls.get((party, name)) if party is not None else None
        if channel is None or direction not in ("up", "down"):
            return web.Response(status=410)
        if direction == "up":
            if channel.closed:
                return web.Response(status=410)
            try:
                async with asyncio.timeout(self._limits.silence_seconds):
                    await channel.feed(arrived)
            except TimeoutError:
                return web.Response(status=410)
            return web.Response(body=b"")
        return self._told(await channel.collect(self._limits.heartbeat_seconds))

    def _tell_bad_body(self, party: PartyId | None, what: str) -> None:
        if party is not None:  # of certificates that let nobody in, `member_of` tells
            self._notices.tell(f"body {party}", f"refused a request of {party_names([party])}: it {what}")

    async def _open_poll(self, party: PartyId | None, leaf: bytes, arrived: list[bytes]) -> web.StreamResponse:
        if party is None:
            return web.Response(
                body=polling.joined([pieces.refused(_NOT_A_MEMBER.reason, _NOT_A_MEMBER.text)]),
                headers={polling.CHANNEL_HEADER: "0" * 2 * polling.NAME_BYTES},
            )
        if len(arrived) != 1 or not self._has_room_for_poll(party):
            return web.Response(status=429)
        name, channel = secrets.token_hex(polling.NAME_BYTES), polling.ServedPolls()
        self._polls[party, name] = channel
        await channel.feed(arrived)
        self._begin(self._serve_poll(channel, (party, name), leaf))
        answer = self._told(await channel.collect(self._limits.handshake_seconds))
        answer.headers[polling.CHANNEL_HEADER] = name
        return answer

    def _has_room_for_poll(self, party: PartyId) -> bool:
        """Whether a member may have one more channel. The oldest that are over make room: they are kept for their last
        pieces only, and these may be large."""
        ours = [(key, channel) for key, channel in self._polls.items() if key[0] == party]
        over = [key for key, channel in ours if channel.closed]
        for key in over[: max(0, len(ours) - _POLLS_OF_A_MEMBER + 1)]:
            del self._polls[key]
        return len(ours) - len(over) < _POLLS_OF_A_MEMBER

    async def _serve_poll(self, channel: polling.ServedPolls, key: tuple[PartyId, str], leaf: bytes) -> None:
        try:
            await self._serve(channel, key[0], leaf)
        finally:
            await channel.close()
            # The last pieces are fetched by a request that is on its way.
            asyncio.get_running_loop().call_later(
                self._limits.linger_seconds, lambda: self._polls.pop(key, None)
            )  # fmt: skip

    def _told(self, body: bytes | None) -> web.Response:
        return web.Response(status=410) if body is None else web.Response(body=body)
