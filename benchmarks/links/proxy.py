"""A TCP proxy between parties that delays, limits, cuts, half-closes, refuses, swallows and reorders connections.

`FaultProxy` runs in a thread of the caller; `python -m benchmarks.links.proxy` is the same as a command. It knows
nothing of what passes it but the lengths of TLS records. It is bounded (connections, bytes under way, seconds) and ends
by itself.
"""

import argparse
import asyncio
import contextlib
import socket
import struct
import threading
import time
from collections.abc import Sequence
from typing import Final

from benchmarks.links.faults import Answer, Break, Faults, parse_link
from benchmarks.links.pieces import Records
from secure_kg.foundation.console import fail, say
from secure_kg.foundation.errors import UserError

Address = tuple[str, int]
_MOST_CONNECTIONS: Final = 1000
_MOST_UNDER_WAY: Final = 64 << 20
_READ: Final = 1 << 16
_RESET: Final = struct.pack("ii", 1, 0)
_END_SECONDS: Final = 5.0
_NONE: Final = Faults()


class _Broken(Exception):
    """This connection is over."""


class FaultProxy:
    """Listens on loopback from `with` to its end, or for `seconds`. `faults` may be replaced at any time."""

    def __init__(
        self, to: Address, faults: Faults = _NONE, seconds: float = 600.0, listen: Address = ("127.0.0.1", 0)
    ) -> None:
        self.to, self.faults = to, faults
        self.pieces = 0
        """Forwarded or broken so far, over all connections."""
        self.bytes = 0
        self.connections = 0
        self._seconds, self._listen = seconds, listen
        self._passed = 0
        """Number of the newest connection that was let through."""
        self._broken_after_bytes = False
        self._live = set["_Pair"]()
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda loop, context: None)  # connections that end in a rude way are its trade
        self._ready = threading.Event()
        self._problem: OSError | None = None
        self._stop = asyncio.Event()
        self.port = 0
        self._thread = threading.Thread(target=self._run, name="fault proxy", daemon=True)

    def __enter__(self) -> "FaultProxy":
        self._thread.start()
        self._ready.wait(_END_SECONDS)
        if self._problem is not None:
            raise UserError(f"cannot listen at {self._listen[0]}:{self._listen[1]}: {self._problem.strerror}")
        return self

    def __exit__(self, *exception: object) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_END_SECONDS)

    def wait(self) -> None:
        """Until the proxy ends by itself."""
        self._thread.join(self._seconds + _END_SECONDS)

    def cut(self) -> None:
        """Reset all connections now."""
        self._loop.call_soon_threadsafe(self._reset_all)

    def _reset_all(self) -> None:
        for pair in list(self._live):
            pair.reset()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        try:
            server = await asyncio.start_server(self._accept, *self._listen, limit=_READ)
        except OSError as problem:
            self._problem = problem
            self._ready.set()
            return
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), self._seconds)
        server.close()
        self._reset_all()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_END_SECONDS)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number, faults = self.connections, self.faults
        special = faults.answer is not Answer.FORWARD and (not faults.answered or number <= faults.answered)
        if (special and faults.answer is Answer.REFUSE) or len(self._live) >= _MOST_CONNECTIONS:
            _reset(writer)
            return
        if special:
            await self._swallow(writer)
            return
        if number in faults.overtaken:
            await self._let_another_pass(number, faults.patience)
        try:
            far = await asyncio.open_connection(*self.to, limit=_READ)
        except OSError:
            _reset(writer)
            return
        self._passed = max(self._passed, number)
        pair = _Pair(self, (reader, writer), far)
        self._live.add(pair)
        try:
            await pair.run()
        finally:
            self._live.discard(pair)

    async def _swallow(self, writer: asyncio.StreamWriter) -> None:
        try:
            await self._stop.wait()
        finally:
            _reset(writer)

    async def _let_another_pass(self, number: int, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self._passed < number and time.monotonic() < until:
            await asyncio.sleep(0.01)

    def breaks(self, size: int) -> Break | None:
        """Count a piece; what happens at it."""
        self.pieces += 1
        self.bytes += size
        faults = self.faults
        if self.pieces in faults.break_at_pieces:
            return faults.breaking
        if 0 < faults.break_after_bytes <= self.bytes and not self._broken_after_bytes:
            self._broken_after_bytes = True
            return faults.breaking
        return None


class _Pair:
    """A connection that came in, and the one that goes on from here."""

    def __init__(
        self,
        proxy: FaultProxy,
        near: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        far: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self._proxy, self._near, self._far = proxy, near, far

    def reset(self) -> None:
        for _, writer in (self._near, self._far):
            _reset(writer)

    async def run(self) -> None:
        both = [
            asyncio.create_task(self._pass(self._near[0], self._far[1])),
            asyncio.create_task(self._pass(self._far[0], self._near[1])),
        ]
        try:
            done, _ = await asyncio.wait(both, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.exception()
        finally:
            for task in both:
                task.cancel()
            self.reset()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One direction: read as fast as there is room, write each piece when its time has come."""
        line = asyncio.Queue[tuple[float, bytes | None]]()
        room = _Room()
        writing = asyncio.create_task(self._write(line, room, writer))
        records = Records()
        try:
            while arrived := await reader.read(_READ):
                for piece in records.feed(arrived):
                    await room.take(len(piece))
                    line.put_nowait((time.monotonic() + self._proxy.faults.delay, piece))
                if writing.done():
                    break
            if rest := records.rest():
                line.put_nowait((time.monotonic() + self._proxy.faults.delay, rest))
            line.put_nowait((time.monotonic() + self._proxy.faults.delay, None))
            await writing
        except OSError:
            raise _Broken from None
        finally:
            writing.cancel()

    async def _write(
        self, line: "asyncio.Queue[tuple[float, bytes | None]]", room: "_Room", writer: asyncio.StreamWriter
    ) -> None:
        free_at = 0.0
        try:
            while True:
                due, piece = await line.get()
                due = max(due, free_at)
                if (wait := due - time.monotonic()) > 0:
                    await asyncio.sleep(wait)
                if piece is None:
                    writer.write_eof()
                    return
                rate = self._proxy.faults.rate
                free_at = max(due, time.monotonic() - 0.01) + len(piece) / rate if rate else 0.0
                what = self._proxy.breaks(len(piece))
                if what is Break.HALF_CLOSE:
                    writer.write_eof()
                    await self._discard(line, room)
                writer.write(piece if what is None else piece[: len(piece) // 2])
                await writer.drain()
                room.give(len(piece))
                if what is Break.CUT:
                    self.reset()
                    raise _Broken
        except OSError:
            raise _Broken from None

    async def _discard(self, line: "asyncio.Queue[tuple[float, bytes | None]]", room: "_Room") -> None:
        """Take what still comes, and pass nothing on, until the connection ends."""
        while (piece := (await line.get())[1]) is not None:
            room.give(len(piece))
        raise _Broken


class _Room:
    """Bytes that may be under way."""

    def __init__(self) -> None:
        self._used = 0
        self._changed = asyncio.Event()

    async def take(self, size: int) -> None:
        while self._used and self._used + size > _MOST_UNDER_WAY:
            self._changed.clear()
            await self._changed.wait()
        self._used += size

    def give(self, size: int) -> None:
        self._used -= size
        self._changed.set()


def _reset(writer: asyncio.StreamWriter) -> None:
    raw = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


def main(argv: Sequence[str] | None = None) -> int:
    """Run a proxy until its time has passed or Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.links.proxy", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--to", required=True, metavar="HOST:PORT", help="where connections go on to")
    parser.add_argument("--listen", default="127.0.0.1:0", metavar="HOST:PORT", help="default: any port on loopback")
    parser.add_argument("--link", default="", metavar="delay=25ms,rate=100Mbit", help="of each direction")
    parser.add_argument("--cut-at", default="", metavar="N,N,...", help="break the connection at these TLS records")
    parser.add_argument("--cut-after", type=int, default=0, metavar="BYTES", help="break once, after so many bytes")
    parser.add_argument("--half-close", action="store_true", help="end one direction only instead of cutting")
    parser.add_argument("--answer", choices=[one.value for one in Answer], default="forward")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long the proxy runs at most (600)")
    options = parser.parse_args(argv)
    try:
        with FaultProxy(_address(options.to), _faults(options), options.seconds, _address(options.listen)) as proxy:
            say(f"from {options.listen.rpartition(':')[0]}:{proxy.port} to {options.to}, for {options.seconds:g} s")
            with contextlib.suppress(KeyboardInterrupt):
                proxy.wait()
            say(f"{proxy.connections} connections, {proxy.pieces} pieces, {proxy.bytes:,} bytes")
    except UserError as problem:
        fail(str(problem))
        return 2
    return 0


def _faults(options: argparse.Namespace) -> Faults:
    link = parse_link(options.link)
    try:
        pieces = frozenset(int(one) for one in options.cut_at.split(",") if one)
    except ValueError:
        raise UserError("--cut-at: numbers of records, separated by commas") from None
    return Faults(
        delay=link.delay,
        rate=link.rate,
        break_at_pieces=pieces,
        break_after_bytes=options.cut_after,
        breaking=Break.HALF_CLOSE if options.half_close else Break.CUT,
        answer=Answer(options.answer),
    )


def _address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) >= 1 << 16:
        raise UserError(f"'{text}': an address is HOST:PORT")
    return host.strip("[]"), int(port)


if __name__ == "__main__":
    raise SystemExit(main())
