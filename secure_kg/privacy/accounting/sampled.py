"""Poisson samples: the smaller of two sound bounds of dp_accounting, Rényi divergences and privacy loss distributions.

Both bound the same releases from above, each at a schedule of noise that was fixed beforehand, so the smaller of the
two holds. The distribution of the privacy loss is rounded up on a grid (pessimistic): a coarser grid never says less,
it only loses. Over many steps the rounding adds up, so the grid is 1e-4 at an epsilon of 5 and follows epsilon within
limits; 2e-4 and 1e-4 differ by 0.02 % after 71,000 steps.

The package is imported here and on request only.
"""

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from secure_kg.foundation.errors import UserError
from secure_kg.privacy.accounting.releases import Release, Releases
from secure_kg.privacy.accounting.renyi import epsilon_of_orders

FINE: Final = 2e-5
"""The grid in units of epsilon."""
COARSE: Final = 2e-4
_FINEST, _COARSEST = 2e-5, 1e-2
_MISSING: Final = "samples are accounted for by dp-accounting: pip install 'secure-kg[dp]'"
_MEANINGLESS: Final = 200.0
"""Beyond this epsilon nothing is protected, and the loss distribution would be too long to be computed."""


def renyi_epsilon(releases: Releases, delta: float) -> float:
    """By Rényi divergences at the orders of dp_accounting, many of them between whole ones."""
    try:
        from dp_accounting import rdp
    except ImportError:
        raise UserError(_MISSING) from None
    with _quiet():
        accountant = rdp.RdpAccountant()
        for release, times in releases:
            accountant.compose(_event(release), times)
        return float(accountant.get_epsilon(delta))


def loss_epsilon(releases: Releases, delta: float, grid: float) -> float:
    """By the distribution of the privacy loss on a grid of this width, rounded up."""
    with _quiet():
        return float(_by_loss(releases, grid).get_epsilon(delta))


def loss_deltas(releases: Releases, epsilons: Sequence[float], grid: float) -> list[float]:
    """The same turned round: delta at each of these epsilons."""
    with _quiet():
        accountant = _by_loss(releases, grid)
        return [float(accountant.get_delta(epsilon)) for epsilon in epsilons]


def _by_loss(releases: Releases, grid: float) -> Any:
    try:
        from dp_accounting import pld
    except ImportError:
        raise UserError(_MISSING) from None
    accountant = pld.PLDAccountant(value_discretization_interval=grid)
    for release, times in releases:
        accountant.compose(_event(release), times)
    return accountant


def quick_epsilon(releases: Releases, delta: float, fineness: float = FINE) -> float:
    """The smaller of the loss distribution and of whole Rényi orders, which are in closed form and cost nothing."""
    by_orders = epsilon_of_orders(releases, delta)
    if not by_orders < _MEANINGLESS:
        return by_orders
    grid = min(_COARSEST, max(_FINEST * fineness / FINE, fineness * by_orders))
    by_loss = loss_epsilon(releases, delta, grid)
    return min(by_orders, by_loss) if math.isfinite(by_loss) else by_orders


def sampled_epsilon(releases: Releases, delta: float) -> float:
    """The smaller of both. Never more than `quick_epsilon`."""
    return min(renyi_epsilon(releases, delta), quick_epsilon(releases, delta))


def _event(release: Release) -> Any:
    """The release in the words of dp_accounting."""
    import dp_accounting

    event = dp_accounting.GaussianDpEvent(release.noise)
    return event if release.full else dp_accounting.PoissonSampledDpEvent(release.sampling, event)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without a line for each order whose series does not converge: such an order is left out, which is sound."""
    log = logging.getLogger("absl")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)
