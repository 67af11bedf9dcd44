"""Full batches: the exact privacy of Gaussian releases, adaptively composed.

T releases with multipliers s_1 ... s_T are as private as one with mu = (sum s_t^-2)^1/2, shift over deviation, and
nothing is lost (Dong, Roth, Su: Gaussian Differential Privacy, JRSS B 2022, composition). Its curve is

    delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu)

(Balle and Wang, ICML 2018, Theorem 8 in arXiv 1805.06530). Every search returns the end of its last interval that has
been evaluated and is safe.
"""

import math
from typing import Final

from secure_kg.privacy.accounting.releases import Budget

_STEPS: Final = 200
_PRECISION: Final = 1e-12


def delta_of_mu(mu: float, epsilon: float) -> float:
    """The smallest delta of a Gaussian release with shift `mu` in units of its deviation."""
    if mu == 0:
        return 0.0
    from scipy.special import log_ndtr  # slow to import; ranks of jobs without a budget need none of it

    kept = float(log_ndtr(mu / 2 - epsilon / mu))
    paid = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    # e^kept - e^paid without cancelling where both are small.
    return max(0.0, -math.exp(kept) * math.expm1(paid - kept)) if kept > -math.inf else 0.0


def epsilon_of_mu(mu: float, delta: float) -> float:
    """The smallest epsilon at this delta, from above."""
    if delta_of_mu(mu, 0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while delta_of_mu(mu, high) > delta:
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if delta_of_mu(mu, middle) > delta:
            low = middle
        else:
            high = middle
        if high - low <= _PRECISION * high:
            break
    return high


def largest_mu(budget: Budget) -> float:
    """The largest mu within the budget, from below."""
    low, high = 0.0, 1.0
    while delta_of_mu(high, budget.epsilon) <= budget.delta:
        low, high = high, 2 * high
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if delta_of_mu(middle, budget.epsilon) <= budget.delta:
            low = middle
        else:
            high = middle
        if low and high - low <= _PRECISION * high:
            break
    return low
