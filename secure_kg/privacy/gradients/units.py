"""Units of all grids of a step, powers of two, from public values alone: the rows before the step, and the clip.

Rows are rounded to at most 2¹⁸ units of their table, so sums of products of rows are exact in double precision, in
whatever order they are made. Weights and scaled vectors have as many bits as leave sums over a chunk exact.
"""

import math
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from secure_kg.foundation.errors import TrainingDiverged, UserError

ROW_BITS: Final = 18
END_BITS: Final = 21
"""Of what a triple adds to one coordinate of its own rows: 2³¹ of them stay below 2⁵³."""
WIDEST: Final = 2**13
"""Coordinates of a row: squared distances of rows stay below 2⁵³ units."""
_LARGEST_VALUE: Final = 1e4
"""Of a row, and of the weight of a relation. A training that has larger ones has diverged."""
_SMALLEST: Final = 2.0**-149
_CLIPS: Final = (2.0**-100, 2.0**100)


def power_above(value: float) -> float:
    """A power of two that is no less than a value; the smallest float's for nothing."""
    return 2.0 ** math.frexp(value)[1] if value > 0 else _SMALLEST


def power_below(value: float) -> float:
    """A power of two that is no more than a value, and more than half of it."""
    return 2.0 ** (math.frexp(value)[1] - 1)


@dataclass(frozen=True, slots=True)
class Scales:
    """Powers of two. Values of entity rows, relation rows and weights are no larger than those."""

    entity: float
    relation: float
    weight: float
    typical: float
    """Near the length of a candidate's row."""
    clip: float
    """No more than the clip, more than half of it."""


def largest(table: Tensor) -> float:
    """The largest absolute value; refused if the proof of the clip does not cover it."""
    least, most = (float(value) for value in torch.aminmax(table.detach())) if table.numel() else (0.0, 0.0)
    if not (least >= -_LARGEST_VALUE and most <= _LARGEST_VALUE):
        raise TrainingDiverged("private training diverged; a smaller step may help")
    return max(-least, most)


def scales_of(tables: tuple[Tensor, Tensor], candidates: Tensor, weight: float, clip: float) -> Scales:
    """Of (entity, relation) and candidate rows [m, width], all public."""
    if not _CLIPS[0] <= clip <= _CLIPS[1]:
        raise UserError("the clip of private training must be a positive number")
    if tables[0].shape[1] > WIDEST:
        raise UserError(f"private training takes rows of at most {WIDEST} values")
    entity, relation = (largest(table) for table in tables)
    length = float(candidates.double().square().sum(1).mean().sqrt()) if candidates.numel() else 0.0
    typical = power_above(max(length, max(entity, relation) * 2.0**-10))
    return Scales(power_above(entity), power_above(relation), power_above(weight), typical, power_below(clip))


def double(table: Tensor) -> Tensor:
    """A table's values on the processor, apart from the model."""
    return table.detach().to("cpu", torch.float64)
