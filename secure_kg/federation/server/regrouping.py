"""Regrouping: a session ends in good order, so that the next one begins with a client that has come again.

A client whose process was started again lacks the keys of the session under way, so it can be in no sum of it. The next
session goes on from a checkpoint, and repeats the rounds after it. That is allowed only where it repeats the same sums
over the same clients: then they are the same numbers, and show nothing new. A sum that was opened without a client must
not be repeated with it, because the difference of the two would be its input (clients refuse it:
`protocols.sums.secagg.openings`). So there are two ways, and a session takes the first where it can:

BACK              since the checkpoint every sum was over everybody who will be in the next session: go back at once.
                  The run ends as if nothing had happened.
CHECKPOINT_FIRST  some sum was not. A checkpoint is written first, so that no sum is repeated. The client was a dropout.

In the middle of a round only the first way is open. Before names are aligned, a session that loses a client begins
again without waiting for it to come: rows of a client that was not there then have no place in the run. Once a sum of
the alignment may have been opened it begins again only with all of them, for which it waits a little: members would
refuse to open it over fewer, and nothing would ever come of the run.

A client that comes again and again costs the others a few regroupings within some rounds and no more (`Budget`); then
it waits. Nothing here is trusted by clients: each decides from its own record which sums it helps to open.
"""

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import PartyId
from protocols.transport.base import party_names

MOST: Final = 3
"""Regroupings within as many rounds as lie between two checkpoints, and at least `WITHIN`."""
WITHIN: Final = 10
_LOOK_SECONDS: Final = 0.1


class RegroupNeeded(ProtocolError):
    """The session has ended for the next one to begin. The text is for the clients."""


class Step(Enum):
    """What a session does next."""

    GO_ON = "go on"
    BACK = "back to the checkpoint"
    CHECKPOINT_FIRST = "checkpoint first"


@dataclass(frozen=True, slots=True)
class Situation:
    """What a decision depends on."""

    done: int
    """Rounds that are over."""
    checkpoint: int
    """The last round of which there is a complete checkpoint; 0: none, and the run would begin anew."""
    group: frozenset[PartyId]
    """The clients present at that checkpoint, or when this session began."""
    steady: bool
    """Whether every sum since then was over all of them."""
    present: frozenset[PartyId]
    newcomers: frozenset[PartyId]

    @property
    def repeats_the_same(self) -> bool:
        """Whether the next session would repeat the sums since the checkpoint over the same clients."""
        return self.steady and self.present | self.newcomers == self.group


def between_rounds(situation: Situation) -> Step:
    """The step of a session in which no sum is under way."""
    if not situation.newcomers:
        return Step.GO_ON
    if situation.done == situation.checkpoint or situation.repeats_the_same:
        return Step.BACK
    return Step.CHECKPOINT_FIRST


def in_a_sum(situation: Situation) -> Step:
    """The step of a session that is about to go on without newcomers who were present until now."""
    return Step.BACK if situation.newcomers and situation.repeats_the_same else Step.GO_ON


@dataclass(slots=True)
class Budget:
    """How often sessions of one run may end for newcomers."""

    within: int = WITHIN
    _resumed_at: list[int] = field(default_factory=list)

    def allows(self, done: int) -> bool:
        """Whether another one is allowed after `done` rounds. Rounds count from where earlier ones went back to."""
        return sum(number > done - self.within for number in self._resumed_at) < MOST

    def note(self, resumed_at: int) -> None:
        """A session has ended; the next one goes on from that round."""
        self._resumed_at.append(resumed_at)


