"""Rényi divergence of the Poisson-sampled Gaussian at whole orders, in closed form.

For a whole order a >= 2, noise s and sampling rate q, added or removed (Mironov, Talwar, Zhang: Rényi Differential
Privacy of the Sampled Gaussian Mechanism, 2019, section 3.3):

    (a - 1) D_a = log sum_{k=0..a} binom(a, k) (1 - q)^(a - k) q^k exp(k (k - 1) / 2 s^2)

At q = 1 it is a / 2 s^2. Values of releases add up. At order a, a total D gives, at every delta,

    epsilon = D + log(1 - 1/a) - (log delta + log a) / (a - 1)

(Canonne, Kamath, Steinke: The Discrete Gaussian for Differential Privacy, NeurIPS 2020, Proposition 12 in version 4 of
arXiv 2004.00010).
"""

import math
from typing import Final

import numpy as np

from secure_kg.privacy.accounting.releases import Release, Releases

_UPWARDS: Final = 1 + 1e-10
"""More than binomials of these orders are off by in doubles."""
ORDERS: Final = (*range(2, 65), 80, 96, 128, 192, 256, 512, 1024)


def divergence(release: Release, order: int) -> float:
    """What one release costs at a whole order."""
    if release.full:
        return order / (2 * release.noise**2)
    from scipy.special import gammaln, logsumexp  # slow to import; ranks of jobs without a budget need none of it

    taken = np.arange(2, order + 1, dtype=np.float64)
    growth = taken * (taken - 1) / (2 * release.noise**2)
    # The weights without exp(...) add up to 1, so what is beyond 1 is a sum of exp(...) - 1: nothing cancels, and the
    # tiny cost of a rare sample is as accurate as a large one.
    beyond = (
        gammaln(order + 1)
        - gammaln(taken + 1)
        - gammaln(order - taken + 1)
        + (order - taken) * math.log1p(-release.sampling)
        + taken * math.log(release.sampling)
        + growth
        + np.log(-np.expm1(-growth))
    )
    return float(np.logaddexp(0.0, logsumexp(beyond))) / (order - 1) * _UPWARDS


def epsilon_at(order: int, total: float, delta: float) -> float:
    """The epsilon of a total divergence at one order."""
    return max(0.0, total + math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1))


def allowance(order: int, epsilon: float, delta: float) -> float:
    """The largest total divergence at one order within (epsilon, delta): `epsilon_at` turned round. May be negative."""
    return epsilon - math.log1p(-1 / order) + (math.log(delta) + math.log(order)) / (order - 1)


def epsilon_of_orders(releases: Releases, delta: float) -> float:
    """The smallest epsilon over whole orders. For releases whose noise was fixed before the first of them."""
    return min(
        epsilon_at(order, math.fsum(times * divergence(release, order) for release, times in releases), delta)
        for order in ORDERS
    )
