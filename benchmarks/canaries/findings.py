"""The three tests of an audit. Each gives a z, and one above the threshold is a finding.

canaries: the mean over runs of the AUC of evidence, canaries that are in against those that are out, above the bound.
          A pair of canaries, one in and one out, differs from the pair exchanged by at most √2 C, since their rows are
          apart. So T sums with noise σ C let a pair be told with probability at most Φ(μ / √2), μ = √T / σ. The
          variance is taken from the runs.
steps:    the correlation of the noise of each step with that of the next, over all runs.
runs:     the correlation of the noise of two runs with the same settings, seed and triples, step by step.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from secure_kg.privacy.accounting.releases import Releases

_SMALLEST: Final = 1e-4
"""The least standard error that a z is taken with: a fault may let every run end in an AUC of exactly 1."""


def auc_bound(releases: Releases) -> float:
    """The largest AUC that full-batch Gaussian releases allow, by the accountant's μ."""
    if not all(release.full for release, _ in releases):
        raise ValueError("the bound is for full batches")
    shift = math.sqrt(math.fsum(times / release.noise**2 for release, times in releases))
    return statistics.NormalDist().cdf(shift / math.sqrt(2))


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
