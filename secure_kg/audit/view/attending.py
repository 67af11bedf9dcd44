"""Attendance by the record of a session: who was excluded when, and which sums were abandoned."""

from collections.abc import Collection

from protocols.alignment.psu.attempts import UnionPlaces
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.session.conversation import Abandon, Back, LeaveOut
from protocols.sums.totals import SumTotal
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.messages import (
    Evaluate,
    Finish,
    Goodbye,
    SaveCheckpoint,
    SharedBlock,
    SharedRows,
    TrainRound,
    Verdict,
)

_NEWS = SharedRows | SharedBlock | SumTotal | UnionPlaces
_NEXT = _NEWS | TrainRound | Evaluate | Verdict | SaveCheckpoint | Finish | Goodbye


class Attending:
    """One session. What comes from a client that is left out counts for nothing until it says that it is back."""

    def __init__(self, blocks: Collection[Block]) -> None:
        """`blocks`: those that the run shares."""
        self._counted = frozenset(block.purpose for block in blocks if block.aligned)
        self.absent: set[int] = set()
        self.abandoned: set[tuple[int, str]] = set()
        """Round and purpose of sums that a party has ended without a result."""

    def observe(self, observation: Observation) -> None:
        peer, number, purpose = observation.peer, observation.round, observation.purpose
        match observation.message:
            case LeaveOut():
                self.absent.add(peer)
            case Back():
                self.absent.discard(peer)
            case Abandon() if observation.direction == "sent" or peer not in self.absent:
                self.abandoned.add((number, purpose))
                if purpose == HOLDERS:  # the sum of rows that the count was made for ends with it
                    self.abandoned.update((number, rows) for rows in self._counted)


def goes_on(observation: Observation) -> bool:
    """Whether a server that sends this is done with the sums before it."""
    return observation.direction == "sent" and isinstance(observation.message, _NEXT)


def abandons(observation: Observation) -> bool:
    """Whether this is a server's word that a sum ends without a result."""
    return observation.direction == "sent" and isinstance(observation.message, Abandon)
