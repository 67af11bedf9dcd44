"""Gradients pulled back through a model's map from (anchor, relation) to a point: one class per kind of relation.

With q = ∂L/∂point [b, width], the anchor (the end of a triple that is not corrupted) gets Jᵀ q by its row, the relation
Jᵀ q by its row. A matrix of RESCAL gets an outer product, which is never written down for each triple: its norm is a
product of two norms, and the sum over the triples of one relation is one matrix product.

Here are elementary operations on single values, which round alike wherever a value stands, and products of numbers on
grids, which are exact. Sines and cosines are taken once, of the whole public table.
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
from secure_kg.privacy.gradients.comparisons import squared_norms
from secure_kg.privacy.gradients.exact_sums import ExactSum
from secure_kg.privacy.gradients.strict import add_rows, rounded, scaled
from secure_kg.privacy.gradients.units import END_BITS, ROW_BITS, Scales, double

_FORM_BITS: Final = 22
_SCALED_FORM_BITS: Final = 24  # 1024 · 2²⁴ · 2¹⁸ < 2⁵³


@dataclass(frozen=True, slots=True)
class Anchored:
    """The known half of b triples: rows of anchors [b, width], of relations [b, relation width], and their points."""

    anchor: Tensor
    relation: Tensor
    points: Tensor
    side: Side
    """The end that is corrupted."""


@dataclass(frozen=True, slots=True)
class ByRelation:
    """Gradients by relation rows, one per triple: rows [b, relation width], or outer products anchor ⊗ row [b, dim]."""

    rows: Tensor
    anchors: Tensor | None = None
    transposed: bool = False
    """row ⊗ anchor instead."""

    def squared_norms(self) -> Tensor:
        squares = squared_norms(self.rows)
        return squares if self.anchors is None else squares * squared_norms(self.anchors)


class RelationSums(ABC):
    """The sums of gradients by relation rows."""

    @abstractmethod
    def add(self, found: ByRelation, ids: Tensor, scale: Tensor) -> None:
        """Gradients of a chunk times scale [b], to rows ids [b]."""

    @abstractmethod
    def total(self) -> Tensor: ...


class _RowSums(RelationSums):
    def __init__(self, shape: torch.Size, unit: float) -> None:
        self._table, self._grid = torch.zeros(shape, dtype=torch.float64), (unit, 2.0**END_BITS)

    def add(self, found: ByRelation, ids: Tensor, scale: Tensor) -> None:
        add_rows(self._table.numpy(), ids.numpy(), found.rows.numpy(), scale.numpy(), self._grid)

    def total(self) -> Tensor:
        return self._table


class _MatrixSums(RelationSums):
    """Of outer products of an anchor, which is on its grid, and the gradient by a point, which is scaled."""

    def __init__(self, shape: torch.Size, scales: Scales) -> None:
        most = min(2 * scales.weight * scales.entity, 128 * scales.clip / scales.typical)
        self._unit = most * 2.0**-_SCALED_FORM_BITS
        self._sums = ExactSum(shape, self._unit * scales.entity * 2.0**-ROW_BITS)

    def add(self, found: ByRelation, ids: Tensor, scale: Tensor) -> None:
        if found.anchors is None:
            raise TypeError("matrices have outer products")
        forms = found.rows.clone()
        scaled(forms.numpy(), scale.numpy(), self._unit, 2.0**_SCALED_FORM_BITS)
        order = torch.argsort(ids)
        left, right = found.anchors[order], forms[order]
        relations, counts = torch.unique_consecutive(ids[order], return_counts=True)
        parts = zip(torch.split(left, counts.tolist()), torch.split(right, counts.tolist()), strict=True)
        for relation, (some, others) in zip(relations.tolist(), parts, strict=True):
            form = others.t() @ some if found.transposed else some.t() @ others
            self._sums.add(form.reshape(-1), relation)

    def total(self) -> Tensor:
        return self._sums.total()


class Pull:
    """A map from (anchor, relation) to a point, and its transposed derivative. This one: h + r of tails, t − r."""

    one_grid = True
    """Whether entity and relation rows are rounded to one unit, and their points lie on it as well."""

    def farthest(self, dim: int, scales: Scales) -> float:
        """A power of two: no coordinate of a point is larger."""
        return 2 * max(scales.entity, scales.relation)

    def steepest(self, model: EmbeddingModel, scales: Scales) -> float:
        """About the largest factor from a gradient by a point to those by its anchor and relation."""
        return 1.0

    def relation_table(self, model: EmbeddingModel) -> Tensor:
        """What relation rows are taken from."""
        return model.relation.detach().cpu()

    def points(self, model: EmbeddingModel, anchor: Tensor, rows: Tensor, side: Side) -> Tensor:
        """[b, width], of anchors [b, width] and relation rows with what the model adds to them."""
        return model.tail_points(anchor, rows) if side == "tail" else model.head_points(rows, anchor)

    def sums(self, shape: torch.Size, unit: float, scales: Scales) -> RelationSums:
        """`unit`: of what is added to single rows."""
        return _RowSums(shape, unit)

    def back(self, model: EmbeddingModel, known: Anchored, by_point: Tensor) -> tuple[Tensor, ByRelation]:
        """by_point [b, width] to the gradients by anchor rows [b, width] and by relation rows."""
        return by_point, ByRelation(by_point if known.side == "tail" else -by_point)


class _Product(Pull):
    """Point anchor ∘ r, for either side."""

    one_grid = False

    def farthest(self, dim: int, scales: Scales) -> float:
        return scales.entity * scales.relation

    def steepest(self, model: EmbeddingModel, scales: Scales) -> float:
        return max(scales.entity, scales.relation)

    def back(self, model: EmbeddingModel, known: Anchored, by_point: Tensor) -> tuple[Tensor, ByRelation]:
        return known.relation * by_point, ByRelation(known.anchor * by_point)


class _ComplexProduct(Pull):
    """Point h r of tails, conj(r) t of heads, coordinate by coordinate."""

    one_grid = False

    def farthest(self, dim: int, scales: Scales) -> float:
        return 2 * scales.entity * scales.relation

    def steepest(self, model: EmbeddingModel, scales: Scales) -> float:
        return 2 * max(scales.entity, scales.relation)

    def back(self, model: EmbeddingModel, known: Anchored, by_point: Tensor) -> tuple[Tensor, ByRelation]:
        a, r, q = known.anchor, known.relation, by_point
        if known.side == "tail":
            return _times(_conjugate(r), q), ByRelation(_times(_conjugate(a), q))
        return _times(r, q), ByRelation(_times(a, _conjugate(q)))


class _Rotation(Pull):
    """Point h e^(iθ) of tails, t e^(−iθ) of heads; θ is π / `phase_unit` times the stored value.

    The table of relations is that of e^(iθ). Points are rounded to the grid of entities.
    """

    one_grid = False

    def farthest(self, dim: int, scales: Scales) -> float:
        return scales.entity

    def steepest(self, model: EmbeddingModel, scales: Scales) -> float:
        return 2 * max(1.0, scales.entity * self._unit(model))

    def relation_table(self, model: EmbeddingModel) -> Tensor:
        phases = double(model.relation) * self._unit(model)
        return torch.cat((torch.cos(phases), torch.sin(phases)), dim=-1)

    def _unit(self, model: EmbeddingModel) -> float:
        if not isinstance(model, RotatE):
            raise TypeError(f"{type(model).__name__} has no unit of phases")
        return math.pi / model.phase_unit

    def points(self, model: EmbeddingModel, anchor: Tensor, rows: Tensor, side: Side) -> Tensor:
        return _times(anchor, rows if side == "tail" else _conjugate(rows))

    def back(self, model: EmbeddingModel, known: Anchored, by_point: Tensor) -> tuple[Tensor, ByRelation]:
        tail, unit = known.side == "tail", self._unit(model)
        turned = _times(by_point, _conjugate(known.relation) if tail else known.relation)
        # ∂p/∂θ = ± i p, and Re(conj(q) i p) is the imaginary part of q conj(p).
        imaginary = _times(by_point, _conjugate(known.points)).chunk(2, dim=-1)[1]
        return turned, ByRelation(imaginary * (unit if tail else -unit))


class _Matrix(Pull):
    """Point hᵀ M of tails, M t of heads. The gradient by a point is rounded to a grid before it is pulled back."""

    one_grid = False

    def farthest(self, dim: int, scales: Scales) -> float:
        return scales.entity * scales.relation * 2.0 ** math.ceil(math.log2(dim))

    def steepest(self, model: EmbeddingModel, scales: Scales) -> float:
        return model.entity.shape[1] * scales.relation

    def sums(self, shape: torch.Size, unit: float, scales: Scales) -> RelationSums:
        self._form = 2 * scales.weight * scales.entity * 2.0**-_FORM_BITS
        return _MatrixSums(shape, scales)

    def back(self, model: EmbeddingModel, known: Anchored, by_point: Tensor) -> tuple[Tensor, ByRelation]:
        dim = known.anchor.shape[1]
        matrices = known.relation.view(-1, dim, dim)
        rounded(by_point.numpy(), self._form)
        if known.side == "tail":
            return torch.bmm(matrices, by_point[:, :, None])[:, :, 0], ByRelation(by_point, known.anchor)
        return torch.bmm(by_point[:, None, :], matrices)[:, 0], ByRelation(by_point, known.anchor, transposed=True)


PULLS: Final[dict[str, type[Pull]]] = {
    "TransE": Pull,
    "TransM": Pull,
    "DistMult": _Product,
    "ComplEx": _ComplexProduct,
    "RotatE": _Rotation,
    "RESCAL": _Matrix,
}
"""By the names of models."""


def _conjugate(x: Tensor) -> Tensor:
    re, im = x.chunk(2, dim=-1)
    return torch.cat((re, -im), dim=-1)


def _times(x: Tensor, y: Tensor) -> Tensor:
    """Products of complex [b, dim], real parts, then imaginary parts: each operation rounds by itself."""
    (a, b), (c, d) = x.chunk(2, dim=-1), y.chunk(2, dim=-1)
    return torch.cat((a * c - b * d, a * d + b * c), dim=-1)
