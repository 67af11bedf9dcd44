"""Channels by long polls, for ways on which nobody lets WebSockets through.

Three kinds of request, all POST, each authenticated by its connection's certificate like every other::

    PATH               a greeting; answered with the first pieces and, in a header, the name of the channel
    PATH/<name>/up     pieces for the server, one request after the other
    PATH/<name>/down   answered with pieces for the client as soon as there are any, or with none after a while

A body is a sequence of pieces, each after its length (u32, little endian). What goes wrong with any request ends the
channel; the link goes on over another one. Slower than a WebSocket by a round trip for each piece.
"""

import asyncio
import struct
from collections import deque
from collections.abc import Mapping
from typing import Final

import aiohttp

from protocols.transport.https.channels import PATH, Channel, ChannelClosed
from protocols.transport.https.pieces import LARGEST_PIECE

CHANNEL_HEADER: Final = "X-Link-Channel"
NAME_BYTES: Final = 16
LARGEST_BODY: Final = 4 * (LARGEST_PIECE + 4)
_MOST_PIECES: Final = 64
_MOST_UNREAD: Final = 2
_LENGTH: Final = struct.Struct("<I")


class BadBody(ValueError):
    """A body that is no sequence of pieces."""


def joined(pieces: list[bytes]) -> bytes:
    return b"".join(part for piece in pieces for part in (_LENGTH.pack(len(piece)), piece))


def split(body: bytes) -> list[bytes]:
    """The pieces of a body; `BadBody` if it is anything else."""
    found, at = list[bytes](), 0
    while at < len(body):
        if len(body) - at < _LENGTH.size or len(found) == _MOST_PIECES:
            raise BadBody("a malformed body")
        (length,) = _LENGTH.unpack_from(body, at)
        at += _LENGTH.size
        if length > LARGEST_PIECE or length > len(body) - at:
            raise BadBody("a piece of an impossible length")
        found.append(body[at : at + length])
        at += length
    return found


async def read_pieces(content: aiohttp.StreamReader, length: int) -> list[bytes]:
    """The pieces of a body of so many bytes; `BadBody` if it is not one."""
    if length == 0:
        return []
    try:
        return split(await content.readexactly(length))
    except asyncio.IncompleteReadError:
        raise BadBody("a body that was cut short") from None


class ServedPolls(Channel):
    """The server's end of a channel."""

    def __init__(self) -> None:
        self._up = asyncio.Queue[bytes](_MOST_UNREAD)
        self._down = deque[bytes]()
        self._size = 0
        self._changed = asyncio.Condition()
        self.closed = False
        self.delivered = False
        """Whether the client has fetched everything after the channel was closed."""

    async def send(self, piece: bytes) -> None:
        async with self._changed:
            await self._changed.wait_for(
                lambda: self.closed or (self._size + len(piece) + 4 <= LARGEST_BODY and len(self._down) < _MOST_PIECES)
            )
            if self.closed:
                raise ChannelClosed
            self._down.append(piece)
            self._size += len(piece) + _LENGTH.size
            self._changed.notify_all()

    async def receive(self) -> bytes:
        return await self._up.get()

    async def close(self) -> None:
        async with self._changed:
            self.closed = True
            self._changed.notify_all()

    async def feed(self, pieces: list[bytes]) -> None:
        """Pieces that the client has posted; waits until they are read."""
        for piece in pieces:
            await self._up.put(piece)

    async def collect(self, seconds: float) -> bytes | None:
        """A body for the client, empty if there is nothing to say for so long; None once the channel is over."""
        async with self._changed:
            try:
                async with asyncio.timeout(seconds):
                    await self._changed.wait_for(lambda: self.closed or self._down)
            except TimeoutError:
                return b""
            if not self._down:
                self.delivered = True
                return None
            body = joined(list(self._down))
            self._down.clear()
            self._size = 0
            self._changed.notify_all()
            return body


class PolledServer(Channel):
    """The client's end of a channel."""

    def __init__(self, poster: "Poster", url: str, first: list[bytes]) -> None:
        """`url`: with the channel's name. `first`: pieces that came with the answer to the greeting."""
        self._poster, self._url = poster, url
        self._arrived = deque(first)
        self._closed = False

    async def send(self, piece: bytes) -> None:
        try:
            await self._poster.post(self._url + "/up", [piece])
        except (aiohttp.ClientError, OSError, ValueError):
            raise ChannelClosed from None

    async def receive(self) -> bytes:
        while not self._arrived:
            if self._closed:
                raise ChannelClosed
            try:
                answered, _ = await self._poster.post(self._url + "/down", [])
            except (aiohttp.ClientError, OSError, ValueError):
                raise ChannelClosed from None
            self._arrived.extend(answered)
        return self._arrived.popleft()

    async def close(self) -> None:
        self._closed = True


class Poster:
    """Posts pieces, and reads no more of an answer than one may have."""

    def __init__(self, session: aiohttp.ClientSession, proxy_headers: Mapping[str, str] | None) -> None:
        self._session, self._proxy_headers = session, proxy_headers

    async def post(self, url: str, pieces: list[bytes]) -> tuple[list[bytes], str]:
        """The pieces of the answer, and the channel that it names."""
        async with self._session.post(url, data=joined(pieces), proxy_headers=self._proxy_headers) as answer:
            if answer.status != 200:
                raise aiohttp.ClientResponseError(answer.request_info, (), status=answer.status)
            length = answer.content_length
            if length is None or length > LARGEST_BODY:
                raise BadBody("an answer of an impossible length")
            return await read_pieces(answer.content, length), answer.headers.get(CHANNEL_HEADER, "")


def channel_url(base: str, name: str) -> str:
    """The address of a channel whose name a server has sent; `BadBody` if it is none."""
    if len(name) != 2 * NAME_BYTES or not set(name) <= set("0123456789abcdef"):
        raise BadBody("a channel without a name")
    return f"{base}{PATH}/{name}"
