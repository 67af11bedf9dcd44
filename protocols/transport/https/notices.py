"""One line for each kind of event, so that a peer that tries on and on fills no log."""

import time
from collections.abc import Callable
from typing import Final

_SECONDS: Final = 60.0
_MOST_KINDS: Final = 256


class Notices:
    """Tells the first of a kind at once, and then at most one a minute, with the number of those not told."""

    def __init__(self, notice: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._notice, self._clock = notice, clock
        self._kinds: dict[str, tuple[float, int]] = {}

    def tell(self, kind: str, line: str) -> None:
        now = self._clock()
        last, untold = self._kinds.get(kind, (-_SECONDS, 0))
        if now - last < _SECONDS:
            self._kinds[kind] = last, untold + 1
            return
        if kind not in self._kinds and len(self._kinds) >= _MOST_KINDS:
            self._kinds.clear()
        self._kinds[kind] = now, 0
        self._notice(f"{line} (and {untold} more like it)" if untold else line)
