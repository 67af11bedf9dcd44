"""Rows chosen by noised counts, noise on those: in the manner of DP-AdaFEST.

Reference: Ghazi et al., "Sparsity-Preserving Differentially Private Training of Large Embedding Models", NeurIPS 2023.
A step computes how many triples touch each row (the contribution map), each triple's part scaled to a norm
of at most one over all rows that it touches; adds Gaussian noise; keeps rows with a noised count of at least a
threshold; and adds noise to the gradient of the kept rows alone.

Cost: the counts have sensitivity 1 and noise σ₁; the sums have sensitivity C and noise σ₂ C, and they are masked by
what was released before. Both look at one sample. Together they are one Gaussian release of multiplier
(σ₁^-2 + σ₂^-2)^(-1/2), amplified once.

Deviations: the ends of a triple count, with 1/√2 each, and its candidates do not, since these are the same for all and
public: their rows are always kept. Relation rows are always kept. The gradient is clipped before rows are left out.
"""

import math
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from secure_kg.foundation.errors import UserError
from secure_kg.privacy.accounting.releases import Release, joint
from secure_kg.privacy.draws.noise import Grid, NoiseSource
from secure_kg.privacy.mechanisms.chosen_rows import noised_rows, split
from secure_kg.privacy.mechanisms.interface import Mechanism, NoisedSums, PrivateStep

_COUNTS = Grid(sensitivity=1.0 + 2.0**-20, coordinates=2)  # more than rounding errors of added square roots


@dataclass(frozen=True, slots=True)
class AdaFest(Mechanism):
    """Counts with noise σ₁ against a threshold, then sums with noise σ₂."""

    selection_noise: float
    noise: float
    threshold: float
    """Of a noised count, in which a triple that is no self loop has 1/√2 for each end."""
    sampling: float = 1.0

    def __post_init__(self) -> None:
        joint(self.selection_noise, self.noise)
        if not math.isfinite(self.threshold):
            raise UserError("the threshold of counts must be finite")

    @classmethod
    def of_total(cls, total: float, threshold: float, sampling: float = 1.0, share: float = 0.1) -> Self:
        """Settings that cost one release of multiplier `total`, of which the choice of rows takes a share."""
        if not 0 < share < 1:
            raise UserError("the share of the choice of rows lies between 0 and 1")
        selection_noise, noise = split(total, share, 1 - share)
        return cls(selection_noise, noise, threshold, sampling)

    def releases(self) -> tuple[Release, ...]:
        return (Release(joint(self.selection_noise, self.noise), self.sampling),)

    def privatise(self, step: PrivateStep, source: NoiseSource) -> NoisedSums:
        counts = _COUNTS.noised(contributions(step.triples, len(step.sums.entity)), self.selection_noise, source)
        return noised_rows(step, counts >= self.threshold, self.noise, source)

    def scaled(self, factor: float) -> Self:
        return replace(self, selection_noise=self.selection_noise * factor, noise=self.noise * factor)


def contributions(triples: Tensor, entities: int) -> Tensor:
    """How much triples [b, 3] touch each entity [entities]; of each triple a vector of norm one."""
    head, _, tail = triples.t()
    part = torch.where(head == tail, 0.5, math.sqrt(0.5)).double()  # a self loop adds twice to one row
    counts = torch.zeros(entities, dtype=torch.float64, device=triples.device)
    return counts.index_add_(0, head, part).index_add_(0, tail, part)
