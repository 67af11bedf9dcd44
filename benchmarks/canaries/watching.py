"""The attacker beside a training: sees every noised sum, and weighs for each canary whether it is in.

Adversary:   knows the code, faults included, the settings, the seed, the model before each step, and what each canary
             would add. Does not know the coins and the noise.
Evidence:    with y the noised sum in the canary's own rows and g what the canary would add there, ⟨y, g⟩ − |g|² / 2,
             summed over steps: the logarithm of the likelihood ratio, up to the variance of the noise, which is the
             same for all. Own rows that hold exactly zero, without noise, say for certain that the canary is out.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Self

import torch
from torch import Tensor

from secure_kg.privacy.accounting.releases import Release
from secure_kg.privacy.draws.noise import NoiseSource
from secure_kg.privacy.gradients.clipped_sums import ClippedSums
from secure_kg.privacy.mechanisms.interface import Mechanism, NoisedSums, PrivateStep

Clipping = Callable[[Tensor, Tensor], ClippedSums]
"""From triples [b, 3] and candidates [k] to the clipped sums at the current model."""


@dataclass(slots=True)
class Watched(Mechanism):
    """A mechanism under the eyes of the attacker. Training takes it in place of the mechanism itself."""

    inner: Mechanism
    canaries: Tensor
    """[m, 3]."""
    clipping: Clipping
    """The audited code's, which the attacker applies to the canaries."""
    faulty_clipping: bool
    """Whether the sums of a step come from `clipping` too; otherwise they are those that training computed."""
    evidence: Tensor = field(init=False)
    """[m]."""
    residuals: list[Tensor] = field(init=False, default_factory=list)
    """Noised sums less exact ones, of both tables, one vector for each step. For the auditor alone."""

    def __post_init__(self) -> None:
        self.evidence = torch.zeros(len(self.canaries), dtype=torch.float64)

    def releases(self) -> tuple[Release, ...]:
        return self.inner.releases()

    def privatise(self, step: PrivateStep, source: NoiseSource) -> NoisedSums:
        if self.faulty_clipping:
            step = replace(step, sums=self.clipping(step.triples, step.candidates))
        noised = self.inner.privatise(step, source)
        pairs = ((noised.entity, step.sums.entity), (noised.relation, step.sums.relation))
        self.residuals.append(torch.cat([(seen - exact).reshape(-1) for seen, exact in pairs]))
        self._weigh(noised, step.candidates)
        return noised

    def scaled(self, factor: float) -> Self:
        return replace(self, inner=self.inner.scaled(factor))

    def _weigh(self, noised: NoisedSums, candidates: Tensor) -> None:
        # No two canaries share a row, so one sum over all of them has what each would add, row by row.
        own = self.clipping(self.canaries, candidates)
        shared = torch.zeros(len(noised.entity), dtype=torch.bool)
        shared[candidates] = True
        alone = torch.zeros(len(noised.relation), dtype=torch.bool)
        bare = torch.ones(len(self.canaries), dtype=torch.bool)
        for ids, seen, added, left_aside in (
            (self.canaries[:, 0], noised.entity, own.entity, shared),
            (self.canaries[:, 2], noised.entity, own.entity, shared),
            (self.canaries[:, 1], noised.relation, own.relation, alone),
        ):
            y, g, aside = seen[ids], added[ids], left_aside[ids]
            self.evidence += ((y * g).sum(1) - (g * g).sum(1) / 2).masked_fill(aside, 0.0)
            bare &= aside | (y == 0).all(1)
        self.evidence[bare] = -torch.inf
