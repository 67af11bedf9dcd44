"""Noise on all rows: the Gaussian mechanism of DP-SGD (Abadi et al., CCS 2016) on both tables together.

Sound for every model: which rows a triple touches is hidden by noise on the others. The clip is joint, so both tables
are one vector of L2 sensitivity C, and one release.
"""

from dataclasses import dataclass, replace
from typing import Self

from secure_kg.privacy.accounting.releases import Release
from secure_kg.privacy.draws.noise import NoiseSource
from secure_kg.privacy.mechanisms.interface import Mechanism, NoisedSums, PrivateStep


@dataclass(frozen=True, slots=True)
class Sgd(Mechanism):
    """Noise with `noise` times the clip as its standard deviation."""

    noise: float
    sampling: float = 1.0

    def __post_init__(self) -> None:
        Release(self.noise, self.sampling)

    def releases(self) -> tuple[Release, ...]:
        return (Release(self.noise, self.sampling),)

    def privatise(self, step: PrivateStep, source: NoiseSource) -> NoisedSums:
        entity, relation = (
            step.grid.noised(table, self.noise, source) for table in (step.sums.entity, step.sums.relation)
        )
        return NoisedSums(entity, relation, len(entity))

    def scaled(self, factor: float) -> Self:
        return replace(self, noise=self.noise * factor)
