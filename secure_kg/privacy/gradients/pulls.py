"""Gradients pulled back through a model's map from (anchor, relation) to a point: one function per kind of relation.

With q = ∂L/∂point [b, width], the anchor (the end of a triple that is not corrupted) gets Jᵀ q by its row, the relation
Jᵀ q by its row. A matrix of RESCAL gets an outer product, which is never written down for each triple: its norm is a
product of two norms, and the sum over the triples of one relation is one matrix product.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from secure_kg.data.graph import Side
from secure_kg.models.base import EmbeddingModel
from secure_kg.models.rotate import RotatE


@dataclass(frozen=True, slots=True)
class Anchored:
    """The known half of b triples: rows of anchors [b, width], of relations [b, relation width], and their points."""

    anchor: Tensor
    relation: Tensor
    points: Tensor
    side: Side
    """The end that is corrupted."""


class ByRelation(ABC):
    """Gradients by relation rows, one per triple."""

    @abstractmethod
    def squared_norms(self) -> Tensor:
        """[b]."""

    @abstractmethod
    def add_to(self, table: Tensor, ids: Tensor, scale: Tensor) -> None:
        """Add gradient times scale [b] to rows ids [b] of a table [m, relation width]."""


@dataclass(frozen=True, slots=True)
class _Rows(ByRelation):
    rows: Tensor  # [b, relation width]

    def squared_norms(self) -> Tensor:
        return squared_norms(self.rows)

    def add_to(self, table: Tensor, ids: Tensor, scale: Tensor) -> None:
        table.index_add_(0, ids, (self.rows * scale[:, None]).to(table.dtype))


@dataclass(frozen=True, slots=True)
class _OuterProducts(ByRelation):
    left: Tensor  # [b, dim]
    right: Tensor

    def squared_norms(self) -> Tensor:
        return squared_norms(self.left) * squared_norms(self.right)

    def add_to(self, table: Tensor, ids: Tensor, scale: Tensor) -> None:
        order = torch.argsort(ids)
        left, right = (self.left * scale[:, None])[order], self.right[order]
        relations, counts = torch.unique_consecutive(ids[order], return_counts=True)
        parts = zip(torch.split(left, counts.tolist()), torch.split(right, counts.tolist()), strict=True)
        for relation, (some, others) in zip(relations.tolist(), parts, strict=True):
            table[relation] += (some.double().t() @ others.double()).reshape(-1)


class Pull(ABC):
    """The transposed derivative of one kind of map."""

    @abstractmethod
    def back(self, model: EmbeddingModel, known: Anchored, by_point: Tensor) -> tuple[Tensor, ByRelation]:
        """by_point [b, width] to the gradients by anchor rows [b, width] and by relation rows."""


class _Translation(Pull):
    """Point h + r of tails, t − r of heads."""

    def back(self, model: EmbeddingModel, known: Anchored, by_point: Tensor) -> tuple[Tensor, ByRelation]:
        return by_point, _Rows(by_point if known.side == "tail" else -by_point)


class _Product(Pull):
    """Point anchor ∘ r, for either side."""

    def back(self, model: EmbeddingModel, known: Anchored, by_point: Tensor) -> tuple[Tensor, ByRelation]:
        return known.relation * by_point, _Rows(known.anchor * by_point)


class _ComplexProduct(Pull):
    """Point h r of tails, conj(r) t of heads, coordinate by coordinate."""

    def back(self, model: EmbeddingModel, known: Anchored, by_point: Tensor) -> tuple[Tensor, ByRelation]:
        a, r, q = (torch.complex(*x.chunk(2, dim=-1)) for x in (known.anchor, known.relation, by_point))
        if known.side == "tail":
            return _real(r.conj() * q), _Rows(_real(a.conj() * q))
        return _real(r * q), _Rows(_real(a * q.conj()))


class _Rotation(Pull):
    """Point h e^(iθ) of tails, t e^(−iθ) of heads; θ is π / `phase_unit` times the stored value."""

    def back(self, model: EmbeddingModel, known: Anchored, by_point: Tensor) -> tuple[Tensor, ByRelation]:
        if not isinstance(model, RotatE):
            raise TypeError(f"{type(model).__name__} has no unit of phases")
        sign = 1.0 if known.side == "tail" else -1.0
        unit = sign * math.pi / model.phase_unit
        p, q = (torch.complex(*x.chunk(2, dim=-1)) for x in (known.points, by_point))
        turn = torch.polar(torch.ones_like(known.relation), known.relation * unit)
        # ∂p/∂θ = ± i p, and Re(conj(q) i p) is the imaginary part of q conj(p).
        return _real(q * turn.conj()), _Rows((q * p.conj()).imag * unit)


class _Matrix(Pull):
    """Point hᵀ M of tails, M t of heads."""

    def back(self, model: EmbeddingModel, known: Anchored, by_point: Tensor) -> tuple[Tensor, ByRelation]:
        dim = known.anchor.shape[1]
        matrices = known.relation.view(-1, dim, dim)
        if known.side == "tail":
            return torch.bmm(matrices, by_point[:, :, None])[:, :, 0], _OuterProducts(known.anchor, by_point)
        return torch.bmm(by_point[:, None, :], matrices)[:, 0], _OuterProducts(by_point, known.anchor)


PULLS: Final[dict[str, Pull]] = {
    "TransE": _Translation(),
    "TransM": _Translation(),
    "DistMult": _Product(),
    "ComplEx": _ComplexProduct(),
    "RotatE": _Rotation(),
    "RESCAL": _Matrix(),
}
"""By the names of models."""


def dots(x: Tensor, y: Tensor) -> Tensor:
    """x, y [b, width] to the products of rows [b]."""
    products: Tensor = torch.linalg.vecdot(x, y)
    return products


def squared_norms(rows: Tensor) -> Tensor:
    """rows [b, width] to [b]."""
    return dots(rows, rows)


def _real(x: Tensor) -> Tensor:
    """Complex [b, dim] as real parts, then imaginary parts."""
    return torch.cat((x.real, x.imag), dim=-1)
