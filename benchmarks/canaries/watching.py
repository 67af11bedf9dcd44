"""The attacker beside a training: sees every noised sum, and weighs for each canary whether it is in.

Adversary:   knows the code, faults included, the settings, the seed, the model before each step, and what each canary
             would add. Does not know the coins, the noise and the samples.
Evidence:    with y the noised sum in the canary's own rows, g what the canary would add there and s the deviation of
             the noise, l = (⟨y, g⟩ − |g|² / 2) / s² is the logarithm of the likelihood ratio of one step. A canary that
             is in is in a Poisson sample with probability q only, so the step says log(1 − q + q e^l). Steps add up.
Chosen rows: a row that was left out, and holds zero, says how likely that is with the canary and without it; a row that
             was chosen says so too, and has its y besides.
Bare rows:   own rows that all hold exactly zero, without noise, say for certain that the canary is out.
"""

import math
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


@dataclass(frozen=True, slots=True)
class ChoiceTold:
    """What it says of a canary that a row of its own was chosen, and that it was not: logarithms of ratios."""

    chosen: float
    left: float


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What the attacker knows of the audited code."""

    clipping: Clipping
    """The audited code's, which the attacker applies to the canaries."""
    deviation: float
    """Of the noise that is added."""
    sampling: float = 1.0
    taken: Callable[[int], Tensor] | None = None
    """Which canaries [m] are in the sample of a step if they are in at all; None: nobody knows."""
    choice: ChoiceTold | None = None
    """None: rows are not chosen."""


@dataclass(slots=True)
class Watched(Mechanism):
    """A mechanism under the eyes of the attacker. Training takes it in place of the mechanism itself."""

    inner: Mechanism
    canaries: Tensor
    """[m, 3]."""
    knows: Knowledge
    faulty_clipping: bool = False
    """Whether the sums of a step come from the known clipping too; otherwise they are those that training computed."""
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
            step = replace(step, sums=self.knows.clipping(step.triples, step.candidates))
        noised = self.inner.privatise(step, source)
        pairs = [(noised.relation, step.sums.relation)]
        if self.knows.choice is None:
            pairs.insert(0, (noised.entity, step.sums.entity))
        self._weigh(noised, step.candidates)
        self.residuals.append(torch.cat([(seen - exact).reshape(-1) for seen, exact in pairs]))
        return noised

    def scaled(self, factor: float) -> Self:
        return replace(self, inner=self.inner.scaled(factor))

    def _weigh(self, noised: NoisedSums, candidates: Tensor) -> None:
        # No two canaries share a row, so one sum over all of them has what each would add, row by row.
        knows, own = self.knows, self.knows.clipping(self.canaries, candidates)
        shared = torch.zeros(len(noised.entity), dtype=torch.bool)
        shared[candidates] = True
        head, relation, tail = self.canaries.t()
        told, bare = self._rows(noised.relation[relation], own.relation[relation])
        for ids in (head, tail):
            row, empty = self._rows(noised.entity[ids], own.entity[ids])
            if knows.choice is not None:
                row = torch.where(empty, knows.choice.left, row + knows.choice.chosen)
            told += row.masked_fill(shared[ids], 0.0)
            bare &= empty | shared[ids]
        if knows.taken is not None:
            told = told.masked_fill(~knows.taken(len(self.residuals)), 0.0)
        elif knows.sampling < 1:
            out, inside = (torch.full_like(told, math.log(part)) for part in (1 - knows.sampling, knows.sampling))
            told = torch.logaddexp(out, inside + told)
        self.evidence += told
        self.evidence[bare] = -torch.inf

    def _rows(self, seen: Tensor, added: Tensor) -> tuple[Tensor, Tensor]:
        """Of each row [m, width] the logarithm of its ratio, and whether it holds nothing."""
        told = (seen * added).sum(1) - added.square().sum(1) / 2
        return told / self.knows.deviation**2, (seen == 0).all(1)
