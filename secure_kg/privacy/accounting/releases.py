"""Budgets and releases: what is accounted for. Unit of privacy: one triple, added or removed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from secure_kg.foundation.errors import UserError


@dataclass(frozen=True, slots=True)
class Budget:
    """The (epsilon, delta) that a run may spend in all."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < math.inf:
            raise UserError(f"a privacy budget needs a finite epsilon above 0, not {self.epsilon:g}")
        require_delta(self.delta)


@dataclass(frozen=True, slots=True)
class Release:
    """One Gaussian release of a sum of L2 sensitivity 1, of a Poisson sample of the triples."""

    noise: float
    """Standard deviation in units of the sensitivity: the noise multiplier."""
    sampling: float = 1.0
    """Each triple is in the sample with this probability, by itself. 1: full batch."""

    def __post_init__(self) -> None:
        if not 0 < self.noise < math.inf:
            raise UserError(f"a noise multiplier is finite and above 0, not {self.noise:g}")
        if not 0 < self.sampling <= 1:
            raise UserError(f"a sampling rate lies above 0 and is at most 1, not {self.sampling:g}")

    @property
    def full(self) -> bool:
        """Whether every triple is in it."""
        return self.sampling == 1


Releases: TypeAlias = Sequence[tuple[Release, int]]
"""Releases, and how often there is each."""


def joint(*noises: float) -> float:
    """The multiplier of one release that stands for several on one sample, such as a selection and a gradient.

    Sums of sensitivity 1 with noises s1, s2, ..., each divided by its own noise, are one vector of sensitivity
    (s1^-2 + s2^-2 + ...)^1/2 with noise 1. On a Poisson sample they must be accounted for as this one release:
    amplified one by one, they would count as of independent samples.
    """
    if not noises:
        raise UserError("a joint release has at least one part")
    return 1 / math.sqrt(math.fsum(Release(noise).noise ** -2 for noise in noises))


def require_delta(delta: float) -> None:
    """`UserError` unless delta is a probability that can be asked for."""
    if not 0 < delta < 1:
        raise UserError(f"delta lies between 0 and 1, not at {delta:g}")


def checked(releases: Releases) -> list[tuple[Release, int]]:
    """The releases that happen at all. A negative number of one is refused."""
    if any(times < 0 for _, times in releases):
        raise UserError("a release cannot happen a negative number of times")
    return [(release, times) for release, times in releases if times]
