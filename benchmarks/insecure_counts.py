"""Counts of holders broken on purpose, to show that a comparison of a client's views notices: for nothing else.

As `insecure_variants`, for what clients see of each other. The server sees the same of all of them, so no audit of a
run folder can find them. `insecure_count(name)` substitutes what a client adds for a row.

    unit-vectors       one of the two vectors is (1, ..., 1)
    small-vectors      the entries of both vectors have 28 bits, so that sums of more matrices are larger
    common-vectors     a client draws one of the two vectors once for all of its rows
    repeated-counts    a client adds in every count what it has added in its first one

Substitution is for the whole process: hold one session at a time.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from protocols.holders import secret as holders
from protocols.holders.interface import CountTask
from protocols.primitives.group import FieldArray, PrimeField

SMALL_BITS: Final = 28
_PIECE: Final = "own_entries"
_FIELD: Final = PrimeField()
_drawn = threading.local()


def insecure_unit_vectors(rows: int, task: CountTask) -> FieldArray:
    size = task.least - 1
    return _outer(np.ones((size, rows), dtype=np.uint64), _FIELD.uniform((size, rows)))


def insecure_small_vectors(rows: int, task: CountTask) -> FieldArray:
    left, right = _FIELD.uniform((2, task.least - 1, rows)) >> np.uint64(61 - SMALL_BITS)
    return _outer(left, right)


def insecure_common_vectors(rows: int, task: CountTask) -> FieldArray:
    size = task.least - 1
    return _outer(np.repeat(_FIELD.uniform((size, 1)), rows, axis=1), _FIELD.uniform((size, rows)))


def insecure_repeated_counts(rows: int, task: CountTask) -> FieldArray:
    """Every client is a thread of its own."""
    size = task.least - 1
    if not hasattr(_drawn, "vectors"):
        _drawn.vectors = _FIELD.uniform((2, 16, rows))
    left, right = _drawn.vectors[:, :size]
    return _outer(left, right)


def _outer(left: FieldArray, right: FieldArray) -> FieldArray:
    return np.concatenate([_FIELD.multiply(one, right) for one in left])


COUNT_VARIANTS: Final[dict[str, Callable[[int, CountTask], FieldArray]]] = {
    "unit-vectors": insecure_unit_vectors,
    "small-vectors": insecure_small_vectors,
    "common-vectors": insecure_common_vectors,
    "repeated-counts": insecure_repeated_counts,
}


@contextmanager
def insecure_count(variant: str) -> Iterator[None]:
    """Counts in this process are broken meanwhile in the way `variant` says."""
    sound = holders.own_entries
    setattr(holders, _PIECE, COUNT_VARIANTS[variant])
    try:
        yield
    finally:
        setattr(holders, _PIECE, sound)
