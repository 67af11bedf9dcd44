"""What an auditor knows of the sums of a session beforehand: of a training run its plan, of others less."""

from collections.abc import Collection
from typing import Protocol

from protocols.alignment.psu.attempts import Attempt
from protocols.sums.secagg.params import SumParameters
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.run_plan import PlannedSum, PublicState


class SumPlan(Protocol):
    """What an auditor knows of the sums of a session beforehand."""

    @property
    def blocks(self) -> Collection[Block]: ...

    def sum_of(self, round_id: int, purpose: str, public: PublicState) -> PlannedSum: ...

    def parameters(self, participants: int) -> SumParameters: ...

    def union_attempt(self, number: int, public: PublicState) -> Attempt: ...
