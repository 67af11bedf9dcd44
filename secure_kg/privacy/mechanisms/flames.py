"""DP-FLames, mended: rows chosen by a gap between sorted row norms, tested before they are used.

Reference: Hu et al., "Quantifying and Defending against Privacy Threats on Federated Knowledge Graph Embedding",
WWW 2023, algorithms 1 and 2; the idea of the test is propose-test-release (Zhu and Wang, "Adaptive private-k-selection
with adaptive k", AISTATS 2022). Rows are sorted by the norm of the summed gradient. A rank k with a large gap below it
is chosen under noise; if a noised test finds the gap too large for a neighbour to differ in the first k rows, these are
used; otherwise only the candidates' rows move in this step.

What was mended:

- *Sensitivity.* One triple can raise one row's norm and lower the next one's, each by at most C, so a gap changes by
  up to 2 C, not C. The test asks for a gap above 2 C, and its noise has 2 C as its unit.
- *Choice of k.* Norms change by at most C in L2 over all rows together, sorting does not enlarge this, and differences
  of neighbours at most double it. So all gaps together have L2 sensitivity 2 C, and the largest noised one is found
  with Gaussian instead of Gumbel noise. An accountant of sampled Gaussians then covers it, as it would not cover
  Gumbel noise.
- *Amplification.* Choice, test and gradient look at one sample and are one release.
- *Relation rows* get noise, as every row that moves.
- *δ.* The test errs with probability at most `delta`, in every step. It has to be taken off the budget.

It is sound. It is not of much use: in ranks beyond the batch's size gaps are at most about one clip, see
`benchmarks.flames_pass_rate`.
"""

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Self

import torch
from torch import Tensor

from secure_kg.foundation.errors import UserError
from secure_kg.privacy.accounting.releases import Release, joint
from secure_kg.privacy.draws.noise import Grid, NoiseSource
from secure_kg.privacy.mechanisms.chosen_rows import noised_rows, split
from secure_kg.privacy.mechanisms.interface import Mechanism, NoisedSums, PrivateStep


@dataclass(frozen=True, slots=True)
class Flames(Mechanism):
    """Choice with noise σ_r, test with noise σ_p, sums with noise σ, each in units of its own sensitivity."""

    choice_noise: float
    test_noise: float
    noise: float
    ranks: tuple[int, int]
    """The fewest and the most rows that may be chosen; B and 2 B in the paper."""
    test_delta: float
    """Probability of a step's test to let an unstable choice through."""
    sampling: float = 1.0

    def __post_init__(self) -> None:
        joint(self.choice_noise, self.test_noise, self.noise)
        if not 1 <= self.ranks[0] <= self.ranks[1]:
            raise UserError("ranks to choose from begin at 1 and do not fall")
        if not 0 < self.test_delta < 1:
            raise UserError(f"the test's delta lies between 0 and 1, not at {self.test_delta:g}")

    @classmethod
    def of_total(cls, total: float, ranks: tuple[int, int], test_delta: float, sampling: float = 1.0) -> Self:
        """Settings that cost one release of multiplier `total`: a tenth for the choice, two tenths for the test."""
        choice, test, noise = split(total, 0.1, 0.2, 0.7)
        return cls(choice, test, noise, ranks, test_delta, sampling)

    def releases(self) -> tuple[Release, ...]:
        return (Release(joint(self.choice_noise, self.test_noise, self.noise), self.sampling),)

    @property
    def delta(self) -> float:
        return self.test_delta

    def privatise(self, step: PrivateStep, source: NoiseSource) -> NoisedSums:
        return noised_rows(step, self._choice(step, source), self.noise, source)

    def _choice(self, step: PrivateStep, source: NoiseSource) -> Tensor:
        """Which rows are chosen [n]; none if the test fails. Rows of candidates, chosen anyway, are not looked at."""
        others = torch.ones(len(step.sums.entity), dtype=torch.bool, device=step.sums.entity.device)
        none = torch.zeros_like(others)
        others[step.candidates] = False
        ids = torch.nonzero(others)[:, 0]
        norms, order = torch.sort(torch.linalg.vector_norm(step.sums.entity[ids], dim=1), descending=True)
        first, last = self.ranks[0], min(self.ranks[1], len(norms) - 1)
        if last < first:
            return none
        gaps = (norms[:-1] - norms[1:])[first - 1 : last]
        whole, one = (Grid(2.0 * step.grid.sensitivity, coordinates) for coordinates in (len(gaps), 1))
        place = int(whole.noised(gaps, self.choice_noise, source).argmax())
        found = float(one.noised(gaps[place : place + 1], self.test_noise, source)[0])
        if found <= self.passing_gap(step.grid.sensitivity):
            return none
        none[ids[order[: first + place]]] = True
        return none

    def passing_gap(self, clip: float) -> float:
        """What a noised gap must exceed: 2 C, and the noise that comes with probability `test_delta`."""
        grid = Grid(2.0 * clip, 1)
        deviation = grid.sigma(self.test_noise) * grid.unit
        # Rounding, and the step from the continuous to the discrete tail, take a unit each.
        return 2.0 * clip + 2.0 * grid.unit - deviation * NormalDist().inv_cdf(self.test_delta)

    def scaled(self, factor: float) -> Self:
        noises = {name: getattr(self, name) * factor for name in ("choice_noise", "test_noise", "noise")}
        return replace(self, **noises)


def gap_needed_as_printed(row_clip: float, test_noise: float, test_delta: float) -> float:
    """The gap that passes the printed test with even chances: C₂ + σ_p C₂ √(2 ln 1/δ_t)."""
    return row_clip * (1.0 + test_noise * math.sqrt(2.0 * math.log(1.0 / test_delta)))
