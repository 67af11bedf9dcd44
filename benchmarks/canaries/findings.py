"""The three tests of an audit. Each gives a z, and one above the threshold is a finding.

canaries: the mean over runs of the AUC of evidence, canaries that are in against those that are out, above the bound
          (`bounds`). The variance is taken from the runs.
steps:    the correlation of the noise of each step with that of the next, over all runs.
runs:     the correlation of the noise of two runs with the same settings, seed and triples, step by step.

The power of the first is the probability that it has a finding: of a mean that lies so many deviations above the bound
as was measured, by the noncentral t distribution.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

_SMALLEST: Final = 1e-4
"""The least standard error that a z is taken with: a fault may let every run end in an AUC of exactly 1."""

_CERTAIN: Final = 30.0
"""A mean so many standard errors from the bound is on its side of any threshold in use."""
_TRIED: Final = tuple(2**exponent for exponent in range(1, 13))


def auc(evidence: npt.NDArray[np.float64], inside: npt.NDArray[np.bool_]) -> float:
    """The share of pairs (in, out) in which the one that is in has more evidence [m]; ties count half."""
    from scipy.stats import rankdata

    count = int(inside.sum())
    rest = len(inside) - count
    if count == 0 or rest == 0:
        raise ValueError("canaries must be on both sides of the coin")
    return float((rankdata(evidence)[inside].sum() - count * (count + 1) / 2) / (count * rest))


def excess(values: Sequence[float], bound: float) -> float:
    """z of the mean of at least two values above a bound, with their own variance."""
    error = statistics.stdev(values) / math.sqrt(len(values))
    return (statistics.mean(values) - bound) / max(error, _SMALLEST)


def correlation(pairs: Iterable[tuple[Tensor, Tensor]]) -> tuple[float, float]:
    """The mean correlation over pairs of noise vectors [n], and its z against independence."""
    found, scores = [], []
    for one, other in pairs:
        length = float(torch.linalg.vector_norm(one) * torch.linalg.vector_norm(other))
        found.append(float(one @ other) / length if length else 0.0)
        scores.append(found[-1] * math.sqrt(int(((one != 0) & (other != 0)).sum())))
    return statistics.mean(found), math.fsum(scores) / math.sqrt(len(scores))


def power(values: Sequence[float], bound: float, runs: int, threshold: float) -> float:
    """The probability that `excess` of so many runs is above the threshold, if runs are as these values say."""
    from scipy.stats import nct

    spread = max(statistics.stdev(values), _SMALLEST * math.sqrt(len(values)))
    shift = (statistics.mean(values) - bound) / spread * math.sqrt(runs)
    if abs(shift) > _CERTAIN:  # far outside of what the distribution is computed for
        return float(shift > 0)
    return float(np.nan_to_num(nct.sf(threshold, runs - 1, shift)))


def runs_needed(values: Sequence[float], bound: float, threshold: float, wanted: float = 0.9) -> int | None:
    """The fewest runs with this power; None if even the most that are tried have less."""
    most = next((runs for runs in _TRIED if power(values, bound, runs, threshold) >= wanted), None)
    if most is None:
        return None
    least = most // 2
    return next(runs for runs in range(max(2, least), most + 1) if power(values, bound, runs, threshold) >= wanted)
