"""Time limits for each of several parties: long for work that takes long, short for a party that has died.

A fixed deadline fits no federation: a round may take a tenth of a second or ten minutes. So the limit follows what was
seen. A party may take `factor` times the longest of its own last answers to the same step, or `factor` times the median
of those who have answered this time, whichever is more; never less than `grace` seconds, never more than `longest`.
In its first answer to a step, when it is not known how much data it has, a party may take six times as long as that.
While neither is known (a first step that half of the parties have not answered yet) it may take `longest`.

Misuse: a limit decides who counts as a dropout and nothing else. It is a party's own clock and never a peer's word.
"""

import statistics
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Final

from protocols.foundation.identifiers import PartyId

FACTOR: Final = 5.0
_STRANGER: Final = 6.0  # clients of one federation may differ that much in size beyond the usual factor
_REMEMBERED: Final = 4  # one long pause must not lengthen a party's limit for ever


class Patience:
    """The limits of one waiting party, with its memory of how long the others took."""

    def __init__(self, longest: float, grace: float, factor: float = FACTOR) -> None:
        self._longest, self._grace, self._factor = longest, min(grace, longest), factor
        self._seen: dict[tuple[str, PartyId], deque[float]] = defaultdict(lambda: deque(maxlen=_REMEMBERED))
        self._dropouts: dict[PartyId, tuple[str, float]] = {}
        self.seconds_in_vain = 0.0
        """Time in which only dropouts were waited for."""

    @classmethod
    def fixed(cls, seconds: float) -> "Patience":
        """The same limit for everybody."""
        return cls(seconds, seconds)

    def limit(self, step: str, party: PartyId, answered: Sequence[float], asked: int) -> float:
        """Seconds that `party` may take for `step`.

        `answered`: the seconds of those who have answered already, of `asked` parties in all.
        """
        own = self._seen[step, party]
        known = [*own]
        if answered and 2 * len(answered) >= asked:
            known.append(statistics.median(answered))
        if not known:
            return self._longest
        factor = self._factor if own else self._factor * _STRANGER
        return min(self._longest, max(self._grace, factor * max(known)))

    def note(self, step: str, party: PartyId, seconds: float) -> None:
        """Remember how long an answer took."""
        self._seen[step, party].append(seconds)

    def note_dropout(self, step: str, party: PartyId, started: float) -> None:
        """Remember since when (on the monotonic clock) the answer of `party` has been due."""
        self._dropouts[party] = step, started

    def returned(self, party: PartyId) -> None:
        """A dropout is back: its answer took until now, and may take as long the next time."""
        step, started = self._dropouts.pop(party, (None, 0.0))
        if step is not None:
            self.note(step, party, time.monotonic() - started)
