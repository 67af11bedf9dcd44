"""Similarities of points with answers and shared candidates, and their gradients, one class per geometry.

A comparison is made for a chunk of b triples, m candidates. No [b, m, width] is ever written down. The squared norm of
the gradient by all candidate rows together is known in closed form, because what is added to a candidate's row is a
known weight times a vector of known length: the point for a dot product, the difference for the Euclidean distance.

Points, answers and candidates lie on grids of 2¹⁸ units to either side (points of translations 2¹⁹), weights on grids
that leave every sum of products below 2⁵³ units. So matrix products are exact, whichever order a library adds them up
in, and a row of one depends on no other row. The rest is done by loops that keep their order (`strict`).
"""

import math
from abc import ABC, abstractmethod
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from secure_kg.models.geometry import L1, L2, ComplexL1, Dot, Geometry
from secure_kg.privacy.gradients import coordinates
from secure_kg.privacy.gradients.exact_sums import ExactSum
from secure_kg.privacy.gradients.strict import column_sums, row_dots, scaled
from secure_kg.privacy.gradients.units import ROW_BITS, Scales, power_above
from secure_kg.privacy.gradients.weighing import (
    Loss,
    by_distances,
    by_positive,
    by_products,
    squared_distances,
    weigh,
    weigh_distances,
)

_WEIGHT_BITS: Final = 22
_VECTOR_BITS: Final = 21  # 1024 · 2²² · 2²¹ = 2⁵³
_BY_DISTANCE_BITS: Final = 23  # 1024 · 2²³ · (|x| + |y| < 2²⁰) = 2⁵³
_COUNT_BITS: Final = 20  # 1024 · 2²⁰ · 2¹⁴ < 2⁵³


def dots(x: Tensor, y: Tensor) -> Tensor:
    """x, y [b, width] to the products of rows [b], each in one order."""
    out = torch.empty(len(x), dtype=torch.float64)
    row_dots(x.numpy(), y.numpy(), out.numpy())
    return out


def squared_norms(rows: Tensor) -> Tensor:
    """rows [b, width] to [b]."""
    return dots(rows, rows)


