"""Noise on chosen rows: what the mechanisms that choose rows share.

The rows of the candidates are public and touched by every triple, so they are always among the chosen ones. Relation
rows are few, carry as much of a triple as entity rows do, and are noised all.
"""

import torch
from torch import Tensor

from secure_kg.privacy.draws.noise import NoiseSource
from secure_kg.privacy.mechanisms.interface import NoisedSums, PrivateStep


def noised_rows(step: PrivateStep, chosen: Tensor, noise: float, source: NoiseSource) -> NoisedSums:
    """Sums with noise on the rows where chosen [n], which itself was released, is true; the others are zero."""
    chosen = chosen.clone()
    chosen[step.candidates] = True
    entity = torch.zeros_like(step.sums.entity)
    entity[chosen] = step.grid.noised(step.sums.entity[chosen], noise, source)
    return NoisedSums(entity, step.grid.noised(step.sums.relation, noise, source), int(chosen.sum()))


def split(total: float, *shares: float) -> tuple[float, ...]:
    """Multipliers of parts that are together one release of multiplier `total`; shares, of its squared cost, sum to 1.

    (Σ s_i^-2)^-1/2 = total.
    """
    return tuple(total / share**0.5 for share in shares)