class Regrouping:
    """What one session has seen so far, for these decisions. Sessions of one run share `budget`.

    `newcomers`: asked for clients that wait for a new session. `absent`: clients that are not there when the session
    begins, with a word on why. `may_checkpoint`: whether the run writes checkpoints at all.
    """

    def __init__(
        self,
        newcomers: Callable[[], Collection[PartyId]],
        absent: Mapping[PartyId, str] | None = None,
        budget: Budget | None = None,
        *,
        may_checkpoint: bool = True,
        lasting: bool = False,
        come_again: float = 0.0,
    ) -> None:
        """`lasting`: the host begins another session whenever one ends. So a client that says it cannot go on is a
        dropout, and may come again. `come_again`: seconds to wait for it where it must not be missing."""
        self.absent = dict(absent or {})
        self.lasting = lasting
        self.aligning = False
        """Whether names are yet to be aligned, among those who are there."""
        self._come_again, self._opened = come_again, False
        self._ask, self._may_checkpoint = newcomers, may_checkpoint
        self._budget = budget if budget is not None else Budget()
        self._checkpoint, self._group, self._steady = 0, frozenset[PartyId](), False
        self._may_join: frozenset[PartyId] | None = None

    def begin(self, present: Collection[PartyId], checkpoint: int) -> None:
        """From here on sums are over `present`, until anything is said otherwise."""
        self._group, self._checkpoint, self._steady = frozenset(present), checkpoint, True

    def aligned_with(self, clients: Collection[int]) -> None:
        """Names were aligned among these clients; rows of others have no place in the run."""
        self._may_join, self.aligning = frozenset(PartyId(client) for client in clients), False

    def unsteady(self) -> None:
        """A sum was not over everybody of the group, or may not have been."""
        self._steady = False

    def after_round(self, done: int, present: Collection[PartyId]) -> Step:
        """The step between two rounds."""
        situation = self._situation(done, present)
        step = between_rounds(situation)
        if step is Step.CHECKPOINT_FIRST and not self._may_checkpoint:
            return Step.GO_ON
        return step if step is Step.GO_ON or self._budget.allows(done) else Step.GO_ON

    def instead_of_dropping(self, parties: Collection[PartyId], present: Collection[PartyId], done: int) -> None:
        """`RegroupNeeded` if these would be dropped only because they have come again, and no sum is lost by it; or if
        they would have no place in the run."""
        if self.lasting and self.aligning and self._budget.allows(done) and self._may_align_anew(parties):
            raise self.end(f"{party_names(parties)} dropped out before names were aligned")
        again = self._newcomers() & frozenset(parties)
        situation = self._situation(done, frozenset(present) - frozenset(parties))
        if again and in_a_sum(situation) is Step.BACK and self._budget.allows(done):
            raise self.end()

    def opening(self) -> None:
        """A sum is about to be opened."""
        self._opened = True

    def _may_align_anew(self, parties: Collection[PartyId]) -> bool:
        """Whether another session could align names: over fewer than had a sum opened it could not."""
        deadline = Deadline.after(self._come_again)
        while self._opened and not frozenset(parties) <= self._newcomers():
            if deadline.expired:
                return False
            time.sleep(min(_LOOK_SECONDS, max(deadline.remaining(), 0.0)))
        return True

    def instead_of_waiting(self) -> None:
        """`RegroupNeeded` if too few are left for any sum, and some have come again. What cannot be repeated, clients
        refuse to repeat; the others would wait in vain."""
        if self._newcomers():
            raise self.end()

    def end(self, why: str = "") -> RegroupNeeded:
        """The error with which the session ends; the next one goes on from the last complete checkpoint."""
        self._budget.note(self._checkpoint)
        again = self._newcomers()
        why = why or f"{party_names(again)} {'has' if len(again) == 1 else 'have'} come again"
        return RegroupNeeded(f"{why}; all go on together after round {self._checkpoint}")

    def _situation(self, done: int, present: Collection[PartyId]) -> Situation:
        return Situation(done, self._checkpoint, self._group, self._steady, frozenset(present), self._newcomers())

    def _newcomers(self) -> frozenset[PartyId]:
        found = frozenset(self._ask())
        return found if self._may_join is None else found & self._may_join
