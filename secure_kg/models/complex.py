"""ComplEx: f(h, r, t) = Re Σ_j h_j r_j conj(t_j) over complex coordinates j.

Reference: Trouillon et al., "Complex Embeddings for Simple Link Prediction", ICML 2016. As in FedE, without a margin.
"""

import torch
from torch import Tensor

from secure_kg.models.base import EmbeddingModel


def score(h: Tensor, r: Tensor, t: Tensor) -> Tensor:
    """h, r, t [..., 2 dim] -> [...]."""
    return (_product(h, r) * t).sum(-1)


def score_tails(h: Tensor, r: Tensor, tails: Tensor) -> Tensor:
    """h [b, 2 dim], r [b, 2 dim], tails [m, 2 dim] -> [b, m]; Re(x conj(y)) is the plain dot product of the rows."""
    return _product(h, r) @ tails.t()


def score_heads(heads: Tensor, r: Tensor, t: Tensor) -> Tensor:
    """heads [m, 2 dim], r [b, 2 dim], t [b, 2 dim] -> [b, m]; Re(h r conj(t)) = Re(h conj(conj(r) t))."""
    re, im = r.chunk(2, dim=-1)
    return _product(t, torch.cat((re, -im), dim=-1)) @ heads.t()


def _product(x: Tensor, y: Tensor) -> Tensor:
    """Complex product, coordinate by coordinate, of rows [..., 2 dim]."""
    x_re, x_im = x.chunk(2, dim=-1)
    y_re, y_im = y.chunk(2, dim=-1)
    return torch.cat((x_re * y_re - x_im * y_im, x_re * y_im + x_im * y_re), dim=-1)


class ComplEx(EmbeddingModel):
    """Relations are complex diagonal bilinear forms, so a relation need not be symmetric."""

    name = "ComplEx"

    def score(self, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
        return score(h, r, t)

    def score_tails(self, h: Tensor, r: Tensor, tails: Tensor) -> Tensor:
        return score_tails(h, r, tails)

    def score_heads(self, heads: Tensor, r: Tensor, t: Tensor) -> Tensor:
        return score_heads(heads, r, t)
