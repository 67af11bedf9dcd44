"""No noise: the clipped sums themselves. Not private; the row that shows what clipping alone costs."""

from dataclasses import dataclass
from typing import Self

from secure_kg.privacy.accounting.releases import Release
from secure_kg.privacy.draws.noise import NoiseSource
from secure_kg.privacy.mechanisms.interface import Mechanism, NoisedSums, PrivateStep


@dataclass(frozen=True, slots=True)
class NoNoise(Mechanism):
    """Releases everything, which no budget covers."""

    def releases(self) -> tuple[Release, ...]:
        """None that an accountant could take; training refuses this mechanism together with a filter."""
        return ()

    def privatise(self, step: PrivateStep, source: NoiseSource) -> NoisedSums:
        return NoisedSums(step.sums.entity, step.sums.relation, len(step.sums.entity))

    def scaled(self, factor: float) -> Self:
        return self
