"""Seconds per phase of one party's work."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

PHASES: Final = ("train", "encode", "mask", "send", "wait", "unmask", "evaluate")


class Stopwatch:
    """Adds up wall-clock seconds under the names in `PHASES`."""

    def __init__(self, seconds: dict[str, float] | None = None) -> None:
        self.seconds = dict.fromkeys(PHASES, 0.0) | (seconds or {})

    def add(self, phase: str, seconds: float) -> None:
        self.seconds[phase] += seconds

    @contextmanager
    def measure(self, phase: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.add(phase, time.perf_counter() - started)
