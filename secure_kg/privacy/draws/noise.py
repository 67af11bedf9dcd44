"""Gaussian noise for sums that stay in one place: integers of a discrete Gaussian times a unit.

Noise drawn as floating-point numbers leaks through its low bits (Mironov, "On significance of the least significant
bits for differential privacy", CCS 2012). So a sum is rounded onto a grid, and the noise is a whole number of the
grid's units. Whatever then happens to the result is post-processing.

Rounding changes by how much neighbours differ: a coordinate that a triple touches may fall to either side, which adds
less than one unit to each. So with L2 sensitivity C before rounding and D touched coordinates it is C + unit √D after
it, and the standard deviation is that times the noise multiplier, rounded up to whole units. The unit is the power of
two that keeps the addition below C / 1024.

Integers come from the operating system's randomness. Tests may bring another `NoiseSource`.
"""

import math
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from protocols.sums.grid_noise import discrete_noise
from secure_kg.foundation.errors import UserError

Integers = npt.NDArray[np.int64]
_FINENESS: Final = 10  # bits by which unit √D lies below the sensitivity


class NoiseSource(Protocol):
    """Where integers of a discrete Gaussian come from."""

    def integers(self, sigma: float, shape: tuple[int, ...]) -> Integers:
        """Independent draws with mean 0; `sigma` is the parameter of the discrete Gaussian, in units."""
        ...


class SecretNoise:
    """Noise that nobody can draw again: its randomness is the operating system's."""

    def integers(self, sigma: float, shape: tuple[int, ...]) -> Integers:
        return discrete_noise(sigma, shape)


@dataclass(frozen=True, slots=True)
class Grid:
    """The grid for sums of one sensitivity."""

    sensitivity: float
    """The most that one triple changes the sums by, in L2, before rounding."""
    coordinates: int
    """The most coordinates that one triple changes."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.sensitivity) and self.sensitivity > 0 and self.coordinates >= 1):
            raise UserError("noise needs a positive sensitivity and at least one coordinate")

    @property
    def unit(self) -> float:
        """A power of two."""
        return 2.0 ** (math.floor(math.log2(self.sensitivity / math.sqrt(self.coordinates))) - _FINENESS)

    def sigma(self, multiplier: float) -> float:
        """The standard deviation in units: whole, and never less than the multiplier asks for."""
        return float(math.ceil(multiplier * (self.sensitivity / self.unit + math.sqrt(self.coordinates))))

    def noised(self, values: Tensor, multiplier: float, source: NoiseSource) -> Tensor:
        """values, in double precision, rounded onto the grid, plus noise on every entry; zero multiplier: refused."""
        if not (math.isfinite(multiplier) and multiplier > 0):
            raise UserError(f"a noise multiplier is finite and above 0, not {multiplier:g}")
        drawn = torch.from_numpy(source.integers(self.sigma(multiplier), tuple(values.shape)))
        return (torch.round(values.double() / self.unit) + drawn.to(values.device)) * self.unit
