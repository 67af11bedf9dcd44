"""A connection as a sequence of pieces, each way in order until it breaks: by WebSocket, or by long polls."""

from abc import ABC, abstractmethod
from typing import Final, TypeAlias

import aiohttp
from aiohttp import web

from protocols.transport.https.pieces import LARGEST_PIECE

PATH: Final = "/secure-kg/link"
WebSocket: TypeAlias = "aiohttp.ClientWebSocketResponse | web.WebSocketResponse"


class ChannelClosed(Exception):
    """The connection is over, whichever way."""


class Unreadable(ChannelClosed):
    """The connection is over because the other end sent what no end of this software sends; the text says what."""


class Channel(ABC):
    """Used by one task for sending and one for receiving."""

    @abstractmethod
    async def send(self, piece: bytes) -> None:
        """`ChannelClosed` if it cannot be sent; waits if the connection takes no more for the moment."""

    @abstractmethod
    async def receive(self) -> bytes:
        """The next piece; `ChannelClosed` if there is none, `Unreadable` if what came cannot be one."""

    @abstractmethod
    async def close(self) -> None:
        """What was sent before is still delivered if the other end reads it soon. Idempotent."""


class WebSocketChannel(Channel):
    """Over an open WebSocket of either end. It was opened with `LARGEST_PIECE` as the size of its largest message."""

    largest = LARGEST_PIECE

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    async def send(self, piece: bytes) -> None:
        try:
            await self._socket.send_bytes(piece)
        except (aiohttp.ClientError, OSError, RuntimeError):
            raise ChannelClosed from None

    async def receive(self) -> bytes:
        try:
            message = await self._socket.receive()
        except (aiohttp.ClientError, OSError, RuntimeError):
            raise ChannelClosed from None
        if message.type is aiohttp.WSMsgType.TEXT:
            raise Unreadable("sent a text in place of a piece")
        if message.type is aiohttp.WSMsgType.ERROR and isinstance(message.data, aiohttp.WebSocketError):
            if message.data.code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG:
                raise Unreadable("announced a message larger than any piece")
            raise Unreadable("broke the rules of WebSockets")
        if message.type is not aiohttp.WSMsgType.BINARY:
            raise ChannelClosed
        content: bytes = message.data
        return content

    async def close(self) -> None:
        try:
            await self._socket.close()
        except (aiohttp.ClientError, OSError, RuntimeError):
            return
