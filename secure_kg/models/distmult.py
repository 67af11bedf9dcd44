"""DistMult: f(h, r, t) = Σ_j h_j r_j t_j.

Reference: Yang et al., "Embedding Entities and Relations for Learning and Inference in Knowledge Bases", ICLR 2015. The
score is symmetric in h and t and, as in FedE, has no margin.
"""

from torch import Tensor

from secure_kg.models.base import EmbeddingModel
from secure_kg.models.geometry import DOT


def points(entity: Tensor, r: Tensor) -> Tensor:
    """entity, r [..., dim] -> [..., dim], for either end."""
    return entity * r


class DistMult(EmbeddingModel):
    """Relations are diagonal bilinear forms."""

    name = "DistMult"
    geometry = DOT

    def tail_points(self, h: Tensor, r: Tensor) -> Tensor:
        return points(h, r)

    def head_points(self, r: Tensor, t: Tensor) -> Tensor:
        return points(t, r)
