"""Sets of tags drawn from a seed, their tables, and the sum of tables as a masked sum would give it."""

from collections.abc import Iterable, Sequence

import numpy as np

from protocols.alignment.psu.layout import CellNumbers, TableLayout
from protocols.alignment.psu.table import write
from protocols.primitives.group import MODULUS, FieldArray, PrimeField

FIELD = PrimeField()


def random_tags(count: int, seed: int) -> FieldArray:
    return np.random.default_rng(seed).integers(0, MODULUS, size=(count, 2), dtype=np.uint64)


def added(tables: Iterable[FieldArray], layout: TableLayout) -> FieldArray:
    total = np.zeros(layout.entries, dtype=np.uint64)
    for table in tables:
        FIELD.add_into(total, table)
    return total


def total_of(sets: Sequence[FieldArray], layout: TableLayout) -> FieldArray:
    return added((write(tags, layout) for tags in sets), layout)


def union_of(sets: Sequence[FieldArray]) -> list[tuple[int, int]]:
    """What `peel` must give, computed with Python's sets."""
    return sorted({(int(first), int(second)) for tags in sets for first, second in tags})


def as_pairs(tags: FieldArray) -> list[tuple[int, int]]:
    return [(int(first), int(second)) for first, second in tags]


def unresolved(cells: CellNumbers) -> CellNumbers:
    """Which of the n tags in cells [3, n] peeling cannot take out, by counting alone: no weights, no field."""
    left = np.arange(cells.shape[1])
    while len(left):
        counts = np.bincount(cells[:, left].reshape(-1))
        stuck = left[(counts[cells[:, left]] > 1).all(axis=0)]
        if len(stuck) == len(left):
            break
        left = stuck
    return left
