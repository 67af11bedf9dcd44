"""Links in trouble, in simulated time, with the limits of real life: what was sent arrives soon after it is over."""

import asyncio
import random
from dataclasses import dataclass, field

import pytest

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import DeadlineExpired
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.transport.base import Transport
from protocols.transport.https.client import HttpsClientTransport
from protocols.transport.https.limits import PIECE_BYTES, PIECE_OVERHEAD, LinkLimits
from tests.support.link_figures import both_ends
from tests.support.simulated_links import PEACE, Fate, Network, Way, run

LIMITS = LinkLimits(unread_bytes=PIECE_BYTES + PIECE_OVERHEAD, window_bytes=PIECE_BYTES, window_frames=3)
"""Those of every day, but with so little room that most of what happens waits for a grant."""
SIZES = (0, 1, PIECE_BYTES - 1, PIECE_BYTES, 2 * PIECE_BYTES + 5)
PAST = Deadline(0.0)
FRAMES = 12
TROUBLE_SECONDS = 300.0
SOON = (
    LIMITS.silence_seconds  # until a connection that died in the trouble is noticed
    + LIMITS.longest_retry_seconds
    + LIMITS.handshake_seconds  # of an attempt that began in the trouble
    + LIMITS.longest_retry_seconds
    + 60.0  # for what is left to send, and for whoever is away when peace begins
)


@dataclass
class Party:
    """Sends frames to one peer and takes those that come, and is away now and then, as whoever trains is."""

    end: Transport
    peer: PartyId
    chance: random.Random
    sent: list[bytes] = field(default_factory=list)
    taken: list[bytes] = field(default_factory=list)
    peace: bool = False

    async def send(self) -> None:
        for number in range(FRAMES):
            while self.end.busy(self.peer):
                await asyncio.sleep(0.05)
            frame = bytes([number]) * self.chance.choice(SIZES)
            self.end.send(self.peer, frame)
            self.sent.append(frame)
            await self.pause(0.3, 30.0)

    async def take(self) -> None:
        while True:
            try:
                self.taken.append(bytes(self.end.receive([self.peer], PAST)[1]))
            except DeadlineExpired:
                await asyncio.sleep(0.02)
            await self.pause(0.05, 20.0)

    async def pause(self, chance: float, seconds: float) -> None:
        if not self.peace and self.chance.random() < chance:
            await asyncio.sleep(self.chance.uniform(0.0, seconds))


def trouble(chance: random.Random) -> Way:
    """Another way to fail: none, one direction, a kind of request, anything now and then, or everything."""
    bad = chance.choice([Fate.LOST, Fate.RESET, Fate.UNANSWERED, Fate.ANSWER_RESET])
    some = {Fate.PASS: 1.0, bad: chance.choice([0.02, 0.1, 0.3])}
    all_of_it = {bad: 1.0}
    kinds = chance.choice([(), ("up",), ("down",), ("open",), ("open", "up", "down")])
    fates = {kind: (chance.choice([some, all_of_it]) if kind in kinds else PEACE[kind]) for kind in PEACE}
    return Way(fates, delay=chance.choice([0.001, 0.1, 1.0]))


async def disturb(network: Network, chance: random.Random) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + TROUBLE_SECONDS
    while loop.time() < until:
        party = chance.choice(list(network.ways))
        network.ways[party] = trouble(chance)
        if chance.random() < 0.3:
            network.cut(party)
        await asyncio.sleep(chance.choice([0.2, 2.0, 20.0]) * chance.random())
    for party in network.ways:
        network.ways[party] = Way(dict(PEACE))


async def simulated(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    network, chance, loop = Network(seed, LIMITS, 2, monkeypatch), random.Random(-seed), asyncio.get_running_loop()
    modes = {PartyId(1): "poll", PartyId(2): "websocket"}
    clients = {number: network.client(int(number), mode, monkeypatch) for number, mode in modes.items()}
    while network.registry.newest.keys() < clients.keys():
        await asyncio.sleep(0.1)
    parties = {(int(number), 0): Party(end, SERVER, chance) for number, end in clients.items()}
    parties |= {(0, int(number)): Party(network.server, number, chance) for number in clients}
    for party in parties.values():
        network.begin(party.send())
        network.begin(party.take())
    await disturb(network, chance)
    for party in parties.values():
        party.peace = True
    until = loop.time() + SOON
    while any(len(party.taken) < FRAMES for party in parties.values()):
        assert loop.time() < until, state(network, clients, parties)
        await asyncio.sleep(0.1)
    for own, peer in parties:
        assert parties[own, peer].taken == parties[peer, own].sent
    await network.end()


def state(network: Network, clients: dict[PartyId, HttpsClientTransport], parties: dict[tuple[int, int], Party]) -> str:
    counts = [f"{pair}: {len(one.sent)} sent, {len(one.taken)} taken" for pair, one in parties.items()]
    return "\n".join([*counts, *both_ends(network.server, {int(number): one for number, one in clients.items()})])


SEEDS = [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 300))]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_sent_arrives_soon_after_trouble(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run(lambda: simulated(seed, monkeypatch))
