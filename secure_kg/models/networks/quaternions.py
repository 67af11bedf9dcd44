"""Quaternions as rows: the four quarters of a row are the parts 1, i, j, k of as many quaternions as a quarter has.

A row's inner product with another is the sum of those of their quaternions, and ⟨x ⊗ y, z⟩ = ⟨x, z ⊗ y*⟩: so heads are
ranked by the same kind of product as tails.
"""

from typing import Final

import torch
from torch import Tensor

_TINY: Final = torch.finfo(torch.float32).tiny


def product(x: Tensor, y: Tensor) -> Tensor:
    """Hamilton products x ⊗ y of rows [..., width], quaternion by quaternion."""
    a, b, c, d = x.chunk(4, dim=-1)
    e, f, g, h = y.chunk(4, dim=-1)
    return torch.cat(
        (
            a * e - b * f - c * g - d * h,
            a * f + b * e + c * h - d * g,
            a * g - b * h + c * e + d * f,
            a * h + b * g - c * f + d * e,
        ),
        dim=-1,
    )


def conjugate(x: Tensor) -> Tensor:
    """x*: all parts but the first with the other sign."""
    real, *imaginary = x.chunk(4, dim=-1)
    return torch.cat((real, *(-part for part in imaginary)), dim=-1)


def unit(x: Tensor) -> Tensor:
    """Every quaternion divided by its length; one of zeros stays one."""
    parts = x.reshape(*x.shape[:-1], 4, x.shape[-1] // 4)
    lengths = parts.square().sum(dim=-2, keepdim=True).clamp_min(_TINY).sqrt()
    return (parts / lengths).reshape(x.shape)
