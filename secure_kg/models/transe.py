"""TransE: f(h, r, t) = margin − ‖h + r − t‖_p, with p = 1 or 2.

Reference: Bordes et al., "Translating Embeddings for Modeling Multi-relational Data", NeurIPS 2013; the margin inside
the score follows RotatE (Sun et al., ICLR 2019) and FedE (Chen et al., IJCKG 2021).
"""

import torch
from torch import Tensor

from secure_kg.models.base import EmbeddingModel, ModelSize
from secure_kg.models.geometry import BY_NORM


def tail_points(h: Tensor, r: Tensor) -> Tensor:
    """h, r [..., dim] -> [..., dim]."""
    return h + r


def head_points(r: Tensor, t: Tensor) -> Tensor:
    """r, t [..., dim] -> [..., dim]; the distance from a head to t − r is that from h + r to t."""
    return t - r


class TransE(EmbeddingModel):
    """Relations are translations."""

    name = "TransE"

    def __init__(self, size: ModelSize, generator: torch.Generator) -> None:
        super().__init__(size, generator)
        self.geometry, self.offset = BY_NORM[size.norm], size.margin

    def tail_points(self, h: Tensor, r: Tensor) -> Tensor:
        return tail_points(h, r)

    def head_points(self, r: Tensor, t: Tensor) -> Tensor:
        return head_points(r, t)
