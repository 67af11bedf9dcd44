"""The interface of mechanisms that training can use."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

from torch import Tensor

from secure_kg.privacy.accounting.releases import Release
from secure_kg.privacy.draws.noise import Grid, NoiseSource
from secure_kg.privacy.gradients.clipped_sums import ClippedSums


@dataclass(frozen=True, slots=True)
class PrivateStep:
    """One step before noise. Triples and sums are private; the rest is public."""

    triples: Tensor
    """[b, 3]."""
    sums: ClippedSums
    candidates: Tensor
    """[m]: the rows that every triple touches."""
    grid: Grid
    """Its sensitivity is the clip."""


@dataclass(frozen=True, slots=True)
class NoisedSums:
    """Sums that may be seen."""

    entity: Tensor
    """[n, width]; zero in rows that were not chosen."""
    relation: Tensor
    """[m, relation width]."""
    rows: int
    """Entity rows that were chosen, candidates included."""


class Mechanism(ABC):
    """Noise for the sums of one step, by fixed settings."""

    @abstractmethod
    def releases(self) -> tuple[Release, ...]:
        """What one step releases; several parts that look at one sample are one release."""

    @property
    def delta(self) -> float:
        """Probability, per step, with which the releases do not describe what is seen: to be taken off the budget."""
        return 0.0

    @abstractmethod
    def privatise(self, step: PrivateStep, source: NoiseSource) -> NoisedSums:
        """The sums with noise. What is not returned must not be seen."""

    @abstractmethod
    def scaled(self, factor: float) -> Self:
        """The same with all noise multiplied by a factor."""
