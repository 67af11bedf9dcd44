"""Which sums a client has helped to open, and over whom: kept for as long as its inputs may come again.

A resumed job computes the rounds after its last checkpoint once more, from the same seeds, so the same inputs go into
new sums. Over the same survivors the sum is the same and shows nothing new. Over other survivors, because somebody is
missing this time, the difference of the two sums would be the input of the missing client. A client therefore helps to
open a sum for the second time over the same survivors only.

In a sparse graph a client sees its neighbours only, and a new session gives it new ones: there it opens no sum twice.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from protocols.errors import SumAbandoned
from protocols.identifiers import PartyId, RoundId

Opened: TypeAlias = tuple[int, str]
"""Round and purpose."""
Note: TypeAlias = Callable[[RoundId, str, frozenset[PartyId]], None]
"""Write down what is about to be opened; must not return before it is safe from the process's own death."""


class Openings:
    """`known`: what was opened before this session. `note`: where to write down what is opened now."""

    def __init__(self, known: Mapping[Opened, Collection[PartyId]] | None = None, note: Note | None = None) -> None:
        self._known = {opened: frozenset(survivors) for opened, survivors in (known or {}).items()}
        self._note = note

    def __repr__(self) -> str:
        return f"Openings({len(self._known)} sums)"

    def open(self, round_id: RoundId, purpose: str, survivors: frozenset[PartyId]) -> None:
        """Called right before a client answers for `survivors`; `SumAbandoned` if it must not."""
        before = self._known.setdefault((int(round_id), purpose), survivors)
        if before != survivors:
            raise SumAbandoned(
                f"the sum of {purpose} of round {round_id} was opened before over other clients; the difference would "
                "be the input of those missing"
            )
        if self._note is not None:
            self._note(round_id, purpose, survivors)
