"""Sums with shares of noise (`protocols.sums.noise_shares`, which has the analysis): what T of them cost.

A sum over contributors of which c may be corrupt has at least contributors - c honest shares. They are worth a
continuous Gaussian, and a triple moves the encoded contributions by their sensitivity in integers: that is one
`Release`. What is left of the difference between drawn integers and Gaussians is paid for:

- differences of log probabilities, by which every output is less or more likely: twice as much epsilon, and delta by
  that factor;
- distances in total variation (the sampler, cut tails): (1 + e^epsilon) times as much delta.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from protocols.sums.noise_shares import (
    SMOOTHING,
    NoiseShares,
    cut_error,
    integer_sensitivity,
    sampler_error,
    smoothing_loss,
)
from secure_kg.foundation.errors import UserError
from secure_kg.privacy.accounting.accountant import Release, epsilon_of
from secure_kg.privacy.accounting.releases import require_delta

_TRIES: Final = 64


@dataclass(frozen=True, slots=True)
class SharedSums:
    """Sums of one layout with shares of noise. Public."""

    shares: NoiseShares
    unit: float
    """Of the ring, as a real number (`SumLayout.codec.unit`)."""
    sensitivity: float
    """By how much a triple moves one sum, in L2, as real numbers: the clip."""
    coordinates: int
    """How many entries of a sum a triple may move."""
    entries: int
    """Real entries of a sum. All of them get noise."""
    sampling: float = 1.0

    def __post_init__(self) -> None:
        if not (0 < self.unit < math.inf and 0 < self.sensitivity < math.inf and 0 < self.coordinates <= self.entries):
            raise UserError("sums have a unit and a sensitivity above 0, and a triple moves some of their entries")
        Release(1.0, self.sampling)

    def release(self, contributors: int) -> Release:
        """One sum over so many contributors. `SumAbandoned` if they are too few: such a sum must not be opened."""
        noise = self.shares.units(contributors - self.shares.corrupt, self.unit)
        return Release(noise / integer_sensitivity(self.sensitivity, self.unit, self.coordinates), self.sampling)


@dataclass(frozen=True, slots=True)
class SpentBySums:
    """What sums have cost, with the parts of delta."""

    epsilon: float
    delta_of_accountant: float
    delta_of_sampler: float
    delta_of_tails: float

    @property
    def delta(self) -> float:
        return self.delta_of_accountant + self.delta_of_sampler + self.delta_of_tails


def spent_by_sums(sums: SharedSums, contributors: Iterable[int], delta: float) -> SpentBySums:
    """Epsilon, at `delta` in all, of one sum for each number of contributors.

    `contributors`: as they were, or n - d for each sum to state beforehand what holds for all that can be opened.
    """
    require_delta(delta)
    counted = list(contributors)
    releases: dict[Release, int] = {}
    for number in counted:
        release = sums.release(number)
        releases[release] = releases.get(release, 0) + 1
    draws = sum(counted) * sums.entries
    units = sums.shares.share / sums.unit
    loss = math.fsum(smoothing_loss(sums.entries, number, units) for number in counted)
    sampler, tails = sampler_error(draws), cut_error(draws)
    # What tails cost in delta grows with epsilon, and the less is left of delta, the larger is epsilon.
    left = delta
    for _ in range(_TRIES):
        if left <= 0:
            break
        epsilon = epsilon_of(list(releases.items()), left * math.exp(-loss)) + 2 * loss
        factor = 1 + math.exp(epsilon) if epsilon < 700 else math.inf
        if left + factor * (sampler + tails) <= delta:
            return SpentBySums(epsilon, left, factor * sampler, factor * tails)
        left = delta - 1.01 * factor * (sampler + tails)
    raise UserError(f"delta {delta:g} is less than what {draws} draws of noise cost in cut tails alone")


def deviation_for(noise: float, sums: SharedSums) -> float:
    """The standard deviation, as a real number, with which a sum has this multiplier. `sums.shares` is not read."""
    moved = integer_sensitivity(sums.sensitivity, sums.unit, sums.coordinates)
    return math.sqrt((Release(noise).noise * moved) ** 2 + SMOOTHING**2) * sums.unit * (1 + 1e-12)


def settled_deviation(noise: float, sums: SharedSums, unit_of: Callable[[float], float]) -> float:
    """The same where the unit depends on the deviation, because the layout leaves room for noise.

    `unit_of`: the unit of a layout with noise of a total deviation. It never falls as the deviation grows.
    """
    deviation = noise * sums.sensitivity
    for _ in range(_TRIES):
        unit = unit_of(deviation)
        at_unit = SharedSums(sums.shares, unit, sums.sensitivity, sums.coordinates, sums.entries, sums.sampling)
        wider = deviation_for(noise, at_unit)
        if unit_of(wider) <= unit:
            return wider
        deviation = wider
    raise UserError(f"no encoding has room for noise of {noise:g} times a clip of {sums.sensitivity:g}")
