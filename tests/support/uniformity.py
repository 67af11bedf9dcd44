"""Does a vector look like uniform noise? A chi-square test on the bytes at each place of its elements.

With 255 degrees of freedom the statistic has mean 255 and standard deviation 22.6. Uniform bytes leave the interval
once in 10^15 draws; a constant, a counter, small numbers or a mask that does not reach the upper bytes are far outside.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

LOW, HIGH = 100.0, 481.0
ENTRIES = 8192
"""Enough for 32 expected occurrences of each byte at each place."""


def chi_squares(vector: npt.NDArray[Any]) -> list[float]:
    """One statistic per byte of an element, least significant first."""
    places = np.ascontiguousarray(vector).view(np.uint8).reshape(len(vector), vector.itemsize)
    expected = len(vector) / 256
    return [
        float(((np.bincount(places[:, place], minlength=256) - expected) ** 2).sum() / expected)
        for place in range(vector.itemsize)
    ]


def looks_uniform(vector: npt.NDArray[Any]) -> bool:
    if len(vector) < ENTRIES:
        raise ValueError("too few entries to tell")
    return all(LOW < statistic < HIGH for statistic in chi_squares(vector))
