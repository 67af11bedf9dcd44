"""RESCAL: f(h, r, t) = hᵀ M_r t with a full matrix M_r for each relation.

Reference: Nickel et al., "A Three-Way Model for Collective Learning on Multi-Relational Data", ICML 2011; used by DPKGE
(Han et al., J. Web Semantics 2022). Without a margin, as the other bilinear models. A relation row is M_r, row by row:
dim² values, so that FedR shares them like any other row.
"""

from torch import Tensor

from secure_kg.models.base import EmbeddingModel
from secure_kg.models.geometry import DOT


def tail_points(h: Tensor, r: Tensor) -> Tensor:
    """h [..., dim], r [..., dim²] -> hᵀ M_r [..., dim]."""
    return (h[..., None, :] @ _matrices(r))[..., 0, :]


def head_points(r: Tensor, t: Tensor) -> Tensor:
    """r [..., dim²], t [..., dim] -> M_r t [..., dim]."""
    return (_matrices(r) @ t[..., :, None])[..., 0]


def _matrices(r: Tensor) -> Tensor:
    dim = round(r.shape[-1] ** 0.5)
    return r.reshape(*r.shape[:-1], dim, dim)


class RESCAL(EmbeddingModel):
    """Relations are bilinear forms."""

    name = "RESCAL"
    geometry = DOT

    def tail_points(self, h: Tensor, r: Tensor) -> Tensor:
        return tail_points(h, r)

    def head_points(self, r: Tensor, t: Tensor) -> Tensor:
        return head_points(r, t)
