"""A client's connections, one after the other: what is done when one ends or cannot be made."""

import asyncio
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from protocols.foundation.errors import DecodeError, LinkRefused, PeerMisbehaved
from protocols.foundation.identifiers import PartyId
from protocols.transport.https import pieces
from protocols.transport.https.channels import Channel, ChannelClosed
from protocols.transport.https.connection import Connection, Endings
from protocols.transport.https.dialling import Dialler
from protocols.transport.https.limits import LinkLimits
from protocols.transport.https.link import Link
from protocols.transport.https.refusals import Hopeless, NoConnection, TurnedAway

_MOST_DOUBLINGS: Final = 16
_MOST_IN_A_ROW: Final[dict[type[NoConnection], tuple[int, int]]] = {Hopeless: (1, 5), TurnedAway: (5, 20)}
"""So often one tries before the first welcome, and after it: somebody in between ends nobody's run in a moment."""


@dataclass(frozen=True, slots=True)
class Incarnation:
    """Who a client says it is."""

    party: PartyId
    federation: bytes
    name: bytes


class Redialler:
    """On the client's loop, except for `wake` and `linked`."""

    def __init__(
        self,
        incarnation: Incarnation,
        dialler: Dialler,
        link: Link,
        guard: threading.Condition,
        limits: LinkLimits,
        endings: Endings,
    ) -> None:
        self.notice: Callable[[str], None] = lambda line: None
        self._incarnation, self._dialler, self._endings = incarnation, dialler, endings
        self._link, self._guard, self._limits = link, guard, limits
        self._server = pieces.UNKNOWN
        self._connection: Connection | None = None
        self._attempts, self._failures, self._hopeless = 0, 0, 0
        self._down = ""
        """What the user was told last of a link that is down."""
        self._closing = False

    @property
    def linked(self) -> bool:
        connection = self._connection
        return connection is not None and connection.attached

    def wake(self) -> None:
        """There is something to send."""
        connection = self._connection
        if connection is not None:
            connection.wake()

    async def close(self) -> None:
        self._closing = True
        if self._connection is not None:
            self._connection.detach()
        await self._dialler.close()

    async def run(self) -> None:
        """Until the link has ended."""
        try:
            while self._link.ended is None and not self._closing:
                await self._connected_once()
        except BaseException as problem:  # whoever waits for the server must not wait for a task that is gone
            if not self._closing:
                self._end(LinkRefused(f"the link failed: {type(problem).__name__}"))
            raise
        finally:
            await self._dialler.close()

    async def _connected_once(self) -> None:
        try:
            channel, welcome = await self._welcomed()
        except NoConnection as problem:
            await self._failed(problem)
            return
        with self._guard:
            try:
                self._link.resume(welcome.received, welcome.granted)
            except PeerMisbehaved as problem:
                self._link.end(self._endings.misbehaved(str(problem)))
            connection = Connection(self._link, channel, self._guard, self._limits, self._endings)
            self._connection, self._server = connection, welcome.server
            self._guard.notify_all()
        if self._down:
            self.notice("the link to the server is up again")
            self._down = ""
        self._hopeless = 0
        await connection.run()
        if self._link.ended is not None or self._closing:
            return
        if connection.progress:
            self._failures = 0
        if not self._link.closing:  # else both ends are about to part, and whoever is first breaks it
            self._tell("the link to the server is down; connecting again")
        await self._pause()

    async def _welcomed(self) -> tuple[Channel, pieces.Welcome]:
        with self._guard:
            self._attempts += 1
            who, (received, granted) = self._incarnation, self._link.greet()
            hello = pieces.Hello(
                who.party, who.federation, who.name, self._attempts, self._server, received, granted
            )  # fmt: skip
        channel = await self._dialler.dial(pieces.hello(hello))
        try:
            async with asyncio.timeout(self._limits.handshake_seconds):
                answer = pieces.decode(await channel.receive())
            if isinstance(answer, pieces.Welcome):
                self._check(answer)
                return channel, answer
        except (ChannelClosed, TimeoutError):
            await channel.close()
            raise NoConnection("the server does not answer the greeting") from None
        except DecodeError:
            await channel.close()
            raise NoConnection("the server does not answer as this software does") from None
        except BaseException:
            await channel.close()
            raise
        await channel.close()
        if isinstance(answer, pieces.Refused) and answer.reason not in pieces.PASSING:
            self._end(self._endings.refused(answer))
        raise NoConnection("the server refuses this connection for now")

    def _check(self, welcome: pieces.Welcome) -> None:
        if welcome.version != pieces.VERSION:
            raise Hopeless(f"the server speaks version {welcome.version} of the link instead of {pieces.VERSION}")
        if welcome.federation != self._incarnation.federation:
            raise Hopeless("the server serves another federation")
        if self._server not in (pieces.UNKNOWN, welcome.server):
            self._end(self._endings.refused(pieces.Refused(pieces.Reason.RESTARTED, "the server was restarted")))
            raise NoConnection("the server was restarted")

    async def _failed(self, problem: NoConnection) -> None:
        if self._link.ended is not None or self._closing:
            return
        most = _MOST_IN_A_ROW.get(type(problem))
        self._hopeless = self._hopeless + 1 if most is not None else 0
        if most is not None and self._hopeless >= most[self._server != pieces.UNKNOWN]:
            self._end(LinkRefused(str(problem)))
            return
        self._tell(f"{problem}; trying again")
        await self._pause()

    async def _pause(self) -> None:
        """Longer after each failure, and never the same for two clients, so that not all come back at once."""
        longest = min(
            self._limits.longest_retry_seconds,
            self._limits.first_retry_seconds * 2 ** min(self._failures, _MOST_DOUBLINGS),
        )
        self._failures += 1
        await asyncio.sleep(secrets.SystemRandom().uniform(longest / 4, longest))

    def _tell(self, line: str) -> None:
        if line != self._down:
            self._down = line
            self.notice(line)

    def _end(self, problem: Exception) -> None:
        with self._guard:
            self._link.end(problem)  # type: ignore[arg-type]
            self._guard.notify_all()
