"""RotatE: f(h, r, t) = margin − Σ_j |h_j · e^(i θ_j) − t_j| over complex coordinates j.

Reference: Sun et al., "RotatE: Knowledge Graph Embedding by Relational Rotation in Complex Space", ICLR 2019. As there,
a stored relation value x stands for the phase θ = π x / initial range, so that phases and coordinates share one
learning rate.
"""

import math
from typing import Any, cast

import torch
from torch import Tensor

from secure_kg.kernels.rotations import turn, turn_gradient
from secure_kg.models.base import EmbeddingModel, ModelSize
from secure_kg.models.geometry import COMPLEX_L1, on_cpu
from secure_kg.models.shapes import initial_range


def tail_points(h: Tensor, r: Tensor, phase_unit: float) -> Tensor:
    """h [..., 2 dim], r [..., dim] -> [..., 2 dim]; `phase_unit` is the stored value of half a turn, θ = π."""
    return _rotated(h, r * (math.pi / phase_unit))


def head_points(r: Tensor, t: Tensor, phase_unit: float) -> Tensor:
    """r [..., dim], t [..., 2 dim] -> [..., 2 dim]; turning t back keeps every distance."""
    return _rotated(t, r * (-math.pi / phase_unit))


def _rotated(x: Tensor, phase: Tensor) -> Tensor:
    """x [..., 2 dim] turned by phase [..., dim]; by compiled loops where they can run."""
    if on_cpu(x, phase) and x.dim() == phase.dim() == 2 and len(x) == len(phase):
        return cast(Tensor, _Turned.apply(x, phase))  # type: ignore[no-untyped-call]
    return torch_rotated(x, phase)


def torch_rotated(x: Tensor, phase: Tensor) -> Tensor:
    """The same on any device, in any precision and shape."""
    re, im = x.chunk(2, dim=-1)
    cos, sin = torch.cos(phase), torch.sin(phase)
    return torch.cat((re * cos - im * sin, re * sin + im * cos), dim=-1)


class _Turned(torch.autograd.Function):
    """A turn and its gradient in one pass each; autograd makes ten."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, phase: Tensor) -> Tensor:
        x, cos, sin = x.detach().contiguous(), torch.cos(phase).contiguous(), torch.sin(phase).contiguous()
        out = torch.empty_like(x)
        turn(x.numpy(), cos.numpy(), sin.numpy(), out.numpy())
        ctx.save_for_backward(out, cos, sin)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        out, cos, sin = ctx.saved_tensors
        by_x, by_phase = torch.empty_like(out), torch.empty_like(cos)
        given = out, cos, sin, gradients[0].contiguous(), by_x, by_phase
        turn_gradient(*(tensor.detach().numpy() for tensor in given))
        return by_x, by_phase


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
