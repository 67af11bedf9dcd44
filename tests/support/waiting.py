"""Waiting for what other processes do."""

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], bool], seconds: float = 120) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.01)
