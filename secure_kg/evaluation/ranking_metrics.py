"""Ranking results and losses as a sum: the server learns how the federation does, not how one client does."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np

from protocols.sums.interface import Contribution, SumLayout, Total
from secure_kg.evaluation.metric_names import named_metrics
from secure_kg.evaluation.metrics import Metrics
from secure_kg.evaluation.sums import RankingSums

# Sums of reciprocal ranks and losses of one client stay far below 2^30, counts below 2^40; 64 bits hold both for any
# number of clients with an error under 2^-20 in a sum over thousands of triples.
_BOUND: Final = 2.0**30
_MAX_COUNT: Final = 2**40
_COUNTS: Final = 4
"""Count entries per side."""


@dataclass(frozen=True, slots=True)
class RankingMetrics(Metrics):
    """Ranks on one part, tail side and both sides, and the loss over the last round."""

    headline_name: ClassVar[str] = "MRR"

    tail: RankingSums
    both: RankingSums
    loss_sum: float = 0.0
    loss_triples: int = 0

    @classmethod
    def layout(cls, parties: int) -> SumLayout:
        entries = {"real_entries": 3, "count_entries": 2 * _COUNTS + 1}
        return SumLayout(**entries, bound=_BOUND, max_count=_MAX_COUNT, parties=parties, ring_bits=64)

    def contribution(self) -> Contribution:
        return Contribution(
            real=np.array([self.tail.reciprocal, self.both.reciprocal, self.loss_sum], dtype=np.float64),
            counts=np.array([*_counts(self.tail), *_counts(self.both), self.loss_triples], dtype=np.int64),
        )

    @classmethod
    def of(cls, total: Total) -> Self:
        tail_sum, both_sum, loss_sum = (float(value) for value in total.real)
        counts = [int(value) for value in total.counts]
        tail, both = _sums(counts[:_COUNTS], tail_sum), _sums(counts[_COUNTS : 2 * _COUNTS], both_sum)
        return cls(tail, both, loss_sum, counts[-1])

    @property
    def headline(self) -> float:
        return self.tail.metrics()["mrr"]

    @property
    def examples(self) -> int:
        return self.tail.count

    @property
    def loss(self) -> float:
        return self.loss_sum / max(self.loss_triples, 1)

    def figures(self) -> dict[str, Any]:
        """Tail-side figures at the top level, both sides below."""
        return {**self.tail.metrics(), "both_sides": self.both.metrics()}

    def evaluation(self) -> dict[str, Any]:
        return {"loss": self.loss, "valid": self.tail.metrics(), "valid_both_sides": self.both.metrics()}

    @classmethod
    def described(cls, figures: dict[str, Any]) -> dict[str, Any]:
        return named_metrics(figures)


def _counts(sums: RankingSums) -> tuple[int, int, int, int]:
    return sums.count, sums.hits1, sums.hits3, sums.hits10


def _sums(counts: list[int], reciprocal: float) -> RankingSums:
    count, hits1, hits3, hits10 = counts
    return RankingSums(count, reciprocal, hits1, hits3, hits10)
