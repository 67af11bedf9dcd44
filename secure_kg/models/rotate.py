"""RotatE: f(h, r, t) = margin − Σ_j |h_j · e^(i θ_j) − t_j| over complex coordinates j.

Reference: Sun et al., "RotatE: Knowledge Graph Embedding by Relational Rotation in Complex Space", ICLR 2019. As there,
a stored relation value x stands for the phase θ = π x / initial range, so that phases and coordinates share one
learning rate.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from secure_kg.models.base import EmbeddingModel, ModelSize
from secure_kg.models.shapes import initial_range


def score(h: Tensor, r: Tensor, t: Tensor, margin: float, phase_unit: float) -> Tensor:
    """h, t [..., 2 dim], r [..., dim] -> [...]; `phase_unit` is the stored value of half a turn, θ = π."""
    difference = _rotated(h, r / phase_unit * math.pi) - t
    parts = torch.stack(difference.chunk(2, dim=-1))
    # vector_norm has gradient zero at zero, where hypot has none.
    moduli: Tensor = torch.linalg.vector_norm(parts, dim=0)
    return margin - moduli.sum(-1)


def score_tails(h: Tensor, r: Tensor, tails: Tensor, margin: float, phase_unit: float) -> Tensor:
    """h [b, 2 dim], r [b, dim], tails [m, 2 dim] -> [b, m]."""
    return margin - complex_l1(_rotated(h, r / phase_unit * math.pi), tails)


def score_heads(heads: Tensor, r: Tensor, t: Tensor, margin: float, phase_unit: float) -> Tensor:
    """heads [m, 2 dim], r [b, dim], t [b, 2 dim] -> [b, m]; turning t back keeps every distance."""
    return margin - complex_l1(_rotated(t, r / phase_unit * -math.pi), heads)


def _rotated(x: Tensor, phase: Tensor) -> Tensor:
    """x [..., 2 dim] turned by phase [..., dim]."""
    re, im = x.chunk(2, dim=-1)
    cos, sin = torch.cos(phase), torch.sin(phase)
    return torch.cat((re * cos - im * sin, re * sin + im * cos), dim=-1)


def complex_l1(x: Tensor, y: Tensor) -> Tensor:
    """Σ_j |x_j − y_j| for every pair of x [b, 2 dim] and y [m, 2 dim] -> [b, m]."""
    distances: Tensor = _ComplexL1.apply(x, y)  # type: ignore[no-untyped-call]
    return distances


class _ComplexL1(torch.autograd.Function):
    """One coordinate at a time, recomputed in the backward pass: [b, m] of memory instead of [b, m, dim].

    Autograd over the broadcast difference takes 50 times as long at b = 512, m = 256, dim = 128.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        total = x.new_zeros(len(x), len(y))
        for _, re, im in _differences(x, y):
            total += re.mul_(re).addcmul_(im, im).sqrt_()
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        (gradient,) = gradients
        x, y = ctx.saved_tensors
        dim = x.shape[1] // 2
        x_grad, y_grad = x.new_empty(2 * dim, len(x)), y.new_empty(2 * dim, len(y))
        for j, re, im in _differences(x, y):
            # The floor only matters where the modulus is zero; there the differences, and so the gradients, are zero.
            weight = (re * re).addcmul_(im, im).clamp_(min=1e-30).rsqrt_().mul_(gradient)
            for row, part in ((j, re.mul_(weight)), (j + dim, im.mul_(weight))):
                torch.sum(part, 1, out=x_grad[row])
                torch.sum(part, 0, out=y_grad[row])
        return x_grad.t(), y_grad.neg_().t()


def _differences(x: Tensor, y: Tensor) -> Iterator[tuple[int, Tensor, Tensor]]:
    """For each coordinate j: j and the real and imaginary parts of x_j − y_j for every pair, [b, m] each."""
    x, y = x.t().contiguous(), y.t().contiguous()
    dim = len(x) // 2
    for j in range(dim):
        yield j, x[j, :, None] - y[j], x[j + dim, :, None] - y[j + dim]


class RotatE(EmbeddingModel):
    """Relations are rotations, coordinate by coordinate."""

    name = "RotatE"

    def __init__(self, size: ModelSize, generator: torch.Generator) -> None:
        super().__init__(size, generator)
        self.phase_unit = initial_range(size.margin, size.dim)

    def score(self, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
        return score(h, r, t, self.size.margin, self.phase_unit)

    def score_tails(self, h: Tensor, r: Tensor, tails: Tensor) -> Tensor:
        return score_tails(h, r, tails, self.size.margin, self.phase_unit)

    def score_heads(self, heads: Tensor, r: Tensor, t: Tensor) -> Tensor:
        return score_heads(heads, r, t, self.size.margin, self.phase_unit)
