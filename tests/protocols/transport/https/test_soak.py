"""Links under random faults for as long as one likes: `SECURE_KG_SOAK_SECONDS=1800` for half an hour.

The seed is printed (`SECURE_KG_SOAK_SEED` gives another run the same faults, though not the same moments). A machine
that is busy with other things may be too slow to get a message through between two faults. So a client that has had no
message for a while is left in peace: one that gets none then either is not slow, but stuck.
"""

import hashlib
import os
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from benchmarks.links.faults import Answer, Break, Faults
from benchmarks.links.proxy import FaultProxy
from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.transport.base import Transport
from protocols.transport.https.limits import PIECE_BYTES
from secure_kg.foundation.console import say
from tests.support.link_figures import both_ends
from tests.support.links import Provisioned, links

SECONDS = float(os.environ.get("SECURE_KG_SOAK_SECONDS", "15"))
SEED = int(os.environ.get("SECURE_KG_SOAK_SEED") or int.from_bytes(os.urandom(4), "big"))
PATIENCE = 60.0
PEACE_AFTER = 15.0
SIZES = (0, 1, 200, 5_000, PIECE_BYTES, 3 * PIECE_BYTES + 1)


@dataclass
class Figures:
    """What has happened so far. Each thread changes its own."""

    heard: dict[tuple[int, int], float] = field(default_factory=dict)
    """When one party heard another one last."""
    frames: dict[tuple[int, int], int] = field(default_factory=dict)
    longest: dict[tuple[int, int], float] = field(default_factory=dict)
    cuts: int = 0
    spared: dict[int, int] = field(default_factory=dict)
    """By client: how often it was left in peace."""
    problems: list[str] = field(default_factory=list)

    def note(self, own: int, to: int) -> None:
        now = time.monotonic()
        waited = now - self.heard.get((own, to), now)
        self.longest[own, to] = max(self.longest.get((own, to), 0.0), waited)
        self.heard[own, to] = now
        self.frames[own, to] = self.frames.get((own, to), 0) + 1

    def starving(self, client: int) -> bool:
        now = time.monotonic()
        pairs = ((client, int(SERVER)), (int(SERVER), client))
        return any(now - self.heard.get(pair, now) > PEACE_AFTER for pair in pairs)


def trouble(proxies: list[FaultProxy], chance: random.Random, stop: threading.Event, figures: Figures) -> None:
    """Something else every moment, and peace in between."""
    spared = set[int]()
    while not stop.wait(chance.uniform(0.02, 0.4)):
        hungry = {client for client in range(1, len(proxies) + 1) if figures.starving(client)}
        for client in hungry - spared:
            proxies[client - 1].faults = Faults()
            figures.spared[client] = figures.spared.get(client, 0) + 1
        spared = hungry
        client = chance.randrange(1, len(proxies) + 1)
        if client in spared:
            continue
        proxy = proxies[client - 1]
        soon = frozenset({proxy.pieces + chance.randrange(1, 40)})
        proxy.faults = chance.choice(
            [
                Faults(),
                Faults(delay=chance.uniform(0.0, 0.05)),
                Faults(rate=chance.uniform(2e6, 50e6)),
                Faults(break_at_pieces=soon),
                Faults(break_at_pieces=soon, breaking=Break.HALF_CLOSE),
                Faults(answer=Answer.REFUSE),
                Faults(answer=Answer.BLACK_HOLE),
                Faults(overtaken=frozenset({proxy.connections + 1}), patience=0.3),
            ]
        )
        if chance.random() < 0.3:
            figures.cuts += 1
            proxy.cut()
    for proxy in proxies:
        proxy.faults = Faults()


def talk(end: Transport, to: PartyId, until: float, chance: random.Random, figures: Figures) -> tuple[str, str]:
    """Send and receive in turns, several frames at once; digests of what was sent, and of what was received."""
    sent, received, own = hashlib.sha256(), hashlib.sha256(), int(end.party)
    figures.heard[own, int(to)] = time.monotonic()
    while True:
        last = time.monotonic() > until if to == SERVER else False
        for number in range(3):
            frame = bytes([last, number]) + chance.randbytes(chance.choice(SIZES))
            end.send(to, frame)
            sent.update(hashlib.sha256(frame).digest())
        over = last
        for number in range(3):
            _, frame = end.receive([to], Deadline.after(PATIENCE))
            figures.note(own, int(to))
            assert frame[1] == number
            received.update(hashlib.sha256(frame).digest())
            over |= bool(frame[0])
        if over:
            end.flush(Deadline.after(PATIENCE))
            return sent.hexdigest(), received.hexdigest()


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 280)
def test_nothing_is_lost_or_repeated_whatever_happens(provisioned: Provisioned) -> None:
    say(f"seed {SEED}")
    stop, figures = threading.Event(), Figures()
    with links(provisioned) as made:
        proxies = [FaultProxy(("127.0.0.1", made.port), seconds=SECONDS + 250) for _ in range(3)]
        for proxy in proxies:
            made.open.enter_context(proxy)
        clients = {
            number: made.client(number, url=f"https://127.0.0.1:{proxy.port}", mode="poll" if number == 3 else "auto")
            for number, proxy in enumerate(proxies, start=1)
        }
        made.wait(1, 2, 3)
        server = made.server.transport()
        found: dict[tuple[int, int], tuple[str, str]] = {}
        until = time.monotonic() + SECONDS

        def party(end: Transport, own: int, to: int) -> Callable[[], None]:
            draws = random.Random(f"{SEED} {own} {to}")

            def talking() -> None:
                try:
                    found[own, to] = talk(end, PartyId(to), until, draws, figures)
                except Exception as problem:
                    state = "\n".join([*both_ends(server, clients), *made.lines[-10:]])
                    figures.problems.append(f"party {own} with {to}: {type(problem).__name__}: {problem}\n{state}")
                    stop.set()

            return talking

        parts = [party(client, number, 0) for number, client in clients.items()]
        parts += [party(server, 0, number) for number in clients]
        threads = [threading.Thread(target=part) for part in parts]
        troubling = threading.Thread(target=trouble, args=(proxies, random.Random(SEED), stop, figures))
        for thread in (*threads, troubling):
            thread.start()
        stop.wait(SECONDS)
        stop.set()
        for thread in (*threads, troubling):
            thread.join(2 * PATIENCE)
            assert not thread.is_alive(), (SEED, both_ends(server, clients))
        connections = [proxy.connections for proxy in proxies]
        say(f"connections {connections}, cuts {figures.cuts}, frames {figures.frames}, spared {figures.spared}, "
            f"longest waits {({pair: round(wait, 1) for pair, wait in figures.longest.items()})}")  # fmt: skip
        assert not figures.problems, "\n".join([f"seed {SEED}", *figures.problems])
        for number in clients:
            assert found[number, 0] == found[0, number][::-1], SEED
        assert sum(connections) > len(proxies)
