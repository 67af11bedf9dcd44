"""Small proxies as sites have them: HTTP CONNECT with a password, and a middlebox that ends TLS and strips upgrades."""

import asyncio
import contextlib
import re
import ssl
import threading
from typing import Any

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _InThread:
    """A server on loopback with a loop of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda loop, context: None)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.port = 0
        self._writers: list[asyncio.StreamWriter] = []

    def __enter__(self) -> Any:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *exception: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.tls()))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for writer in self._writers:
            writer.transport.abort()
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.wait([*tasks, self._loop.create_task(asyncio.sleep(0))]))
        self._loop.close()

    def tls(self) -> ssl.SSLContext | None:
        return None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await self.handle(reader, writer)
        writer.close()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError


async def _both_ways(near: Ends, far: Ends) -> None:
    async def one_way(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while part := await reader.read(1 << 16):
            writer.write(part)
            await writer.drain()

    tasks = [asyncio.create_task(one_way(near[0], far[1])), asyncio.create_task(one_way(far[0], near[1]))]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    far[1].close()


class ConnectProxy(_InThread):
    """HTTP CONNECT and nothing else; `authorization`: what a client must show."""

    def __init__(self, authorization: str = "", status: str = "200 OK", to: int = 0) -> None:
        super().__init__()
        self.authorization, self.status, self.to = authorization, status, to
        """`to`: a port to which every connection goes, whatever it asked for; 0: where it asked for."""
        self.asked: list[str] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, target, _ = head.split("\r\n")[0].split(" ")
        self.asked.append(f"{method} {target}")
        status = self.status
        if self.authorization and f"Proxy-Authorization: {self.authorization}" not in head:
            status = "407 Proxy Authentication Required"
        writer.write(f"HTTP/1.1 {status}\r\n\r\n".encode())
        if not status.startswith("200"):
            return
        host, _, port = target.rpartition(":")
        await _both_ways((reader, writer), await asyncio.open_connection(host, self.to or int(port)))


class Middlebox(_InThread):
    """Ends TLS with `inside`, begins it anew with `outside`, and lets no upgrade through."""

    def __init__(self, inside: ssl.SSLContext, outside: ssl.SSLContext, to: int, strip: bool = True) -> None:
        super().__init__()
        self._inside, self._outside, self._to, self._strip = inside, outside, to, strip
        self.stripped = 0

    def tls(self) -> ssl.SSLContext:
        return self._inside

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far = await asyncio.open_connection("127.0.0.1", self._to, ssl=self._outside, server_hostname="x")
        head = await reader.readuntil(b"\r\n\r\n")
        if self._strip and b"pgrade: websocket" in head:
            head = re.sub(rb"(?im)^(upgrade|connection): [^\r]*\r\n", b"", head)
            self.stripped += 1
        far[1].write(head)
        await _both_ways((reader, writer), far)
