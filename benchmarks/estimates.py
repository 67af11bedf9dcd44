"""A typical value of few and noisy measurements, with an interval that assumes nothing of their distribution."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Final

_COVERAGE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Median:
    """The interval contains the true median with probability `coverage`, if the measurements are independent."""

    value: float
    low: float
    high: float
    coverage: float


def median_with_interval(values: Sequence[float]) -> Median:
    """By order statistics: the true median lies below the k-th smallest of n with the probability that fewer than k of
    n coins show heads. k is the largest for which both ends together leave out no more than 5 %; if there are too few
    values for any, the interval is from the smallest to the largest, and `coverage` says what that is worth.
    """
    ordered, count = sorted(values), len(values)
    if not ordered:
        raise ValueError("no values")
    place = 1
    while _outside(place + 1, count) <= 1 - _COVERAGE:
        place += 1
    middle = statistics.median(ordered)
    return Median(middle, ordered[place - 1], ordered[count - place], 1 - _outside(place, count))


def _outside(place: int, count: int) -> float:
    """That the median lies below the `place`-th smallest or above the `place`-th largest."""
    return min(1.0, 2 * sum(comb(count, heads) for heads in range(place)) / (1 << count))
