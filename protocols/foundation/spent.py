"""Time that a piece of work took, by the clock on the wall and by the processor.

The processor's seconds are those of the calling thread. All cryptography runs in the thread that asks for it, and
parties may be threads of one process, so these are the party's own. On a busy machine they say more than the clock on
the wall, which goes on while others work.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class Spent:
    """A running total."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def add(self, other: "Spent") -> None:
        self.seconds += other.seconds
        self.cpu_seconds += other.cpu_seconds

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Add what the block takes, also if it raises."""
        started, cpu_started = time.perf_counter(), time.thread_time()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - started
            self.cpu_seconds += time.thread_time() - cpu_started
