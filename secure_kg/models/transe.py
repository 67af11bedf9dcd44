"""TransE: f(h, r, t) = margin − ‖h + r − t‖_p, with p = 1 or 2.

Reference: Bordes et al., "Translating Embeddings for Modeling Multi-relational Data", NeurIPS 2013; the margin inside
the score follows RotatE (Sun et al., ICLR 2019) and FedE (Chen et al., IJCKG 2021).
"""

import torch
from torch import Tensor

from secure_kg.models.base import EmbeddingModel


def score(h: Tensor, r: Tensor, t: Tensor, margin: float, p: int = 1) -> Tensor:
    """h, r, t [..., dim] -> [...]."""
    distance: Tensor = torch.linalg.vector_norm(h + r - t, ord=p, dim=-1)
    return margin - distance


def score_tails(h: Tensor, r: Tensor, tails: Tensor, margin: float, p: int = 1) -> Tensor:
    """h [b, dim], r [b, dim], tails [m, dim] -> [b, m]."""
    return margin - _distances(h + r, tails, p)


def score_heads(heads: Tensor, r: Tensor, t: Tensor, margin: float, p: int = 1) -> Tensor:
    """heads [m, dim], r [b, dim], t [b, dim] -> [b, m]; the distance from a head to t − r is that from h + r to t."""
    return margin - _distances(t - r, heads, p)


def _distances(x: Tensor, y: Tensor, p: int) -> Tensor:
    # The matmul form of p = 2 cancels for close rows and would disagree with `score`; it is not much faster either.
    return torch.cdist(x, y, p=float(p), compute_mode="donot_use_mm_for_euclid_dist")


class TransE(EmbeddingModel):
    """Relations are translations."""

    name = "TransE"

    def score(self, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
        return score(h, r, t, self.size.margin, self.size.norm)

    def score_tails(self, h: Tensor, r: Tensor, tails: Tensor) -> Tensor:
        return score_tails(h, r, tails, self.size.margin, self.size.norm)

    def score_heads(self, heads: Tensor, r: Tensor, t: Tensor) -> Tensor:
        return score_heads(heads, r, t, self.size.margin, self.size.norm)
