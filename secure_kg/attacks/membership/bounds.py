"""What the privacy statement of a run says about membership attacks: the largest AUC that any attack can have.

A threshold on the score of one triple is a test of whether it is in. Differential privacy bounds the two errors of
every such test, hence the ROC curve, hence the area under it. T full batches with noise multiplier z are together as
private as one Gaussian release with mu = T^1/2 / z (`secure_kg.privacy.accounting.gaussian`), whose ROC curve has an
area of Phi(mu / 2^1/2). With Poisson samples the curve is the one that epsilon and delta allow.

Not covered: several canaries in one run are compared with each other, and two that share a row have scores that depend
on each other. The bound holds for every single triple, and for the AUC as far as pairs of canaries are independent
given the run. A contribution in clear has only its own share of the noise: the second bound is of that.
"""

import math
from dataclasses import dataclass

from scipy.special import ndtr

from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.privacy.statement import Statement


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of one private run. Public."""

    statement: Statement
    auc: float
    """Of whoever sees all that is released, one client among them."""
    upload_auc: float | None
    """Of whoever reads single contributions in clear; None: nobody does, or samples are drawn and nothing is known."""


def bounds_of(config: RunConfig, clients: int) -> Bounds | None:
    """None: the run has no differential privacy."""
    private = RunPlan(config, clients).private
    if private is None:
        return None
    in_clear = not config.sum_protocol.hides_contributions
    statement, shares = private.statement(single_read=in_clear), private.shares()
    if statement.sampling < 1:
        return Bounds(statement, area_of(statement.epsilon, statement.delta.total), None)
    mu = math.sqrt(statement.steps) / statement.noise
    upload = gaussian_area(mu * math.sqrt(shares.needed)) if in_clear else None
    return Bounds(statement, gaussian_area(mu), upload)


def gaussian_area(mu: float) -> float:
    """The area under the ROC curve of a Gaussian release with shift `mu` in units of its deviation."""
    return float(ndtr(mu / math.sqrt(2)))


def area_of(epsilon: float, delta: float) -> float:
    """The area under the ROC curve y = min(e^epsilon x + delta, 1 - e^-epsilon (1 - delta - x), 1)."""
    less = math.exp(-epsilon)
    turn = (1 - delta) * less / (1 + less)  # where the first line meets the second one
    height = 1 - turn
    first = turn * (delta + height) / 2
    second = (1 - delta - turn) * (height + 1) / 2
    return first + second + delta
