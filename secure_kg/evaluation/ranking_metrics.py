"""Ranking results and losses as a sum: the server learns how the federation does, not how one client does."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np

from protocols.sums.interface import Contribution, SumLayout, Total
from secure_kg.evaluation.metric_names import METRICS, named_metrics
from secure_kg.evaluation.metrics import Metrics
from secure_kg.evaluation.sums import RankingSums

# Sums of reciprocal ranks and losses of one client stay far below 2^30, counts below 2^40; 64 bits hold both for any
# number of clients with an error under 2^-20 in a sum over thousands of triples.
_BOUND: Final = 2.0**30
_MAX_COUNT: Final = 2**40


@dataclass(frozen=True, slots=True)
class RankingMetrics(Metrics):
    """Ranks on one part, tail side and both sides, and the loss over the last round."""

    headline_name: ClassVar[str] = "MRR"
    figure_names: ClassVar[tuple[str, ...]] = (*METRICS, "both_sides")

    tail: RankingSums
    both: RankingSums
    loss_sum: float = 0.0
    loss_triples: int = 0

    counted: ClassVar[tuple[str, ...]] = ("count", "hits1", "hits3", "hits10", "hits5", "doubled_ranks")
    """Counts of `RankingSums` that are summed, per side."""

    @classmethod
    def layout(cls, parties: int) -> SumLayout:
        counts = 2 * len(cls.counted) + 1
        return SumLayout(3, counts, bound=_BOUND, max_count=_MAX_COUNT, parties=parties, ring_bits=64)

    def contribution(self) -> Contribution:
        counts = [getattr(side, name) for side in (self.tail, self.both) for name in self.counted]
        return Contribution(
            real=np.array([self.tail.reciprocal, self.both.reciprocal, self.loss_sum], dtype=np.float64),
            counts=np.array([*counts, self.loss_triples], dtype=np.int64),
        )

    @classmethod
    def of(cls, total: Total) -> Self:
        tail_sum, both_sum, loss_sum = (float(value) for value in total.real)
        counts, size = [int(value) for value in total.counts], len(cls.counted)
        sides = (counts[:size], tail_sum), (counts[size : 2 * size], both_sum)
        named = [dict(zip(cls.counted, numbers, strict=True)) for numbers, _ in sides]
        tail, both = (RankingSums(reciprocal=sums[1], **counts) for sums, counts in zip(sides, named, strict=True))
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


class FirstRankingMetrics(RankingMetrics):
    """Results as runs of format 1 sum them, without Hits@5 and ranks: for audits of their records."""

    __slots__ = ()
    counted: ClassVar[tuple[str, ...]] = ("count", "hits1", "hits3", "hits10")

    @classmethod
    def taken_from(cls, metrics: Metrics) -> Metrics:
        """For a run of that format that goes on."""
        if not isinstance(metrics, RankingMetrics):
            raise TypeError("results of another kind of learner")
        return cls(metrics.tail, metrics.both, metrics.loss_sum, metrics.loss_triples)
