"""Similarities of points with answers and shared candidates, and their gradients, one class per geometry.

A comparison is made for a chunk of b triples, m candidates. No [b, m, width] is ever written down. The squared norm of
the gradient by all candidate rows together is known in closed form, because each similarity's gradient by a candidate
has a known length: that of the point for a dot product, one for the Euclidean distance.
"""

from abc import ABC, abstractmethod
from typing import Final

import torch
from torch import Tensor

from secure_kg.models.geometry import L1, L2, ComplexL1, Dot, Geometry
from secure_kg.privacy.gradients.pulls import dots, squared_norms

_NEAR: Final = 2.0**-6
"""Of |x|² + |y|². Where |x − y|² is less, products of rows cancel, and differences are taken instead."""
_PAIRS_AT_ONCE: Final = 2**15


class Comparison(ABC):
    """Points [b, width] with their answers [b, width] and with candidates [m, width]."""

    def __init__(self, geometry: Geometry, points: Tensor, answers: Tensor, candidates: Tensor) -> None:
        self.geometry, self.points, self.answers, self.candidates = geometry, points, answers, candidates

    @abstractmethod
    def positive(self) -> Tensor:
        """Similarities with answers [b]."""

    @abstractmethod
    def negative(self) -> Tensor:
        """Similarities with candidates [b, m]."""

    @abstractmethod
    def pull(self, by_positive: Tensor, by_negative: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients by similarities, [b] and [b, m], to those by points [b, width] and by answers [b, width].

        And the squared norm [b] of the gradient by all candidate rows, of each triple.
        """

    @abstractmethod
    def candidate_sums(self, scale: Tensor) -> Tensor:
        """After `pull`: gradients by candidate rows [m, width], summed over triples with factors scale [b].

        In double precision: the rounding of a sum must not depend on which triples it is over, or a triple would
        change more than its own part of it.
        """


class DotComparison(Comparison):
    """Dot products: every gradient by a candidate is a multiple of the point."""

    def positive(self) -> Tensor:
        return dots(self.points, self.answers)

    def negative(self) -> Tensor:
        return self.points @ self.candidates.t()

    def pull(self, by_positive: Tensor, by_negative: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        self._by_negative = by_negative
        by_point = torch.addmm(self.answers * by_positive[:, None], by_negative, self.candidates)
        by_answer = self.points * by_positive[:, None]
        return by_point, by_answer, squared_norms(by_negative) * squared_norms(self.points)

    def candidate_sums(self, scale: Tensor) -> Tensor:
        return self._by_negative.double().t() @ (self.points * scale[:, None]).double()


class EuclideanComparison(Comparison):
    """Negative Euclidean distances: every gradient by a candidate is a multiple of a unit vector.

    Distances come from one matrix product. For a pair that is close, this would cancel, and the vector over which the
    norm is bounded would not have length one: such pairs are few, and are computed from differences. The gradient at
    distance zero is zero.
    """

    def positive(self) -> Tensor:
        difference = self.points - self.answers
        distance: Tensor = torch.linalg.vector_norm(difference, dim=1)
        self._direction = difference / _or_one(distance)[:, None]
        return -distance

    def negative(self) -> Tensor:
        x2, y2 = squared_norms(self.points), squared_norms(self.candidates)
        squares = torch.addmm(y2[None, :], self.points, self.candidates.t(), alpha=-2.0).add_(x2[:, None])
        self._find_near(squares, x2, y2)
        distances = squares.clamp_(min=0.0).sqrt_()
        distances[self._rows, self._columns] = self._near_distances()
        self._distances = distances
        return -distances

    def _find_near(self, squares: Tensor, x2: Tensor, y2: Tensor) -> None:
        """Pairs that are close. The first look, one pass, is at rows that may have one."""
        if squares.numel() == 0:
            self._rows = self._columns = torch.empty(0, dtype=torch.int64, device=squares.device)
            return
        suspect = torch.nonzero(squares.amin(1) <= _NEAR * (x2 + y2.max()))[:, 0]
        near = squares[suspect] <= _NEAR * (x2[suspect, None] + y2[None, :])
        rows, self._columns = torch.nonzero(near, as_tuple=True)
        self._rows = suspect[rows]

    def _near_distances(self) -> Tensor:
        parts = [
            torch.linalg.vector_norm(self.points[rows] - self.candidates[columns], dim=1)
            for rows, columns in self._near_blocks()
        ]
        return torch.cat(parts) if parts else self.points.new_empty(0)

    def _near_blocks(self) -> list[tuple[Tensor, Tensor]]:
        if len(self._rows) == 0:
            return []
        pairs = torch.split(self._rows, _PAIRS_AT_ONCE), torch.split(self._columns, _PAIRS_AT_ONCE)
        return list(zip(*pairs, strict=True))

    def pull(self, by_positive: Tensor, by_negative: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        distances, near = self._distances, (self._rows, self._columns)
        by_near = torch.where(distances[near] > 0, by_negative[near], 0.0)
        by_negative[near] = by_near
        norms = squared_norms(by_negative)
        weights = by_negative.div_(distances.clamp_(min=torch.finfo(distances.dtype).tiny))
        self._near_weights = weights[near]
        weights[near] = 0.0
        self._weights = weights
        by_answer = self._direction * by_positive[:, None]
        by_point = weights @ self.candidates
        by_point.sub_(self.points * weights.sum(1)[:, None]).sub_(by_answer)
        for rows, step in self._near_steps():
            by_point.index_add_(0, rows[0], step, alpha=-1.0)
        return by_point, by_answer, norms

    def _near_steps(self) -> list[tuple[tuple[Tensor, Tensor], Tensor]]:
        """Pairs (rows, columns) with weight · (x − y) [pairs, width], in blocks."""
        blocks = self._near_blocks()
        weights = torch.split(self._near_weights, _PAIRS_AT_ONCE)[: len(blocks)]
        return [
            (block, (self.points[block[0]] - self.candidates[block[1]]) * weight[:, None])
            for block, weight in zip(blocks, weights, strict=True)
        ]

    def candidate_sums(self, scale: Tensor) -> Tensor:
        weights, scale = self._weights.double(), scale.double()
        sums = weights.t() @ (self.points.double() * scale[:, None])
        sums.sub_(self.candidates.double() * (weights.t() @ scale)[:, None])
        for (rows, columns), step in self._near_steps():
            sums.index_add_(0, columns, step.double() * scale[rows][:, None])
        return sums


class CoordinateComparison(Comparison):
    """Distances that are sums over coordinates, by the models' own kernels: L1, and the complex L1 of RotatE.

    The gradient by a candidate has length √coordinates. Where coordinates are equal to the last bit it is shorter, and
    the length is an upper bound: such a triple is clipped a little more than it need be.
    """

    def positive(self) -> Tensor:
        return self.geometry.alike(self.points, self.answers)

    def negative(self) -> Tensor:
        if len(self.candidates) == 0:  # which the kernels do not take
            return self.points.new_empty(len(self.points), 0)
        return self.geometry.pairs(self.points, self.candidates)

    def pull(self, by_positive: Tensor, by_negative: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        self._by_negative = by_negative
        with torch.enable_grad():
            points, answers = (x.detach().requires_grad_() for x in (self.points, self.answers))
            alike = (self.geometry.alike(points, answers) * by_positive).sum()
            by_point, by_answer = torch.autograd.grad(alike, (points, answers))
        by_point = by_point + self._vjp(by_negative)[0]
        coordinates = self.points.shape[1] // (2 if isinstance(self.geometry, ComplexL1) else 1)
        return by_point, by_answer, squared_norms(by_negative) * coordinates

    def candidate_sums(self, scale: Tensor) -> Tensor:
        return self._vjp(self._by_negative * scale[:, None])[1].double()  # within a chunk by the kernel, in single

    def _vjp(self, by_negative: Tensor) -> tuple[Tensor, Tensor]:
        if by_negative.numel() == 0:
            return torch.zeros_like(self.points), torch.zeros_like(self.candidates)
        with torch.enable_grad():
            x, y = (rows.detach().requires_grad_() for rows in (self.points, self.candidates))
            by_x, by_y = torch.autograd.grad((self.geometry.pairs(x, y) * by_negative).sum(), (x, y))
        return by_x, by_y


COMPARISONS: Final[dict[type[Geometry], type[Comparison]]] = {
    Dot: DotComparison,
    L2: EuclideanComparison,
    L1: CoordinateComparison,
    ComplexL1: CoordinateComparison,
}


def _or_one(distance: Tensor) -> Tensor:
    return torch.where(distance > 0, distance, 1.0)
