"""ComplEx: f(h, r, t) = Re Σ_j h_j r_j conj(t_j) over complex coordinates j.

Reference: Trouillon et al., "Complex Embeddings for Simple Link Prediction", ICML 2016. As in FedE, without a margin.
"""

import torch
from torch import Tensor

from secure_kg.models.base import EmbeddingModel
from secure_kg.models.geometry import DOT


def tail_points(h: Tensor, r: Tensor) -> Tensor:
    """h, r [..., 2 dim] -> h r; Re(x conj(y)) is the plain dot product of the rows."""
    return _product(h, r)


def head_points(r: Tensor, t: Tensor) -> Tensor:
    """r, t [..., 2 dim] -> conj(r) t, since Re(h r conj(t)) = Re(h conj(conj(r) t))."""
    re, im = r.chunk(2, dim=-1)
    return _product(t, torch.cat((re, -im), dim=-1))


def _product(x: Tensor, y: Tensor) -> Tensor:
    """Complex product, coordinate by coordinate, of rows [..., 2 dim]."""
    x_re, x_im = x.chunk(2, dim=-1)
    y_re, y_im = y.chunk(2, dim=-1)
    return torch.cat((x_re * y_re - x_im * y_im, x_re * y_im + x_im * y_re), dim=-1)


class ComplEx(EmbeddingModel):
    """Relations are complex diagonal bilinear forms, so a relation need not be symmetric."""

    name = "ComplEx"
    geometry = DOT

    def tail_points(self, h: Tensor, r: Tensor) -> Tensor:
        return tail_points(h, r)

    def head_points(self, r: Tensor, t: Tensor) -> Tensor:
        return head_points(r, t)
