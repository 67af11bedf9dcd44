"""Clients have the result of every sum of rows that stands before they train or rank again.

A server that keeps tables to itself, from one client or from all alike, has clients begin round after round at the same
rows, and reads in the sums how each of them is trained from there. Clients refuse to go on, except to their test
results. Whether what was sent is right is the question of `honest_totals`.
"""

import dataclasses

from protocols.registry import AGGREGATIONS
from protocols.session.conversation import Abandon
from protocols.sums.totals import SumTotal
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.audit.view.snapshots import Snapshots
from secure_kg.federation.plan.blocks import purpose_of
from secure_kg.federation.plan.messages import (
    Evaluate,
    Finish,
    LentTable,
    PackedRows,
    SaveCheckpoint,
    SharedBlock,
    SharedRows,
    TrainRound,
    Welcome,
)
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted


@dataclasses.dataclass(frozen=True, slots=True)
class _Newest:
    """Of one block: rounds of its sums, 0 for none."""

    summed: int = 0
    """The last one of this session, or the last that a checkpoint has rows of."""
    averaged: int = 0
    """The last one to which anybody contributed a row: a checkpoint knows of no other."""


class TablesBrought(Check):
    id = "tables-brought"
    question = "Did clients have to go on without the result of a sum of rows?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        blocks = RunPlan(config, clients).blocks
        self._sealed = {block.purpose for block in blocks if AGGREGATIONS[block.aggregation].sealed}
        self._read = {block.purpose for block in blocks} - self._sealed
        self._session = self._asked = 0
        self._greeted = False
        self._newest: dict[str, _Newest] = {}
        """By purpose, of the blocks whose sums the server reads."""
        self._before: dict[tuple[int, str], _Newest] = {}
        """By round and purpose of the last sums: what was the newest without them."""
        self._saved: Snapshots[dict[str, _Newest]] = Snapshots({})
        self._sums: dict[str, set[int]] = {}
        """By purpose, of the other blocks: rounds of this session's sums."""
        self._has: dict[tuple[int, str], int] = {}
        """By client and purpose: up to which round it was sent the rows."""
        self._got: dict[tuple[int, str], set[int]] = {}
        """By client and purpose: of which rounds it was sent the sums, or a table with them."""
        self._withheld = Evidence()

    def begin_session(self) -> None:
        self._session += 1
        self._greeted = False
        self._newest, self._before, self._has = {}, {}, {}
        self._sums, self._got = {purpose: set() for purpose in self._sealed}, {}

    def opened(self, total: OpenedSum) -> None:
        if total.vector is None or total.abandoned:
            return
        if total.purpose in self._sealed:
            self._sums[total.purpose].add(total.round)
        if total.purpose in self._read and total.layout is not None:
            before = self._newest.get(total.purpose, _Newest())
            some = bool(total.vector[total.layout.real_entries :].any())
            now = _Newest(total.round, total.round if some else before.averaged)
            self._newest = {**self._newest, total.purpose: now}
            self._before = {key: one for key, one in self._before.items() if key[0] == total.round}
            self._before[total.round, total.purpose] = before

    def observe(self, observation: Observation) -> None:
        if observation.direction != "sent":
            return
        peer, number = observation.peer, observation.round
        match observation.message:
            case Welcome(rounds_done=done) if not self._greeted:
                self._greeted = True
                known = self._saved.go_on_from(done) or {}
                self._newest = {name: _Newest(one.averaged, one.averaged) for name, one in known.items()}
            case SaveCheckpoint():
                self._saved.save(number, self._newest)
            case Abandon(purpose=purpose):
                self._forget(number, purpose)
            case SharedRows() | SharedBlock() | PackedRows() as sent:
                purpose = purpose_of(sent)
                self._has[peer, purpose] = self._newest.get(purpose, _Newest()).summed
            case SumTotal(purpose=purpose, of_round=of_round):
                self._got.setdefault((peer, purpose), set()).add(of_round)
            case LentTable():
                for purpose, rounds in self._sums.items():
                    self._got.setdefault((peer, purpose), set()).update(rounds)
            case TrainRound() | Evaluate() | Finish():
                self._asked += 1
                self._judge(observation)

    def _forget(self, number: int, purpose: str) -> None:
        """An abandoned sum has no result that anybody could lack; that it was opened is told by `abandoned_sums`."""
        if purpose in self._sealed:
            self._sums[purpose].discard(number)
        if (before := self._before.pop((number, purpose), None)) is not None:
            self._newest = {**self._newest, purpose: before}

    def _judge(self, observation: Observation) -> None:
        peer = observation.peer
        lacking = {
            purpose: {newest.summed}
            for purpose, newest in self._newest.items()
            if newest.summed > self._has.get((peer, purpose), 0)
        }
        for purpose, rounds in self._sums.items():
            if lacks := rounds - self._got.get((peer, purpose), set()):
                lacking[purpose] = lacks
        for purpose, rounds in sorted(lacking.items()):
            self._withheld.add(
                f"session {self._session}, round {observation.round}: client {peer} was told {observation.kind} "
                f"without the result of the sum of {purpose} of round {min(rounds)}"
            )

    def findings(self) -> list[Finding]:
        if not self._withheld:
            return []
        return [
            Finding(
                "tables-withheld",
                "high",
                "Clients were to go on without the results of sums that the server had",
                self._withheld.told(),
                "The server had opened these sums, had not abandoned them, and did not send clients what they give. "
                "Clients that begin several rounds at the same rows show it how each of them is trained from there. "
                "They refuse to train or to be evaluated without a result.",
            )
        ]

    @property
    def seen(self) -> int:
        return self._asked

    def looked_at(self) -> str:
        return f"{counted(self._asked, 'request')} to train or to rank"
