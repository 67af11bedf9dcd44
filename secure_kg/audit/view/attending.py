"""Attendance by the record of a session: who was excluded when, which sums were abandoned, and what a server drops.

A client may send whatever it likes. An honest server drops what is of an earlier round, what comes from a dropout
before its `Back`, and what is about a sum that is over, or refuses one that is not awaited from this client
(`protocols.session.conversation`). So none of it is a ground to judge the server on: by `takes` an audit knows what the
server went by. As far as the server's program explains the record, it is asked. From the first difference on, rules of
this module decide.

A word of the server ends a sum only if that has begun. One that is called abandoned beforehand, and then goes on, is a
sum like any other.
"""

from collections.abc import Collection
from typing import Final, Protocol

from protocols.alignment.psu.attempts import UnionPlaces
from protocols.foundation import wire
from protocols.holders.interface import PURPOSE as HOLDERS
from protocols.registry import AGGREGATIONS
from protocols.session.conversation import Abandon, Back, Failed, LeaveOut
from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import (
    AdvertiseKeys,
    EncryptedShares,
    KeyDirectory,
    MaskedInput,
    ShareKeys,
    SignedSurvivors,
    Survivors,
    SurvivorSignature,
    UnmaskShares,
)
from protocols.sums.totals import SumTotal
from secure_kg.audit.view.directions import misdirected
from secure_kg.audit.view.read import Observation, Unreadable
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.messages import (
    CountHolders,
    Evaluate,
    Finish,
    Goodbye,
    PackedRows,
    SaveCheckpoint,
    SharedBlock,
    SharedRows,
    TrainRound,
    Verdict,
)
from secure_kg.federation.plan.run_plan import RunPlan

_NEWS = SharedRows | SharedBlock | PackedRows | SumTotal | UnionPlaces
_NEXT = _NEWS | CountHolders | TrainRound | Evaluate | Verdict | SaveCheckpoint | Finish | Goodbye
_REQUESTS = KeyDirectory | EncryptedShares | Survivors | SignedSurvivors
Key = tuple[int, str]
"""Round and purpose of a sum."""
_Step = tuple[str, type[wire.Message]]
"""Purpose, and what a client says."""
_KNOWN: Final = frozenset({"secagg", "secret", "plain"})
"""Aggregations whose steps are known here."""


class Sums(Protocol):
    """The sums of a session that is no training run."""

    @property
    def blocks(self) -> Collection[Block]: ...


class Known(Protocol):
    """A session that the server's program has gone through again (`secure_kg.audit.replay`)."""

    @property
    def explained(self) -> int:
        """How many messages it has gone through."""

    @property
    def difference(self) -> str:
        """Where it went another way; empty if it explains the whole record."""

    @property
    def passed(self) -> Collection[int]:
        """Numbers of those that it has received and did not go by."""

    @property
    def refused(self) -> int | None:
        """The number of a client's message for which it ended the session."""


