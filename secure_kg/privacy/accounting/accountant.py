"""The accountant: epsilon of releases, noise of a budget. Unit: one triple, added or removed.

`epsilon_of` and `noise_for` are for schedules that are fixed before the first release. Noise that is chosen on the way
goes through a `PrivacyFilter`. Whatever is not exact errs on the safe side.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from secure_kg.foundation.errors import UserError
from secure_kg.privacy.accounting.gaussian import epsilon_of_mu, largest_mu
from secure_kg.privacy.accounting.releases import Budget, Release, Releases, checked, joint, require_delta
from secure_kg.privacy.accounting.renyi import epsilon_of_orders
from secure_kg.privacy.accounting.sampled import COARSE, FINE, quick_epsilon, sampled_epsilon
from secure_kg.privacy.accounting.spending import BudgetSpent, PrivacyFilter

__all__ = ["Budget", "BudgetSpent", "PrivacyFilter", "Release", "Releases", "epsilon_of", "joint", "noise_for"]

_ROOM: Final = 1e-9
"""A multiplier is larger by this fraction, so that a filter that adds up its releases one by one allows all of them."""
_LARGEST_NOISE: Final = 2.0**60


def epsilon_of(releases: Releases, delta: float) -> float:
    """The epsilon of these releases together at `delta`.

    Full batches only: exact. With samples: the smaller of two upper bounds (`sampled.py`).
    """
    require_delta(delta)
    happening = checked(releases)
    if not happening:
        return 0.0
    if all(release.full for release, _ in happening):
        return epsilon_of_mu(math.sqrt(math.fsum(times / release.noise**2 for release, times in happening)), delta)
    return sampled_epsilon(happening, delta)


@lru_cache(maxsize=64)
def noise_for(budget: Budget, steps: int, sampling: float = 1.0) -> float:
    """The smallest multiplier with which `steps` releases stay within the budget.

    Full batches: exact. Samples: never less than needed and some 0.1 % more. The search narrows on a coarse grid,
    which is quick and errs upwards, and ends on the grid of `epsilon_of`.
    """
    if steps < 1:
        raise UserError(f"noise is asked for at least one step, not for {steps}")
    Release(1.0, sampling)
    if sampling == 1:
        return math.sqrt(steps) / largest_mu(budget) * (1 + _ROOM)

    def within(noise: float, fineness: float | None) -> bool:
        releases = [(Release(noise, sampling), steps)]
        if fineness is None:
            return epsilon_of_orders(releases, budget.delta) <= budget.epsilon
        return quick_epsilon(releases, budget.delta, fineness) <= budget.epsilon

    high = 1.0
    while not within(high, None):
        high *= 2
        if high > _LARGEST_NOISE:
            raise UserError(f"no noise brings {steps} steps within epsilon {budget.epsilon:g}, delta {budget.delta:g}")
    low = high / 2
    while within(low, None):
        low, high = low / 2, low
    low, high = _narrowed(low, high, lambda noise: within(noise, None), 1e-3)
    low, high = _narrowed(low / 1.5, high, lambda noise: within(noise, COARSE), 2e-3)
    low, high = _narrowed(low / 1.005, high, lambda noise: within(noise, FINE), 1e-3)
    return high * (1 + _ROOM)


def _narrowed(low: float, high: float, within: Callable[[float], bool], precision: float) -> tuple[float, float]:
    """The interval by bisection until it is narrow. `high` is within the budget all along."""
    while high > low * (1 + precision):
        middle = math.sqrt(low * high)
        if within(middle):
            high = middle
        else:
            low = middle
    return low, high
