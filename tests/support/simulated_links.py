"""Links on a simulated network, in simulated time: the real ends, and a way between them that fails as a test likes.

Everything of the transport runs as it does in a process (redialling, connections, the server's reception and registry,
the state of links); only TLS, HTTP and sockets are replaced, and threads by tasks of one loop whose clock jumps from
one event to the next. So minutes take moments, and a seed decides all that happens.
"""

import asyncio
import random
import selectors
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from enum import StrEnum
from types import SimpleNamespace
from typing import Any, Final

import pytest

from protocols.foundation.identifiers import PartyId
from protocols.transport.https import client as client_module
from protocols.transport.https import dialling, polling, redialling
from protocols.transport.https.channels import PATH, Channel, ChannelClosed
from protocols.transport.https.client import HttpsClientTransport
from protocols.transport.https.limits import LinkLimits
from protocols.transport.https.reception import Reception
from protocols.transport.https.registry import Registry
from protocols.transport.https.server_transport import HttpsServerTransport

FEDERATION: Final = bytes(range(32))


class _Jump(selectors.SelectSelector):
    """Waits for nothing: where nothing is ready, time has passed. Each look takes a microsecond, so none is free."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        self.now += 1e-6
        if not found:
            assert timeout is not None, "everybody waits for ever"
            self.now += timeout
        return found


class SimulatedLoop(asyncio.SelectorEventLoop):
    """A loop whose clock is that of its events."""

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        return self._jump.now


class Fate(StrEnum):
    """What becomes of a request, or of one message of a WebSocket."""

    PASS = "pass"
    RESET = "reset"
    """It does not arrive, and its sender hears of it."""
    LOST = "lost"
    """It does not arrive, and nobody hears of it."""
    UNANSWERED = "unanswered"
    """It arrives; its answer is lost, and nobody hears of it."""
    ANSWER_RESET = "answer reset"
    """It arrives; in place of its answer the connection ends."""


@dataclass(slots=True)
class Way:
    """What happens now between a client and the server; replaced whenever a test likes."""

    fates: dict[str, dict[Fate, float]]
    """By kind of request (`open`, `up`, `down`): weights."""
    delay: float = 0.01
    """Seconds at most, of each direction."""


PEACE: Final = {kind: {Fate.PASS: 1.0} for kind in ("open", "up", "down")}


class Network:
    """A server and its clients. Inside of `run`."""

    def __init__(self, seed: int, limits: LinkLimits, clients: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.chance, self.limits = random.Random(seed), limits
        lines: list[str] = []
        self.registry = Registry(FEDERATION, bytes([9]) * 16, [PartyId(one + 1) for one in range(clients)], limits)
        self.reception = Reception(self.registry, None, lambda leaf: PartyId(leaf[0]), limits, lines.append)  # type: ignore[arg-type]
        self.server = HttpsServerTransport(self.registry, limits)
        self.registry.came = self.server.welcome
        self.ways = {PartyId(one + 1): Way(dict(PEACE)) for one in range(clients)}
        self._tasks = set[asyncio.Task[Any]]()
        self._sockets: dict[PartyId, list[_Socket]] = {party: [] for party in self.ways}
        monkeypatch.setattr(client_module, "LoopThread", lambda name: SimpleNamespace(begin=self.begin))
        monkeypatch.setattr(redialling.secrets, "SystemRandom", lambda: self.chance)

    def begin(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def client(self, number: int, mode: str, monkeypatch: pytest.MonkeyPatch) -> HttpsClientTransport:
        party = PartyId(number)
        monkeypatch.setattr(client_module, "Dialler", lambda *values: _Dialler(self, party, mode))
        return HttpsClientTransport(
            "https://server", None, party, FEDERATION, proxy=None, limits=self.limits  # type: ignore[arg-type]
        )  # fmt: skip

    def cut(self, party: PartyId) -> None:
        """End the WebSockets of a client. Connections of long polls end with the fates of their requests."""
        for socket in self._sockets[party]:
            socket.broken = True
            socket.arrived.put_nowait(None)

    def fate(self, party: PartyId, kind: str) -> Fate:
        weights = self.ways[party].fates[kind]
        return self.chance.choices(list(weights), list(weights.values()))[0]

    async def travel(self, party: PartyId) -> None:
        await asyncio.sleep(self.chance.uniform(0.0, self.ways[party].delay))

    async def end(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _Dialler:
    """In place of `dialling.Dialler`."""

    def __init__(self, network: Network, party: PartyId, mode: str) -> None:
        self._network, self._party, self._mode = network, party, mode

    async def dial(self, hello: bytes) -> Channel:
        with dialling._in_one_line(None):
            async with asyncio.timeout(self._network.limits.handshake_seconds):
                if self._mode == "websocket":
                    return await self._web_socket(hello)
                poster = _Poster(self._network, self._party)
                answered, name = await poster.post(PATH, [hello])
                return polling.PolledServer(poster, f"{PATH}/{name}", answered)  # type: ignore[arg-type]

    async def _web_socket(self, hello: bytes) -> Channel:
        network, party = self._network, self._party
        match network.fate(party, "open"):
            case Fate.LOST | Fate.UNANSWERED:
                await asyncio.sleep(3600)
            case Fate.RESET | Fate.ANSWER_RESET:
                raise ConnectionResetError
        near, far = _Socket(network, party, "up"), _Socket(network, party, "down")
        near.other, far.other = far, near
        network._sockets[party] = [near, far]
        network.begin(network.reception._serve(far, party, bytes([party])))
        await near.send(hello)
        return near

    async def close(self) -> None:
        return


class _Socket(Channel):
    """One end of a WebSocket. What it sends is lost from the first loss on: a connection has no gaps."""

    other: "_Socket"

    def __init__(self, network: Network, party: PartyId, kind: str) -> None:
        self._network, self._party, self._kind = network, party, kind
        self.arrived = asyncio.Queue[bytes | None]()
        self.broken = False
        self._dead = False

    async def send(self, piece: bytes) -> None:
        if self.broken:
            raise ChannelClosed
        await self._network.travel(self._party)
        fate = self._network.fate(self._party, self._kind)
        if fate in (Fate.RESET, Fate.ANSWER_RESET):
            for end in (self, self.other):
                end.broken = True
                end.arrived.put_nowait(None)
            raise ChannelClosed
        self._dead |= fate is not Fate.PASS
        if not self._dead:
            self.other.arrived.put_nowait(piece)

    async def receive(self) -> bytes:
        piece = await self.arrived.get()
        if piece is None or self.broken:
            raise ChannelClosed
        return piece

    async def close(self) -> None:
        self.other.arrived.put_nowait(None)


class _Poster:
    """In place of `polling.Poster`: each request has a fate of its own."""

    def __init__(self, network: Network, party: PartyId) -> None:
        self._network, self._party = network, party

    async def post(self, url: str, pieces: list[bytes]) -> tuple[list[bytes], str]:
        async with asyncio.timeout(self._network.limits.silence_seconds):
            return await self._posted(url, pieces)

    async def _posted(self, url: str, pieces: list[bytes]) -> tuple[list[bytes], str]:
        network, party = self._network, self._party
        fate = network.fate(party, "open" if url == PATH else url.rpartition("/")[2])
        if fate is Fate.RESET:
            raise ConnectionResetError
        if fate is Fate.LOST:
            await asyncio.sleep(3600)
        await network.travel(party)
        answer = asyncio.get_running_loop().create_future()
        network.begin(self._handled(url, polling.joined(pieces), answer))
        response = await answer
        if fate is Fate.UNANSWERED:
            await asyncio.sleep(3600)
        await network.travel(party)
        if fate is Fate.ANSWER_RESET or response.status != 200:
            raise ConnectionResetError
        return polling.split(response.body or b""), response.headers.get(polling.CHANNEL_HEADER, "")

    async def _handled(self, url: str, body: bytes, answer: "asyncio.Future[Any]") -> None:
        """As aiohttp does it, the server goes on with a request whose client has gone."""
        content = asyncio.StreamReader(limit=1 << 22)
        content.feed_data(body)
        content.feed_eof()
        request: Any = SimpleNamespace(path=url, content_length=len(body), content=content, method="POST")
        response = await self._network.reception._poll(request, self._party, bytes([self._party]))
        if not answer.done():
            answer.set_result(response)


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """On a loop of its own, in simulated time."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        runner.run(work())