class Comparison(ABC):
    """Candidates [m, width], with which points of one chunk after the other are compared."""

    def __init__(self, candidates: Tensor, scales: Scales, point_unit: float) -> None:
        """`point_unit`: of the grid of points. Where distances are taken, it is that of candidates."""
        self.candidates, self.scales, self.point_unit = candidates, scales, point_unit
        self.sums = ExactSum(candidates.shape, self._unit())

    @abstractmethod
    def _unit(self) -> float:
        """Of what candidate rows are moved by."""

    @abstractmethod
    def pull(self, points: Tensor, answers: Tensor, loss: Loss) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients by points [b, width] and by answers [b, width].

        And the squared norm [b] of the gradient by all candidate rows, of each triple.
        """

    @abstractmethod
    def add(self, scale: Tensor) -> None:
        """After `pull`: add the gradients by candidate rows, times scale [b], to the sums. It can be done once."""


class DotComparison(Comparison):
    """Dot products: every gradient by a candidate is a multiple of the point."""

    def _unit(self) -> float:
        self._weight = self.scales.weight * 2.0**-_WEIGHT_BITS
        most = min(128 * self.scales.clip, self.point_unit * 2.0**ROW_BITS)
        self._vector = most * 2.0**-_VECTOR_BITS
        return self._weight * self._vector

    def pull(self, points: Tensor, answers: Tensor, loss: Loss) -> tuple[Tensor, Tensor, Tensor]:
        positive, weights = dots(points, answers), points @ self.candidates.t()
        squares = torch.empty(len(points), dtype=torch.float64)
        by_positive(positive.numpy(), loss)
        weigh(weights.numpy(), loss, self._weight, squares.numpy())
        self._points, self._weights = points, weights
        by_point, by_answer = weights @ self.candidates, torch.empty_like(points)
        by_products(by_point.numpy(), points.numpy(), answers.numpy(), positive.numpy(), by_answer.numpy())
        return by_point, by_answer, squares * squared_norms(points)

    def add(self, scale: Tensor) -> None:
        vectors = self._points.clone()
        scaled(vectors.numpy(), scale.numpy(), self._vector, 2.0**_VECTOR_BITS)
        self.sums.add(self._weights.t() @ vectors)


class EuclideanComparison(Comparison):
    """Negative Euclidean distances: every gradient by a candidate is a weight times point − candidate.

    The weight is at most 2²³ units, which is 16 over the length of a usual row: at smaller distances a gradient is
    shorter than it should be, and at distance zero it is zero. Answers are treated alike.
    """

    def _unit(self) -> float:
        room = 53 - ROW_BITS - 2 - math.ceil(math.log2(max(1, len(self.candidates))))
        weight = self.scales.weight / self.scales.typical * 2.0 ** (4 - _BY_DISTANCE_BITS)
        self._weight, self._room = weight, 2.0 ** min(_BY_DISTANCE_BITS, room)
        self._scaled = weight * min(1.0, self.scales.clip)
        self._squares = squared_norms(self.candidates)
        return self._scaled * self.point_unit

    def pull(self, points: Tensor, answers: Tensor, loss: Loss) -> tuple[Tensor, Tensor, Tensor]:
        distance = torch.empty(len(points), dtype=torch.float64)
        found = torch.empty(2, len(points), dtype=torch.float64)
        squared_distances(points.numpy(), answers.numpy(), distance.numpy())
        positive = -distance.sqrt_()
        by_positive(positive.numpy(), loss)
        weights = points @ self.candidates.t()
        sides, grid = (squared_norms(points).numpy(), self._squares.numpy()), (self._weight, self._room)
        weigh_distances(weights.numpy(), sides, loss, grid, found.numpy())
        self._points, self._weights = points, weights
        squares = found[1].clone()
        steepest = -self._weight * 2.0**_BY_DISTANCE_BITS
        found[1] = (positive / torch.where(distance > 0, distance, torch.inf)).clamp_(min=steepest)
        by_point, by_answer = weights @ self.candidates, torch.empty_like(points)
        by_distances(by_point.numpy(), points.numpy(), answers.numpy(), found.numpy(), by_answer.numpy())
        return by_point, by_answer, squares

    def add(self, scale: Tensor) -> None:
        weights, totals = self._weights, torch.zeros(len(self.candidates), dtype=torch.float64)
        scaled(weights.numpy(), scale.numpy(), self._scaled, 2.0**_BY_DISTANCE_BITS)
        column_sums(weights.numpy(), totals.numpy())
        self.sums.add((weights.t() @ self._points).sub_(self.candidates * totals[:, None]))


class CoordinateComparison(Comparison):
    """Distances that are sums over coordinates: L1, and the complex L1 of RotatE.

    The gradient by a candidate has length √coordinates. Where coordinates are equal it is shorter, and the length is an
    upper bound: such a triple is clipped a little more than it need be.
    """

    count: float
    """Coordinates of a row, with what rounding adds to their moduli."""
    turn: float
    """What a gradient by a coordinate is a multiple of."""
    alike: Any
    by_answers: Any
    distances: Any
    by_points: Any
    by_candidates: Any

    def _unit(self) -> float:
        self._weight = self.scales.weight * 2.0**-_WEIGHT_BITS
        most = power_above(min(self.scales.weight, 2 * self.scales.clip / math.sqrt(self.squared_length)))
        self._scaled = most * 2.0**-_COUNT_BITS
        self._rows = self._whole(self.candidates)
        self._columns = np.ascontiguousarray(self._rows.T)
        return self._scaled * self.turn

    @property
    def squared_length(self) -> float:
        """Of a gradient by a candidate, at most."""
        return self.candidates.shape[1] * self.count

    def _whole(self, rows: Tensor) -> coordinates.Floats:
        return (rows / self.point_unit).float().numpy()

    def pull(self, points: Tensor, answers: Tensor, loss: Loss) -> tuple[Tensor, Tensor, Tensor]:
        x, width = self._whole(points), points.shape[1]
        weights = torch.empty(len(points), len(self.candidates), dtype=torch.float64)
        squares = torch.empty(len(points), dtype=torch.float64)
        self.distances(x, self._columns, weights.numpy())
        weights.mul_(self.point_unit)
        weigh(weights.numpy(), loss, self._weight, squares.numpy())
        by_point = torch.zeros(len(points), width, dtype=torch.float64)
        self.by_points(x, self._rows, weights.numpy(), by_point.numpy())
        self._x, self._weights = x, weights
        by_answer = self._by_answers(x, self._whole(answers), loss)
        return by_point.mul_(self.turn).sub_(by_answer), by_answer, squares * self.squared_length

    def _by_answers(self, x: coordinates.Floats, answers: coordinates.Floats, loss: Loss) -> Tensor:
        positive, out = np.empty(len(x)), np.empty(x.shape)
        self.alike(x, answers, positive)
        positive *= self.point_unit
        by_positive(positive, loss)
        self.by_answers(x, answers, positive, out)
        return torch.from_numpy(out * self.turn)

    def add(self, scale: Tensor) -> None:
        weights = self._weights
        scaled(weights.numpy(), scale.numpy(), self._scaled, 2.0**_COUNT_BITS)
        part = np.zeros(self.candidates.shape)
        self.by_candidates(self._x, self._rows, weights.numpy(), part)
        self.sums.add(torch.from_numpy(part * self.turn))


class RealComparison(CoordinateComparison):
    """L1."""

    count, turn = 1.0, 1.0
    alike = staticmethod(coordinates.l1_alike)
    by_answers = staticmethod(coordinates.l1_by_answers)
    distances = staticmethod(coordinates.l1)
    by_points = staticmethod(coordinates.l1_by_points)
    by_candidates = staticmethod(coordinates.l1_by_candidates)


class ComplexComparison(CoordinateComparison):
    """Of complex coordinates."""

    count, turn = 0.5 * coordinates.TURN_SLACK, 1 / float(coordinates.TURN)
    alike = staticmethod(coordinates.complex_alike)
    by_answers = staticmethod(coordinates.complex_by_answers)
    distances = staticmethod(coordinates.complex_l1)
    by_points = staticmethod(coordinates.complex_by_points)
    by_candidates = staticmethod(coordinates.complex_by_candidates)


COMPARISONS: Final[dict[type[Geometry], type[Comparison]]] = {
    Dot: DotComparison,
    L2: EuclideanComparison,
    L1: RealComparison,
    ComplexL1: ComplexComparison,
}
