"""The server of a status page: GET of a few fixed names, on loopback unless told otherwise, in a thread of its own."""

import asyncio
import json
import logging
import os
import socket
import stat
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from aiohttp import web

from launch.status import answers
from launch.status.answers import LOOPBACK, Answer, refusal
from launch.status.board import PAGES, StatusBoard
from secure_kg.foundation.errors import UserError
from secure_kg.report.live import live_page, live_parts, live_title

MOST_PAGE_BYTES: Final = 64 * 2**20
_SECONDS_TO_START: Final = 10.0
_SECONDS_TO_CLOSE: Final = 0.5
_SECONDS_IDLE: Final = 15.0
_SECONDS_WATCHED: Final = 6.0
"""Somebody who has asked that recently is still looking."""


_SILENT: Final = logging.getLogger("launch.status")
"""What is no HTTP is refused without a word: whoever may use this machine must not fill a party's log."""
_SILENT.propagate = False
_SILENT.addHandler(logging.NullHandler())


class StatusServer:
    """Shows a board. `start` opens the port and `close` ends it; used as a context it does both.

    `port`: None shows nothing, so that a caller need not ask; 0 takes any free one. `folder`: of the run, for its
    finished pages; None: the one that the board knows. `address`: one that is not loopback needs `exposed`.
    """

    def __init__(
        self,
        board: StatusBoard,
        port: int | None,
        folder: Path | None = None,
        *,
        address: str = LOOPBACK,
        exposed: bool = False,
    ) -> None:
        if port is not None and not 0 <= port <= 65535:
            raise UserError(f"{port}: no port for the status page; choose one from 0 to 65535")
        if not exposed and not answers.is_loopback(address):
            raise UserError(f"{address}: the status page is for this machine only; its address must be loopback")
        self._board, self._port, self._folder, self._address = board, port, folder, address
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stop: asyncio.Event | None = None
        self._asked: float | None = None
        self.url: str | None = None
        """Where the page is, while it is shown."""

    def start(self) -> None:
        """Open the port; `UserError` if that is not possible. The work is done in a daemon thread."""
        if self._port is None or self._thread is not None:
            return
        listener = self._listener(self._port)
        host = f"[{self._address}]" if ":" in self._address else self._address
        port, ready = listener.getsockname()[1], threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(listener, ready)), name="status page", daemon=True
        )
        self._thread.start()
        ready.wait(_SECONDS_TO_START)
        self.url = f"http://{host}:{port}/"

    def close(self) -> None:
        """End the page. Idempotent; whoever still reads an answer is cut off after half a second."""
        thread, self._thread, self.url = self._thread, None, None
        if thread is None:
            return
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        thread.join(4 * _SECONDS_TO_CLOSE)

    def linger(self, seconds: float) -> None:
        """Wait while somebody looks at the page, so long at most: the end of a run is what people want to see."""
        until = time.monotonic() + seconds
        while self._thread is not None and time.monotonic() < until:
            if self._asked is None or time.monotonic() - self._asked > _SECONDS_WATCHED:
                return
            time.sleep(0.1)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _listener(self, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._address else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((self._address, port))
        except OSError as problem:
            listener.close()
            raise UserError(f"the status page cannot be at {self._address}, port {port}: {problem.strerror}") from None
        return listener

    async def _serve(self, listener: socket.socket, ready: threading.Event) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = web.Server(
            self._answer, logger=_SILENT, access_log=None, keepalive_timeout=_SECONDS_IDLE, lingering_time=0
        )
        runner = web.ServerRunner(server, shutdown_timeout=_SECONDS_TO_CLOSE, handle_signals=False)
        try:
            await runner.setup()
            await web.SockSite(runner, listener, backlog=16).start()
            ready.set()
            await self._stop.wait()
        finally:
            ready.set()
            await runner.cleanup()
            listener.close()

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        self._asked = time.monotonic()
        answer = await asyncio.to_thread(self._answer_to, request.method, request.headers.get("Host"), request.raw_path)
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)

    def _answer_to(self, method: str, host: str | None, path: str) -> Answer:
        if not answers.host_is_ours(host, self._address):
            return refusal(421, "this page answers to this machine's own names only")
        if method != "GET":
            return refusal(405, "only GET")
        if path == "/":
            nonce = answers.new_nonce()
            return answers.live(live_page(self._board.snapshot(), nonce), nonce)
        if path == "/status.json":
            status = self._board.snapshot()
            return answers.figures(
                json.dumps({**status.to_json(), "title": live_title(status), "parts": live_parts(status)})
            )
        if path.removeprefix("/") in PAGES:
            return self._finished(path.removeprefix("/"))
        return refusal(404, "no such page")

    def _finished(self, name: str) -> Answer:
        """A page of the run's folder, once the run is over; its name is one of a few."""
        folder = self._folder or self._board.folder
        if folder is None or not self._board.snapshot().stage.over:
            return refusal(404, "no such page yet")
        page = _read(folder / name)
        return refusal(404, "no such page") if page is None else answers.finished(page)


def _read(path: Path) -> bytes | None:
    """A file that is no link and not too large; else None."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        told = os.fstat(file.fileno())
        if not stat.S_ISREG(told.st_mode) or told.st_size > MOST_PAGE_BYTES:
            return None
        return file.read(MOST_PAGE_BYTES)
