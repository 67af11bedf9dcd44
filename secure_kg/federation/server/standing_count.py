"""The count of holders that stands, as the server knows it: over whom it was made, and when another one is due.

The server asks for a count only when it must: clients add no rows without one over the very participants
(`protocols.holders.interface`), and open no sum from which somebody is missing who was counted. So a count stands while
the same clients are present. A dropout costs the sum of the round in which it happens, where a count of that round
would have left it out. As dropouts seldom come alone, holders are then counted in every round for a while.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import CountTask

WARY_ROUNDS: Final = 10
"""So many rounds after a dropout, holders are counted in each."""


class StandingCount:
    """Of a run. Nothing of it is kept for the next session, in which clients have counted nothing."""

    def __init__(self) -> None:
        self._task: CountTask | None = None
        self._over: frozenset[PartyId] = frozenset()
        self._wary_until = 0

    def is_due(self, task: CountTask, present: Collection[PartyId]) -> bool:
        """Whether holders must be counted for this task, with those who are `present` now."""
        if self._task is None or task.round <= self._wary_until:
            return True
        here = frozenset(task.participants) & frozenset(present)
        return replace(self._task, round=task.round) != task or here != self._over

    @property
    def over(self) -> frozenset[PartyId]:
        """Who was counted: nobody of them may be missing from a sum of rows."""
        return self._over

    def made(self, task: CountTask, over: frozenset[PartyId]) -> None:
        self._task, self._over = task, over

    def fall(self) -> None:
        """A count begins, or a sum of rows was abandoned: what was counted before stands no longer."""
        self._task, self._over = None, frozenset()

    def dropout(self, round_id: int) -> None:
        """Clients dropped out in a round, and know of no count any more."""
        self.fall()
        self._wary_until = round_id + WARY_ROUNDS
