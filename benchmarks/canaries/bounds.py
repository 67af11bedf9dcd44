"""The largest AUC that releases allow, by the accountant's own account of them.

A canary is in or out, and an attacker gives it a score. Of all scores above a level, let x be the share of canaries
that are out and y(x) the share of those that are in. Whatever is (ε, δ)-private has, for every such set of scores,

    y ≤ e^ε x + δ      and      1 − x ≤ e^ε (1 − y) + δ,      that is      y ≤ 1 − e^−ε (1 − δ − x).

So y lies below every one of these lines, for all pairs (ε, δ) that the releases have, and the AUC, the area below y, is
at most the area below the lowest line at each x. That area is 1 less the integral of the trade-off function (Dong,
Roth, Su: Gaussian Differential Privacy). Several canaries have curves of their own; the curve of all together lies
below the lines too, since each holds for the means of x and y. An AUC pairs a canary that is in with another one that
is out, and canaries have no row in common, so their scores are independent at a given model.

- Full batches: T sums with noise σ C are one Gaussian with μ = √T / σ, and the area has the closed form Φ(μ / √2).
- Poisson samples: δ(ε) comes from the distribution of the privacy loss (dp_accounting), rounded up on a grid. Each of
  finitely many lines is a sound bound, the area is taken by the midpoint rule, which is never too small for a concave
  curve, so all errors are on the safe side. At sampling rate 1 it is the closed form to within 1e-4, as a
  test asks. With samples, pairs are those of the worse of adding and removing a triple; the bound is some 0.007 larger
  than what the best attack reaches.
"""

import math
import statistics
from typing import Final

import numpy as np

from secure_kg.privacy.accounting.releases import Releases
from secure_kg.privacy.accounting.sampled import loss_deltas

_GRID: Final = 1e-4
"""Of the privacy loss."""
_LARGEST: Final = 30.0
_LINES: Final = 1500
_CELLS: Final = 20_000


def auc_bound(releases: Releases) -> float:
    """The largest AUC that Gaussian releases allow, of full batches or of Poisson samples."""
    if all(release.full for release, _ in releases):
        return gaussian_auc(math.sqrt(math.fsum(times / release.noise**2 for release, times in releases)))
    return auc_of_losses(releases)


def gaussian_auc(mu: float) -> float:
    """The largest AUC of one Gaussian release with shift `mu` in units of its deviation."""
    return statistics.NormalDist().cdf(mu / math.sqrt(2))


def auc_of_losses(releases: Releases) -> float:
    """The same from the distribution of the privacy loss, for samples as well."""
    # Closer together where delta changes most.
    epsilons = _LARGEST * np.linspace(0.0, 1.0, _LINES) ** 2
    deltas = np.asarray(loss_deltas(releases, epsilons.tolist(), _GRID))
    return area_below(epsilons.tolist(), deltas.tolist())


def area_below(epsilons: list[float], deltas: list[float]) -> float:
    """The largest AUC of what is private with each of these pairs."""
    # Cells that are narrow at both ends, where the curve turns.
    edges = (1.0 - np.cos(np.linspace(0.0, math.pi, _CELLS + 1))) / 2.0
    middle, width = (edges[1:] + edges[:-1]) / 2.0, np.diff(edges)
    lowest = np.ones_like(middle)
    for epsilon, delta in zip(epsilons, deltas, strict=True):
        np.minimum(lowest, math.exp(epsilon) * middle + delta, out=lowest)
        np.minimum(lowest, 1.0 - math.exp(-epsilon) * (1.0 - delta - middle), out=lowest)
    return float(lowest @ width)
