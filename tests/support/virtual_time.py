"""A network with a clock for each party: how long a round takes if messages take their time, and nothing else does.

A frame is stamped with its sender's clock. It arrives one unit later, and whoever reads it cannot be earlier than that.
Work moves only the clock of the party that does it. So the clock of a party is the length of the longest chain of
messages and work behind what it does: causality, and not the machine's speed.
"""

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.transport.base import Transport
from protocols.transport.in_process import InProcessNetwork
from secure_kg.federation.server.pacing import Figures, Turns


class VirtualTime(Turns):
    """The clocks, and how long each turn of the server has taken by its own."""

    def __init__(self) -> None:
        self.turns: dict[tuple[str, int], float] = {}
        self._clocks: dict[PartyId, float] = defaultdict(float)
        self._under_way: dict[tuple[PartyId, PartyId], deque[float]] = defaultdict(deque)
        self._attaching = threading.Lock()

    def work(self, party: PartyId, units: float) -> None:
        self._clocks[party] += units

    def transport_of(self, network: InProcessNetwork, number: int) -> Transport:
        with self._attaching:
            if not vars(network).get("timed"):
                vars(network).update(timed=True, put=self._timed_put(network.put), take=self._timed_take(network.take))
        return network.endpoint(PartyId(number))

    @contextmanager
    def turn(self, work: str, round_id: int, figures: Callable[[], Figures]) -> Iterator[None]:
        began = self._clocks[SERVER]
        yield
        self.turns[work, int(round_id)] = self._clocks[SERVER] - began

    def _timed_put(self, put: Callable[..., None]) -> Callable[..., None]:
        def timed(sender: PartyId, to: PartyId, frame: bytes) -> None:
            self._under_way[sender, to].append(self._clocks[sender] + 1.0)  # before it can be read
            put(sender, to, frame)

        return timed

    def _timed_take(self, take: Callable[..., Any]) -> Callable[..., Any]:
        def timed(senders: Sequence[PartyId], to: PartyId, deadline: Deadline) -> tuple[PartyId, bytes] | None:
            taken: tuple[PartyId, bytes] | None = take(senders, to, deadline)
            if taken is not None:
                self._clocks[to] = max(self._clocks[to], self._under_way[taken[0], to].popleft())
            return taken

        return timed
