"""Differences of sums over different clients."""

from itertools import combinations

import numpy as np
import numpy.typing as npt

Isolated = tuple[tuple[int, ...], frozenset[int]]
"""Coefficients over the sums, and the clients that are left."""


def isolating_differences(participation: npt.NDArray[np.int64], threshold: int) -> list[Isolated]:
    """Pairs of sums [sums, clients] whose difference leaves at least one client, and fewer than `threshold`."""
    found: dict[frozenset[int], tuple[int, ...]] = {}
    for first, second in combinations(range(len(participation)), 2):
        left = participation[first] - participation[second]
        isolated = frozenset((np.flatnonzero(left) + 1).tolist())
        if 0 < len(isolated) < threshold and isolated not in found:
            sign = 1 if left.sum() >= 0 else -1
            found[isolated] = tuple(
                sign if index == first else -sign if index == second else 0 for index in range(len(participation))
            )
    return [(coefficients, isolated) for isolated, coefficients in found.items()]