class Attending:
    """One session. What comes from a client that is left out counts for nothing until it says that it is back."""

    def __init__(self, plan: "RunPlan | Sums", known: "Known | None" = None) -> None:
        """`plan`: of a training run, or of any other session. Which answers are due is known of the former only.

        `known`: what the server's program went by, as far as it went the way of the record.
        """
        self._known = known
        self._plan = plan if isinstance(plan, RunPlan) else None
        self._counted = frozenset(block.purpose for block in plan.blocks if block.aligned)
        self._round = 0
        """Of what the server said last."""
        self.absent: set[int] = set()
        self._begun: set[Key] = set()
        self._over: set[Key] = set()
        """Sums under way that the server has ended without a result, and has asked for nothing more of."""
        self._refused: set[Key] = set()
        """Sums that a client has refused while the server awaited its answer."""
        self._counting: dict[int, int] = {}
        """By client: the last round in which it was told to count holders."""
        self._due: dict[int, list[_Step] | None] = {}
        """By client: what it is still to say in the sums that it was asked for. None: not known."""

    @property
    def abandoned(self) -> set[Key]:
        """Sums that a party has ended without a result."""
        return self._over | self._refused

    def takes(self, observation: Observation) -> bool:
        """Whether an honest server says this, or goes by it. `observe` must come after this."""
        message, peer, number = observation.message, observation.peer, observation.round
        if self._known is not None and observation.index < self._known.explained:
            return observation.index not in self._known.passed
        if isinstance(message, Unreadable) or misdirected(type(message), observation.direction):
            return False
        if observation.direction == "sent" or isinstance(message, Failed):
            return True
        if peer in self.absent:
            return isinstance(message, Back)
        if number != self._round:
            return number > self._round
        if (number, observation.purpose) in self._over:
            return False
        return not isinstance(message, Abandon) or self._awaits(peer, number, observation.purpose)

    def _awaits(self, peer: int, number: int, purpose: str) -> bool:
        due = self._due.get(peer, [] if self._plan is not None else None)
        return not number or due is None or (bool(due) and due[0][0] == purpose)

    def observe(self, observation: Observation) -> None:
        if not self.takes(observation):
            return
        if observation.direction == "sent":
            self._said(observation)
        else:
            self._heard(observation)

    def _said(self, observation: Observation) -> None:
        peer, key = observation.peer, (observation.round, observation.purpose)
        self._round = observation.round
        match observation.message:
            case LeaveOut():
                self.absent.add(peer)
            case CountHolders():
                self._counting[peer] = observation.round
            case TrainRound():
                self._due[peer] = self._steps_of_blocks(counting=self._counts_in(observation.round, peer))
            case Evaluate():
                self._due[peer] = self._steps_of_results("valid")
            case Finish(wanted=wanted):
                self._due[peer] = self._steps_of_results("test") if wanted else []
            case Abandon():
                self._over |= {one for one in self._ended_with(key) if one in self._begun}
            case message if isinstance(message, _REQUESTS):
                self._over.discard(key)  # it goes on after all

    def _heard(self, observation: Observation) -> None:
        peer, key = observation.peer, (observation.round, observation.purpose)
        match observation.message:
            case Back():
                self.absent.discard(peer)
                self._due[peer] = []
            case Abandon():
                self._refused |= self._ended_with(key)
            case message if key[1]:
                self._begun.add(key)
                due = self._due.get(peer)
                if due and (step := (key[1], type(message))) in due:  # keys may come before those of other sums
                    due.remove(step)

    def _ended_with(self, key: Key) -> set[Key]:
        """The sum of rows that a count was made for ends with it."""
        return {key, *((key[0], rows) for rows in self._counted if key[1] == HOLDERS)}

    def _steps_of_results(self, purpose: str) -> list[_Step] | None:
        return self._steps([(purpose, self._plan.settings.aggregation)]) if self._plan is not None else None

    def _counts_in(self, number: int, peer: int) -> bool:
        """Whether holders are counted. Until format 3 they were in every round, and nobody said so."""
        return self._counting.get(peer) == number or (self._plan is not None and self._plan.settings.format <= 3)

    def _steps_of_blocks(self, *, counting: bool) -> list[_Step] | None:
        """Keys of all sums of a round are agreed on before the first is collected."""
        plan, sums = self._plan, list[tuple[str, str]]()
        if plan is None:
            return None
        for block in plan.blocks:
            if block.aligned and plan.settings.least_holders > 1 and counting:
                sums.append((HOLDERS, plan.counted_by))
            sums.append((block.purpose, block.aggregation))
        return self._steps(sums)

    def _steps(self, sums: list[tuple[str, str]]) -> list[_Step] | None:
        if self._plan is None or not {aggregation for _, aggregation in sums} <= _KNOWN:
            return None
        collecting: list[type[wire.Message]] = [MaskedInput, UnmaskShares]
        if self._plan.settings.adversary == "active":
            collecting.insert(1, SurvivorSignature)
        prepared, collected = list[_Step](), list[_Step]()
        for purpose, aggregation in sums:
            if AGGREGATIONS[aggregation].needs_keys:
                prepared += [(purpose, AdvertiseKeys), (purpose, ShareKeys)]
                collected += [(purpose, kind) for kind in collecting]
            else:
                collected.append((purpose, ClearInput))
        return prepared + collected


def goes_on(observation: Observation) -> bool:
    """Whether a server that sends this is done with the sums before it."""
    return observation.direction == "sent" and isinstance(observation.message, _NEXT)


def abandons(observation: Observation) -> bool:
    """Whether this is a server's word that a sum ends without a result."""
    return observation.direction == "sent" and isinstance(observation.message, Abandon)
