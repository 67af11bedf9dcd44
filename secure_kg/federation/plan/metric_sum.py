"""Ranking results and losses as a sum: the server learns how the federation does, not how one client does."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from protocols.sums.interface import Contribution, SumLayout, Total
from secure_kg.evaluation.sums import RankingSums

# Sums of reciprocal ranks and losses of one client stay far below 2^30, counts below 2^40; 64 bits hold both for any
# number of clients with an error under 2^-20 in a sum over thousands of triples.
_BOUND: Final = 2.0**30
_MAX_COUNT: Final = 2**40


@dataclass(frozen=True, slots=True)
class ClientMetrics:
    """What one client adds: its ranks on one part, tail side and both sides, and its loss over the last round."""

    tail: RankingSums
    both: RankingSums
    loss_sum: float = 0.0
    loss_triples: int = 0

    @property
    def loss(self) -> float:
        return self.loss_sum / max(self.loss_triples, 1)


def metric_layout(parties: int) -> SumLayout:
    return SumLayout(real_entries=3, count_entries=9, bound=_BOUND, max_count=_MAX_COUNT, parties=parties, ring_bits=64)


def metric_contribution(metrics: ClientMetrics) -> Contribution:
    tail, both = metrics.tail, metrics.both
    return Contribution(
        real=np.array([tail.reciprocal, both.reciprocal, metrics.loss_sum], dtype=np.float64),
        counts=np.array([*_counts(tail), *_counts(both), metrics.loss_triples], dtype=np.int64),
    )


def metrics_of(total: Total) -> ClientMetrics:
    """The federation's metrics, as if all ranked triples belonged to one client."""
    tail_sum, both_sum, loss_sum = (float(value) for value in total.real)
    counts = [int(value) for value in total.counts]
    return ClientMetrics(_sums(counts[0:4], tail_sum), _sums(counts[4:8], both_sum), loss_sum, counts[8])


def _counts(sums: RankingSums) -> tuple[int, int, int, int]:
    return sums.count, sums.hits1, sums.hits3, sums.hits10


def _sums(counts: list[int], reciprocal: float) -> RankingSums:
    count, hits1, hits3, hits10 = counts
    return RankingSums(count, reciprocal, hits1, hits3, hits10)
