"""Discrete Gaussian noise for whoever adds noise to a total in one place, on a grid of its own.

Parties:     one, which has the total and may see it without noise.
Adversary:   whoever gets the noised total.
Assumes:     the operating system's randomness.
Not covered: the grid, its sensitivity and the accounting, which are the caller's.
"""

import math

import numpy as np
import numpy.typing as npt

from protocols.primitives.discrete_gaussian import discrete_gaussian


def discrete_noise(sigma: float, shape: tuple[int, ...], key: bytes | None = None) -> npt.NDArray[np.int64]:
    """Independent integers of a discrete Gaussian of parameter `sigma`. `key`: for draws that must be repeatable."""
    return discrete_gaussian(sigma, math.prod(shape), key).reshape(shape)
