"""Links under random faults for as long as one likes: `SECURE_KG_SOAK_SECONDS=1800` for half an hour."""

import hashlib
import os
import random
import threading
import time
from collections.abc import Callable

import pytest

from benchmarks.links.faults import Answer, Break, Faults
from benchmarks.links.proxy import FaultProxy
from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.transport.base import Transport
from protocols.transport.https.limits import PIECE_BYTES
from tests.support.links import Provisioned, links

SECONDS = float(os.environ.get("SECURE_KG_SOAK_SECONDS", "15"))
PATIENCE = 60.0
SIZES = (0, 1, 200, 5_000, PIECE_BYTES, 3 * PIECE_BYTES + 1)


def trouble(proxies: list[FaultProxy], chance: random.Random, stop: threading.Event) -> None:
    """Something else every moment, and peace in between."""
    while not stop.wait(chance.uniform(0.02, 0.4)):
        proxy = chance.choice(proxies)
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
            proxy.cut()
    for proxy in proxies:
        proxy.faults = Faults()


def talk(end: Transport, to: PartyId, until: float, chance: random.Random) -> tuple[str, str]:
    """Send and receive in turns, several frames at once; digests of what was sent, and of what was received."""
    sent, received = hashlib.sha256(), hashlib.sha256()
    while True:
        last = time.monotonic() > until if to == SERVER else False
        for number in range(3):
            frame = bytes([last, number]) + chance.randbytes(chance.choice(SIZES))
            end.send(to, frame)
            sent.update(hashlib.sha256(frame).digest())
        over = last
        for number in range(3):
            _, frame = end.receive([to], Deadline.after(PATIENCE))
            assert frame[1] == number
            received.update(hashlib.sha256(frame).digest())
            over |= bool(frame[0])
        if over:
            end.flush(Deadline.after(PATIENCE))
            return sent.hexdigest(), received.hexdigest()


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 280)
def test_nothing_is_lost_or_repeated_whatever_happens(provisioned: Provisioned) -> None:
    seed = int.from_bytes(os.urandom(4), "big")
    chance, stop = random.Random(seed), threading.Event()
    with links(provisioned) as made:
        made.lines.append(f"seed {seed}")  # shown if the test fails
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
            draws = random.Random(f"{seed} {own} {to}")
            return lambda: found.update({(own, to): talk(end, PartyId(to), until, draws)})

        parts = [party(client, number, 0) for number, client in clients.items()]
        parts += [party(server, 0, number) for number in clients]
        threads = [threading.Thread(target=part) for part in parts]
        troubling = threading.Thread(target=trouble, args=(proxies, chance, stop))
        for thread in (*threads, troubling):
            thread.start()
        time.sleep(SECONDS)
        stop.set()
        for thread in (*threads, troubling):
            thread.join(PATIENCE)
            assert not thread.is_alive(), (made.lines[0], made.lines[-5:])
        for number in clients:
            assert found[number, 0] == found[0, number][::-1], made.lines[0]
        assert sum(proxy.connections for proxy in proxies) > len(proxies)
