"""RotatE: f(h, r, t) = margin − Σ_j |h_j · e^(i θ_j) − t_j| over complex coordinates j.

Reference: Sun et al., "RotatE: Knowledge Graph Embedding by Relational Rotation in Complex Space", ICLR 2019. As there,
a stored relation value x stands for the phase θ = π x / initial range, so that phases and coordinates share one
learning rate.
"""

import math

import torch
from torch import Tensor

from secure_kg.models.base import EmbeddingModel, ModelSize
from secure_kg.models.geometry import COMPLEX_L1
from secure_kg.models.shapes import initial_range


def tail_points(h: Tensor, r: Tensor, phase_unit: float) -> Tensor:
    """h [..., 2 dim], r [..., dim] -> [..., 2 dim]; `phase_unit` is the stored value of half a turn, θ = π."""
    return _rotated(h, r * (math.pi / phase_unit))


def head_points(r: Tensor, t: Tensor, phase_unit: float) -> Tensor:
    """r [..., dim], t [..., 2 dim] -> [..., 2 dim]; turning t back keeps every distance."""
    return _rotated(t, r * (-math.pi / phase_unit))


def _rotated(x: Tensor, phase: Tensor) -> Tensor:
    """x [..., 2 dim] turned by phase [..., dim]."""
    re, im = x.chunk(2, dim=-1)
    cos, sin = torch.cos(phase), torch.sin(phase)
    return torch.cat((re * cos - im * sin, re * sin + im * cos), dim=-1)


class RotatE(EmbeddingModel):
    """Relations are rotations, coordinate by coordinate."""

    name = "RotatE"
    geometry = COMPLEX_L1

    def __init__(self, size: ModelSize, generator: torch.Generator) -> None:
        super().__init__(size, generator)
        self.offset = size.margin
        self.phase_unit = initial_range(size.margin, size.dim)

    def tail_points(self, h: Tensor, r: Tensor) -> Tensor:
        return tail_points(h, r, self.phase_unit)

    def head_points(self, r: Tensor, t: Tensor) -> Tensor:
        return head_points(r, t, self.phase_unit)
