"""Time that a piece of work took, by the clock on the wall and by the processor.

The processor's seconds are those of the calling thread. All cryptography runs in the thread that asks for it, and
parties may be threads of one process, so these are the party's own. On a busy machine they say more than the clock on
the wall, which goes on while others work.
"""

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass


@dataclass(slots=True)
class Spent:
    """A running total."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def add(self, other: "Spent") -> None:
        self.seconds += other.seconds
        self.cpu_seconds += other.cpu_seconds

    def measure(self) -> AbstractContextManager[None]:
        """Add what the block takes, also if it raises."""
        return _Block(self)


class _Block:
    """A block under way. Every message is measured several times: a generator would cost twice as much."""

    __slots__ = ("_cpu_started", "_spent", "_started")

    def __init__(self, spent: Spent) -> None:
        self._spent = spent

    def __enter__(self) -> None:
        self._started, self._cpu_started = time.perf_counter(), time.thread_time()

    def __exit__(self, *_: object) -> None:
        self._spent.seconds += time.perf_counter() - self._started
        self._spent.cpu_seconds += time.thread_time() - self._cpu_started
