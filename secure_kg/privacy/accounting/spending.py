"""A privacy filter: releases whose noise is chosen one after the other, by what earlier ones showed, in a fixed budget.

Adding up the epsilons of what happened to be released would be unsound here, because how much noise comes next depends
on data. A filter fixes one number beforehand and refuses every release that would carry the sum beyond it. Then the
whole is as private as the budget says, however noise was chosen and whenever the run stopped.

- Full batches: sum of noise^-2 against mu^2, mu being the largest shift within the budget. Gaussian differential
  privacy has a filter with the parameters of its composition (Smith and Thakurta: Fully Adaptive Composition for
  Gaussian Differential Privacy, 2022, their main theorem), so adapting costs nothing.
- Poisson samples: sum of Rényi divergences at one order against what that order may have (Feldman and Zrnic:
  Individual Privacy Accounting via a Rényi Filter, NeurIPS 2021: if the divergences of order a, each given what came
  before, add up to at most B in every course of events, the whole has divergence at most B at that order). The order
  is fixed from public settings before the first release.

Choosing the order afterwards is unsound. The theorem bounds, for a given order a, the divergence of order a of runs
that stop by the sum at order a. The best order for what was spent depends on the noise that was chosen, that is on
data, and the run would have been stopped by the sum at another order. Trade-off curves of samples have no such filter
at all, which is why loss distributions have no part here.

What was spent is data-dependent for the same reason: the guarantee is the budget, never the part of it that was used.
"""

import math
from typing import Any, Final, Self

from secure_kg.foundation.errors import UserError
from secure_kg.privacy.accounting.gaussian import largest_mu
from secure_kg.privacy.accounting.releases import Budget, Release
from secure_kg.privacy.accounting.renyi import ORDERS, allowance, divergence

_GAUSSIAN: Final = 0
"""In place of an order: full batches."""
_FIELDS: Final = frozenset({"epsilon", "delta", "order", "spent", "releases"})


class BudgetSpent(UserError):
    """A release that the budget has no room for."""


class PrivacyFilter:
    """What was spent of a budget, and whether a release fits into the rest."""

    __slots__ = ("_limit", "_order", "_releases", "_spent", "budget")

    def __init__(self, budget: Budget, sampling: float = 1.0, steps: int = 1) -> None:
        """`sampling`, `steps`: public expectations, by which the order is chosen; releases may differ from them.

        A filter for full batches (`sampling` 1) refuses samples. One for samples allows full batches as well.
        """
        Release(1.0, sampling)
        if steps < 1:
            raise UserError(f"a privacy filter expects at least one step, not {steps}")
        self._begin(budget, _GAUSSIAN if sampling == 1 else _best_order(budget, sampling, steps))

    def _begin(self, budget: Budget, order: int, spent: float = 0.0, releases: int = 0) -> None:
        self.budget, self._order, self._spent, self._releases = budget, order, spent, releases
        self._limit = largest_mu(budget) ** 2 if order == _GAUSSIAN else allowance(order, budget.epsilon, budget.delta)

    @property
    def order(self) -> int | None:
        """The Rényi order; None for full batches, which need none."""
        return self._order or None

    @property
    def used(self) -> float:
        """The part of the budget that was spent, 0 to 1. It depends on data: not to be told to anybody."""
        return min(1.0, self._spent / self._limit)

    @property
    def releases(self) -> int:
        """How many releases there were."""
        return self._releases

    def may(self, release: Release) -> bool:
        """Whether the release fits into what is left."""
        return self._after(release) <= self._limit

    def spend(self, release: Release) -> None:
        """Count a release, before it is made. `BudgetSpent` if it does not fit; then nothing is counted."""
        after = self._after(release)
        if after > self._limit:
            raise BudgetSpent(
                f"the privacy budget (epsilon {self.budget.epsilon:g}, delta {self.budget.delta:g}) has no room for "
                f"another release with noise {release.noise:g} after {self._releases}"
            )
        self._spent, self._releases = after, self._releases + 1

    def _after(self, release: Release) -> float:
        if self._order == _GAUSSIAN:
            if not release.full:
                raise UserError("this privacy filter is for full batches: samples need one that knows their rate")
            cost = release.noise**-2
        else:
            cost = divergence(release, self._order)
        # Upwards, so that rounding never hides a cost.
        return math.nextafter(self._spent + math.nextafter(cost, math.inf), math.inf)

    def state(self) -> dict[str, Any]:
        """For a checkpoint: numbers only."""
        return {
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "order": self._order,
            "spent": self._spent,
            "releases": self._releases,
        }

    @classmethod
    def restored(cls, state: object, budget: Budget, following: Release | None = None) -> Self:
        """Go on from what was spent. `UserError` in one line for another budget, or for a state that is none.

        `following`: the release that the run would go on with; `BudgetSpent` if there is no room for it.
        """
        order, spent, releases = _read(state, budget)
        found = cls.__new__(cls)
        found._begin(budget, order, spent, releases)
        if found._spent >= found._limit or (following is not None and not found.may(following)):
            raise BudgetSpent(
                f"the privacy budget (epsilon {budget.epsilon:g}, delta {budget.delta:g}) was spent by the "
                f"{releases} releases before: a run cannot be resumed on it"
            )
        return found


def _best_order(budget: Budget, sampling: float, steps: int) -> int:
    """The order at which `steps` releases need the least noise."""

    def least_noise(order: int) -> float:
        limit = allowance(order, budget.epsilon, budget.delta)
        if limit <= 0:
            return math.inf
        low, high = 2.0**-10, 2.0**30
        for _ in range(40):
            middle = math.sqrt(low * high)
            fits = steps * divergence(Release(middle, sampling), order) <= limit
            low, high = (low, middle) if fits else (middle, high)
        return high

    needed = {order: least_noise(order) for order in ORDERS}
    best: int = min(needed, key=lambda order: needed[order])
    if math.isinf(needed[best]):
        raise UserError(f"no Rényi order reaches epsilon {budget.epsilon:g} at delta {budget.delta:g}")
    return best


def _read(state: object, budget: Budget) -> tuple[int, float, int]:
    if not isinstance(state, dict) or state.keys() != _FIELDS:
        raise UserError("the checkpoint has no record of what was spent of the privacy budget")
    order, spent, releases = state["order"], state["spent"], state["releases"]
    whole = all(type(value) is int for value in (order, releases))
    if (
        not whole
        or (order != _GAUSSIAN and order not in ORDERS)
        or releases < 0
        or not isinstance(spent, int | float)
        or not 0 <= spent < math.inf
    ):
        raise UserError("the checkpoint's record of what was spent of the privacy budget is damaged")
    if (state["epsilon"], state["delta"]) != (budget.epsilon, budget.delta):
        raise UserError("the checkpoint was made under another privacy budget, which cannot be changed on the way")
    return order, float(spent), releases
