"""Costs of the steps of a simulated sum, added up while they run (`protocols.sums.secagg.simulation`).

Seconds are of the processor: a simulation is one thread, and others may be using the machine.
"""

import statistics
import time
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from protocols.foundation.identifiers import PartyId

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Spread:
    """One figure over the clients that have it."""

    total: float
    mean: float
    median: float
    maximum: float

    @classmethod
    def of(cls, figures: Iterable[float]) -> "Spread":
        values = list(figures)
        if not values:
            return cls(0, 0, 0, 0)
        return cls(sum(values), statistics.fmean(values), statistics.median(values), max(values))


@dataclass(frozen=True, slots=True)
class StepCost:
    """One step. A message counts for the step it ends; what a client makes of it, for the step of the answer."""

    name: str
    clients: int
    """How many answered."""
    client_seconds: Spread
    client_codec_seconds: Spread
    """Encoding and decoding of messages, in no other figure."""
    server_seconds: float
    server_close_seconds: float
    """The part of `server_seconds` that comes after the last answer; in the last step, all the unmasking."""
    server_codec_seconds: float
    bytes_up: Spread
    bytes_down: Spread


@contextmanager
def measured(ledger: defaultdict[K, float], key: K) -> Iterator[None]:
    """Add the processor seconds of the block to an entry of `ledger`."""
    started = time.thread_time()
    yield
    ledger[key] += time.thread_time() - started


class Tally:
    """The cost of one step while it is being added up."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.client: defaultdict[PartyId, float] = defaultdict(float)
        self.client_codec: defaultdict[PartyId, float] = defaultdict(float)
        self.server: defaultdict[str, float] = defaultdict(float)
        """Keys: receive, close, codec."""
        self.up: list[int] = []
        self.down: list[int] = []

    def cost(self) -> StepCost:
        return StepCost(
            self.name,
            len(self.up),
            Spread.of(self.client.values()),
            Spread.of(self.client_codec.values()),
            self.server["receive"] + self.server["close"],
            self.server["close"],
            self.server["codec"],
            Spread.of(self.up),
            Spread.of(self.down),
        )
