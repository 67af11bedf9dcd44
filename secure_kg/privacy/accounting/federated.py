"""The noise multiplier of a private run before it begins: of the budget, less what drawn integers cost.

A step of a federation is one release: what clients add to the sum of shared rows, with shares of noise, and what each
keeps of its own tables, with all noise by itself, under one joint clip. All steps have the same multiplier. Draws cost
what `protocols.sums.noise_shares` says: log probabilities twice in epsilon, total variation (1 + e^epsilon) times in
delta. The number of draws is bounded by public settings.
"""

import math
from dataclasses import dataclass

from protocols.sums.noise_shares import NARROWEST, cut_error, sampler_error, smoothing_loss
from secure_kg.foundation.errors import UserError
from secure_kg.privacy.accounting.accountant import Budget, noise_for


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A multiplier and what becomes of delta."""

    multiplier: float
    """Deviation over sensitivity, of the continuous Gaussians that a step is worth."""
    delta_of_accountant: float
    delta_of_sampler: float
    delta_of_tails: float


def calibrated(budget: Budget, steps: int, sampling: float, entries: int, parties: int) -> Calibrated:
    """The least multiplier for `steps` steps of at most `entries` noised numbers for each of `parties` and their sum.

    `UserError` if delta does not even pay for the draws.
    """
    draws = steps * entries * (parties + 1)
    loss = steps * 2 * smoothing_loss(entries, parties, NARROWEST)
    factor = 1 + math.exp(budget.epsilon) if budget.epsilon < 700 else math.inf
    sampler, tails = factor * sampler_error(draws), factor * cut_error(draws)
    left = budget.delta - sampler - tails
    if not left > 0:
        raise UserError(
            f"--delta {budget.delta:g}: at epsilon {budget.epsilon:g} drawing noise alone may cost "
            f"{sampler + tails:.1g}; give a smaller epsilon or a smaller --union-bound"
        )
    ideal = Budget(budget.epsilon - 2 * loss, left * math.exp(-loss))
    return Calibrated(noise_for(ideal, steps, sampling), left, sampler, tails)
