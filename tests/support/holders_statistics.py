"""Do the weights of elements held by 1, by 2 and by 5 of 5 clients look alike?"""

from collections.abc import Mapping

import numpy as np

from protocols.primitives.group import FieldArray
from tests.support.uniformity import HIGH, LOW, chi_squares

HOLDERS = (1, 2, 5)


def look_alike(weights: Mapping[int, FieldArray]) -> bool:
    """Each sample is uniform, byte by byte, and no two differ in distribution: 10^-9 to fail by chance."""
    uniform = all(
        LOW < statistic < HIGH for sample in weights.values() for statistic in chi_squares(sample << np.uint64(3))[1:]
    )
    alike = all(_distance(weights[a], weights[b]) < 3.4 for a in HOLDERS for b in HOLDERS if a < b)
    return uniform and alike


def _distance(left: FieldArray, right: FieldArray) -> float:
    """Kolmogorov and Smirnov's statistic of two samples of equal size n, times sqrt(n / 2)."""
    both = np.concatenate((left, right))
    below = [np.searchsorted(np.sort(sample), both, side="right") / len(sample) for sample in (left, right)]
    return float(np.abs(below[0] - below[1]).max() * (len(left) / 2) ** 0.5)
