"""One connection of a link at work: a task that reads, one that writes, and one that asks whether it may go on."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Final, Protocol

from protocols.foundation.errors import DecodeError, PeerMisbehaved, ProtocolError
from protocols.transport.https import pieces
from protocols.transport.https.channels import Channel, ChannelClosed, Unreadable
from protocols.transport.https.limits import LinkLimits
from protocols.transport.https.link import Link

_CLOSING_SECONDS: Final = 2.0


class Endings(Protocol):
    """What the end of a link means to this party."""

    def ended(self) -> ProtocolError:
        """The peer has said that it has nothing more to say."""

    def refused(self, refusal: pieces.Refused) -> ProtocolError:
        """The peer has refused this party."""

    def misbehaved(self, what: str) -> ProtocolError:
        """The peer has sent what no honest one sends."""


class Connection:
    """Belongs to one event loop; `wake` may be called from any thread.

    `guard` is the lock of the link, and notified when there is something to take, room to send, or an end.
    """

    def __init__(
        self, link: Link, channel: Channel, guard: threading.Condition, limits: LinkLimits, endings: Endings
    ) -> None:
        self._link, self._channel, self._guard, self._limits, self._endings = link, channel, guard, limits, endings
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._over = asyncio.Event()
        self._refusal: pieces.Refused | None = None
        self.attached = True
        """False once another connection has taken over: nothing that arrives here counts any more."""
        self._heard_end = False
        self.progress = 0
        """Pieces that have arrived here."""

    def wake(self) -> None:
        """There is something to send."""
        try:
            self._loop.call_soon_threadsafe(self._changed.set)
        except RuntimeError:  # the loop has ended
            return

    def detach(self, refusal: pieces.Refused | None = None) -> None:
        """Close this connection, with a last word or without. On the loop's thread."""
        self.attached = False
        self._refusal = self._refusal or refusal
        self._over.set()

    def refuse(self, refusal: pieces.Refused) -> None:
        """Close this connection with a last word, from any thread."""
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self.detach, refusal)

    async def run(self, may_go_on: Callable[[], pieces.Refused | None] | None = None) -> ProtocolError | None:
        """Until the connection is over; what the link has ended with, if it has.

        `may_go_on`: asked with every heartbeat; a reason ends the connection.
        """
        tasks = [asyncio.create_task(work()) for work in (self._read, self._write, self._over.wait)]
        if may_go_on is not None:
            tasks.append(asyncio.create_task(self._ask(may_go_on)))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.attached = False
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await self._say_goodbye()
        with self._guard:
            self._guard.notify_all()
            return self._link.ended

    async def _say_goodbye(self) -> None:
        try:
            async with asyncio.timeout(_CLOSING_SECONDS):
                if self._refusal is not None:
                    await self._channel.send(pieces.refused(self._refusal.reason, self._refusal.text))
                elif self._heard_end:
                    await self._channel.send(self._link.last_ack())
                await self._channel.close()
        except (ChannelClosed, TimeoutError):
            return

    async def _ask(self, may_go_on: Callable[[], pieces.Refused | None]) -> None:
        while (refusal := may_go_on()) is None:
            await asyncio.sleep(self._limits.heartbeat_seconds)
        self._refusal = refusal

    async def _read(self) -> None:
        while self.attached:
            try:
                async with asyncio.timeout(self._limits.silence_seconds):
                    arrived = await self._channel.receive()
            except Unreadable as problem:
                self._misbehaved(str(problem))
                return
            except (ChannelClosed, TimeoutError):
                return
            try:
                if self._take(arrived):
                    return
            except (DecodeError, PeerMisbehaved) as problem:
                self._misbehaved(str(problem))
                return

    def _take(self, arrived: bytes) -> bool:
        """Whether the connection is over with this piece."""
        piece = pieces.decode(arrived)
        with self._guard:
            if not self.attached:
                return True
            self.progress += 1
            if isinstance(piece, pieces.Data | pieces.Ack):
                if self._link.take(piece, self._loop.time()):
                    self._guard.notify_all()
                self._changed.set()
                return False
            return self._word(piece)

    def _word(self, piece: pieces.Piece) -> bool:
        if isinstance(piece, pieces.Beat):
            return False
        if isinstance(piece, pieces.End):
            self._heard_end = True
            self._link.end(self._endings.ended())
        elif isinstance(piece, pieces.Refused):
            self._link.end(self._endings.refused(piece))
        else:
            raise PeerMisbehaved("sent a greeting in the middle of a connection")
        self._guard.notify_all()
        return True

    def _misbehaved(self, what: str) -> None:
        problem = self._endings.misbehaved(what)  # tells somebody, who must not be called under the lock
        with self._guard:
            self._link.end(problem)
            self._guard.notify_all()
        self._refusal = pieces.Refused(pieces.Reason.MISBEHAVED, what)

    async def _write(self) -> None:
        beat = self._limits.heartbeat_seconds
        last = self._loop.time()
        try:
            while self.attached:
                self._changed.clear()
                now = self._loop.time()
                with self._guard:
                    piece = self._link.next_piece(now)
                    wait = self._link.next_ack(now)
                if piece is None and now - last >= beat:
                    piece = pieces.BEAT
                if piece is not None:
                    await self._channel.send(piece)
                    last = now
                    if piece == pieces.END:
                        with self._guard:
                            self._guard.notify_all()
                    continue
                idle = last + beat - now
                try:
                    async with asyncio.timeout(idle if wait is None else min(wait, idle)):
                        await self._changed.wait()
                except TimeoutError:
                    continue
        except ChannelClosed:
            return
