"""Loops compiled without any licence to regroup or fuse operations: a result is what the order of the source says.

Every operation here is one of IEEE 754, rounded once. So what a loop finds for one row depends on that row alone, not
on where the row stands, how many there are, or how many numbers a processor takes at a time. Library functions give no
such promise: their vectorised and their scalar code may differ in the last bit, and so the exponential is our own.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])
Doubles = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]

_MAGIC: Final = 1.5 * 2.0**52  # added to a number, it leaves the nearest whole number in the last bits
_LOG2_E: Final = 1.4426950408889634
_LN_2: Final = 0.6931471805599453
_LOWEST: Final = -700.0


def strict(function: F) -> F:
    """The function as machine code that keeps the order of operations."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def step(function: F) -> F:
    """For a step inside such a loop."""
    return cast(F, numba.njit(inline="always", error_model="numpy")(function))


@intrinsic
def _bits(context: Any, x: Any) -> Any:
    """The bits of a double as an integer."""

    def code(of: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], of.get_value_type(types.int64))

    return types.int64(types.float64), code


@intrinsic
def _of_bits(context: Any, x: Any) -> Any:
    """The double that has these bits."""

    def code(of: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], of.get_value_type(types.float64))

    return types.float64(types.int64), code


@step
def exponential(x: float) -> float:
    """e^x of x ≤ 0, to eight digits; below −700, and of what is no number, e^−700."""
    x = x if x > _LOWEST else _LOWEST
    y = x * _LOG2_E
    shifted = y + _MAGIC
    f = (y - (shifted - _MAGIC)) * _LN_2
    series = 1.0 + f * (1.0 + f * (1 / 2 + f * (1 / 6 + f * (1 / 24 + f * (1 / 120 + f * (1 / 720 + f / 5040))))))
    power: float = series * _of_bits((_bits(shifted) + 1023) << 52)  # type: ignore[call-arg]
    return power


@step
def sigmoid(x: float) -> float:
    """1 / (1 + e^−x)."""
    small = exponential(-abs(x))
    return (1.0 if x >= 0.0 else small) / (1.0 + small)


@step
def summed(values: Doubles) -> float:
    """The sum of [n], in eight strands."""
    a = b = c = d = e = f = g = h = 0.0
    whole = len(values) // 8 * 8
    for j in range(0, whole, 8):
        a += values[j]
        b += values[j + 1]
        c += values[j + 2]
        d += values[j + 3]
        e += values[j + 4]
        f += values[j + 5]
        g += values[j + 6]
        h += values[j + 7]
    for j in range(whole, len(values)):
        a += values[j]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@strict
def row_dots(x: Doubles, y: Doubles, out: Doubles) -> None:
    """out[i] = x_i · y_i of x, y [b, width]."""
    products = np.empty(x.shape[1])
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            products[k] = x[i, k] * y[i, k]
        out[i] = summed(products)


@strict
def gather(table: npt.NDArray[Any], ids: Ids, unit: float, out: Doubles) -> None:
    """out[i] = row ids[i] of a table, each value rounded to a multiple of unit, a power of two."""
    inverse = 1.0 / unit
    for i in range(len(ids)):
        row, found = table[ids[i]], out[i]
        for k in range(len(row)):
            found[k] = np.rint(row[k] * inverse) * unit


@strict
def rounded(x: Doubles, unit: float) -> None:
    """x [b, width], each value rounded to a multiple of unit, a power of two."""
    inverse = 1.0 / unit
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            x[i, k] = np.rint(x[i, k] * inverse) * unit


@step
def cut(value: float, most: float) -> float:
    """A value without its fraction, and no further from zero than `most`."""
    whole: float = np.trunc(value)
    return most if whole > most else (-most if whole < -most else whole)


@strict
def scaled(x: Doubles, scale: Doubles, unit: float, most: float) -> None:
    """x [b, width] times scale [b], cut to at most `most` units, a power of two. No value gets longer by the cut."""
    inverse = 1.0 / unit
    for i in range(x.shape[0]):
        row, factor = x[i], scale[i] * inverse
        for k in range(len(row)):
            row[k] = cut(row[k] * factor, most) * unit


@strict
def column_sums(x: Doubles, out: Doubles) -> None:
    """Add the sums of the columns of x [b, m] to out [m]."""
    for i in range(x.shape[0]):
        row = x[i]
        for j in range(len(row)):
            out[j] += row[j]


@strict
def add_rows(table: Doubles, ids: Ids, rows: Doubles, scale: Doubles, grid: tuple[float, float]) -> None:
    """Add rows [b, width] times scale [b], cut to at most grid[1] units of grid[0], to rows ids of a table."""
    unit, most = grid
    inverse = 1.0 / unit
    for i in range(len(ids)):
        row, target, factor = rows[i], table[ids[i]], scale[i] * inverse
        for k in range(len(row)):
            target[k] += cut(row[k] * factor, most) * unit
