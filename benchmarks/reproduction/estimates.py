"""Means over seeds and how sure they are.

Runs that differ in the seed only are taken as independent draws. The mean of n of them has a 95 % interval by Student's
t with n - 1 degrees of freedom; a single run has none, and none is made up. Two strategies are compared by the
differences of runs with the same seed, hence the same split and the same first rows: what is lucky in a split is lucky
for both, and cancels.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

# 0.975 quantiles of Student's t for 1, 2, 3, ... degrees of freedom, from any printed table.
T_975: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean of a few runs."""

    values: tuple[float, ...]
    mean: float
    deviation: float | None
    """The standard deviation of single runs; None for one run."""
    half_width: float | None
    """The 95 % interval of the mean is `mean` ± this; None for one run."""

    @property
    def sign(self) -> int:
        """1 or -1 if the interval lies on one side of zero, else 0. For a single run nobody can tell."""
        if self.half_width is None or abs(self.mean) <= self.half_width:
            return 0
        return 1 if self.mean > 0 else -1

    def to_json(self) -> dict[str, object]:
        interval = None if self.half_width is None else [self.mean - self.half_width, self.mean + self.half_width]
        return {
            "n": len(self.values),
            "mean": self.mean,
            "standard_deviation": self.deviation,
            "interval_95": interval,
            "values": list(self.values),
        }


def estimate(values: Sequence[float]) -> Estimate | None:
    """None for no values at all."""
    if not values:
        return None
    if len(values) == 1:
        return Estimate(tuple(values), values[0], None, None)
    deviation = statistics.stdev(values)
    half_width = t_975(len(values) - 1) * deviation / math.sqrt(len(values))
    return Estimate(tuple(values), statistics.fmean(values), deviation, half_width)


def paired(first: Mapping[int, float], second: Mapping[int, float]) -> Estimate | None:
    """The mean of first - second over the seeds that both have."""
    return estimate([first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())])


def t_975(freedom: int) -> float:
    """Beyond 30 degrees of freedom the value for 30, which makes intervals a little too wide (2.042 for 1.96)."""
    return T_975[min(freedom, len(T_975)) - 1]
