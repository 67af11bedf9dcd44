"""DistMult: f(h, r, t) = Σ_j h_j r_j t_j.

Reference: Yang et al., "Embedding Entities and Relations for Learning and Inference in Knowledge Bases", ICLR 2015. The
score is symmetric in h and t and, as in FedE, has no margin.
"""

from torch import Tensor

from secure_kg.models.base import EmbeddingModel


def score(h: Tensor, r: Tensor, t: Tensor) -> Tensor:
    """h, r, t [..., dim] -> [...]."""
    return (h * r * t).sum(-1)


def score_tails(h: Tensor, r: Tensor, tails: Tensor) -> Tensor:
    """h [b, dim], r [b, dim], tails [m, dim] -> [b, m]."""
    return (h * r) @ tails.t()


def score_heads(heads: Tensor, r: Tensor, t: Tensor) -> Tensor:
    """heads [m, dim], r [b, dim], t [b, dim] -> [b, m]."""
    return (r * t) @ heads.t()


class DistMult(EmbeddingModel):
    """Relations are diagonal bilinear forms."""

    name = "DistMult"

    def score(self, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
        return score(h, r, t)

    def score_tails(self, h: Tensor, r: Tensor, tails: Tensor) -> Tensor:
        return score_tails(h, r, tails)

    def score_heads(self, heads: Tensor, r: Tensor, t: Tensor) -> Tensor:
        return score_heads(heads, r, t)
