"""Lines on how a run goes on: one for each evaluation, and one now and then where evaluations are far apart."""

import time
from collections.abc import Callable
from typing import Final

from secure_kg.federation.server.ledger import Ledger
from secure_kg.foundation.progress import Remaining

_SECONDS_WITHOUT_A_LINE: Final = 30.0


class RoundLines:
    """Of one session, made when its first round begins.

    `rounds`: the most there can be; early stopping may end a run before. `done`: by earlier sessions.
    """

    def __init__(
        self,
        report: Callable[[str], None],
        rounds: int,
        ledger: Ledger,
        done: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._report, self._rounds, self._ledger, self._clock = report, rounds, ledger, clock
        self._remaining, self._last = Remaining(rounds, done, clock), clock()

    def round(self, done: int) -> None:
        """A round is over, evaluated or not."""
        if self._clock() - self._last >= _SECONDS_WITHOUT_A_LINE:
            self._say(done, "trained")

    def evaluated(self, done: int, told: str, *, best: bool) -> None:
        self._say(done, told, "  best so far" if best else "")

    def _say(self, done: int, told: str, mark: str = "") -> None:
        self._last = self._clock()
        left = f"  {self._remaining.words(done)}" if done < self._rounds else ""
        # "at most": a run may stop early.
        left = left.replace("about", "at most about")
        self._report(f"round {done:4d}/{self._rounds}  {told}  {self._ledger.elapsed:6.1f} s{left}{mark}")
