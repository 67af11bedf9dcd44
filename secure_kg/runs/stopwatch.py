"""Seconds per phase of one party's work, by the clock on the wall and by the processor.

train     local epochs
encode    rows to ring elements
mask      keys, shares and masks of the sums
holders   the same for the count of holders, and reading it
take      taking in what the server has sent, under secret sums reading it
send      handing messages to the transport
wait      waiting for messages; most of a client's is for the slowest of the others
unmask    adding up and opening the sums, at the server
evaluate  ranking
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from protocols.foundation.spent import Spent
from protocols.transport.traffic import Traffic

PHASES: Final = ("train", "encode", "mask", "send", "wait", "unmask", "evaluate", "holders", "take")


class Stopwatch:
    """Adds up under the names in `PHASES`. What it is made with is carried over from an earlier session of the run."""

    def __init__(
        self, seconds: Mapping[str, float] | None = None, cpu_seconds: Mapping[str, float] | None = None
    ) -> None:
        self.seconds = dict.fromkeys(PHASES, 0.0) | dict(seconds or {})
        self.cpu_seconds = dict.fromkeys(PHASES, 0.0) | dict(cpu_seconds or {})

    def add(self, phase: str, spent: Spent) -> None:
        self.seconds[phase] += spent.seconds
        self.cpu_seconds[phase] += spent.cpu_seconds

    def with_traffic(self, traffic: Traffic) -> "Stopwatch":
        """The same and what this session's messages took."""
        both = Stopwatch(self.seconds, self.cpu_seconds)
        both.add("send", traffic.sending)
        both.add("wait", traffic.waiting)
        return both

    @contextmanager
    def measure(self, phase: str) -> Iterator[None]:
        spent = Spent()
        try:
            with spent.measure():
                yield
        finally:
            self.add(phase, spent)
