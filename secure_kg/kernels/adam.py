"""Adam over rows of a table, each moved when it is next read: to the bit what moving all rows at every step gives.

A row that a batch leaves out still moves, by its moments. But nobody looks at it until a batch holds it again, and a
pass over the whole table at every step waits for memory more than for arithmetic. So `catch_up` makes all steps of a
row at once, one after the other, by the same operations in the same order, with the row in registers: first the one
along the gradient that was left for it, then those for which it had none. Rows whose moments and gradients are zero are
passed over: no step moves them.

The formula is that of torch's fused kernel: m ← m + (1 − β₁)(g − m), v ← β₂ v + (1 − β₂) g², and
p ← p − size · m / (correction · √v + ε), with a size and a correction of the step.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from secure_kg.kernels.compiling import compiled_as_written, inlined_as_written
from secure_kg.kernels.lanes import COUNT, Lanes, expect, fused, load, root, size, spread, store, total

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
_ZERO, _EPSILON = np.float32(0), np.float32(EPSILON)
_NEW1, _OLD2, _NEW2 = np.float32(1 - BETA1), np.float32(BETA2), np.float32(1 - BETA2)


class Table(NamedTuple):
    """Rows [n, width] with their moments, the gradients left for them, and how many steps each has made [n]."""

    rows: Floats
    first: Floats
    second: Floats
    gradient: Floats
    made: Ids


class Steps(NamedTuple):
    """Of step start + 1 and those that follow: minus the step size, and the correction of the second moment."""

    start: int
    sizes: Floats
    corrections: Floats


@inlined_as_written
def _moved(p: Lanes, m: Lanes, v: Lanes, g: Lanes, steps: Steps, step: int) -> tuple[Lanes, Lanes, Lanes]:
    """What step `step`, counted from `steps.start`, makes of sixteen numbers and their moments."""
    m = fused(spread(_NEW1), g - m, m)
    v = spread(_OLD2) * v + (spread(_NEW2) * g) * g
    bound = fused(root(v), spread(steps.corrections[step]), spread(_EPSILON))
    return p + (spread(steps.sizes[step]) * m) / bound, m, v


@inlined_as_written
def _move(table: Table, row: int, place: int, steps: Steps, until: int) -> None:
    """All steps of sixteen numbers, the first along their gradient, which becomes zero."""
    g, none = load(table.gradient, (row, place)), spread(_ZERO)
    m, v = load(table.first, (row, place)), load(table.second, (row, place))
    if total(size(m) + size(v) + size(g)) != _ZERO:
        first = table.made[row] - steps.start
        p, m, v = _moved(load(table.rows, (row, place)), m, v, g, steps, first)
        for step in range(first + 1, until - steps.start):
            p, m, v = _moved(p, m, v, none, steps, step)
        store(table.rows, (row, place), p)
        store(table.first, (row, place), m)
        store(table.second, (row, place), v)
        store(table.gradient, (row, place), none)


@inlined_as_written
def _copy_end(table: Table, row: int, end: Table, back: bool) -> None:
    """The last numbers of a row, fewer than sixteen, to a table of one row with room for them, or back."""
    width = table.rows.shape[1]
    start = width - width % COUNT
    for k in range(width - start):
        if back:
            table.rows[row, start + k], table.gradient[row, start + k] = end.rows[0, k], end.gradient[0, k]
            table.first[row, start + k], table.second[row, start + k] = end.first[0, k], end.second[0, k]
        else:
            end.rows[0, k], end.gradient[0, k] = table.rows[row, start + k], table.gradient[row, start + k]
            end.first[0, k], end.second[0, k] = table.first[row, start + k], table.second[row, start + k]


@inlined_as_written
def _room() -> Table:
    return Table(
        np.zeros((1, COUNT), np.float32),
        np.zeros((1, COUNT), np.float32),
        np.zeros((1, COUNT), np.float32),
        np.zeros((1, COUNT), np.float32),
        np.zeros(1, np.int64),
    )


@inlined_as_written
def _expect_row(table: Table, row: int, until: int) -> None:
    """Rows are far apart: the next one is on its way from memory while this one is worked on."""
    if table.made[row] < until:
        for column in range(0, table.rows.shape[1], COUNT):
            expect(table.rows, (row, column))
            expect(table.first, (row, column))
            expect(table.second, (row, column))
            expect(table.gradient, (row, column))


@compiled_as_written
def catch_up(table: Table, ids: Ids, steps: Steps, until: int) -> None:
    """Make the steps up to number `until` that rows have not made; a gradient belongs to the first of these."""
    width, end = table.rows.shape[1], _room()
    for place in range(len(ids)):
        row = ids[place]
        if place + 1 < len(ids):
            _expect_row(table, ids[place + 1], until)
        if table.made[row] < until:
            for column in range(0, width - COUNT + 1, COUNT):
                _move(table, row, column, steps, until)
            if width % COUNT:
                _copy_end(table, row, end, False)
                end.made[0] = table.made[row]
                _move(end, 0, 0, steps, until)
                _copy_end(table, row, end, True)
            table.made[row] = until


@compiled_as_written
def add_rows(values: Floats, ids: Ids, table: Floats) -> None:
    """Add values [b, width] to the rows of a table that are named, one after the other."""
    for i in range(len(ids)):
        for k in range(values.shape[1]):
            table[ids[i], k] += values[i, k]
