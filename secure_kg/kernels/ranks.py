"""Ranks of true answers, counted without sorting and, for distances, without writing scores down.

For b queries with true answers [b] among n candidates, every function counts into better [b] and equal [b] the
candidates that score higher than, or the same as, the answer; the answer itself and the known answers of the query
do not count. What it returns says whether all answers' scores are finite;
otherwise the counts mean nothing.

A distance only grows as coordinates are added to it, in floating point too. So a candidate is abandoned as soon as its
partial sum exceeds the answer's whole distance: the count is exact, and most candidates of a trained model cost a
fraction of their coordinates. All distances of a query, the answer's own included, are added up by one function in one
order: rows that are equal are exact ties.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from secure_kg.kernels.compiling import compiled, inlined
from secure_kg.kernels.known import Known

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]

_CHUNKS: Final = (64, 32, 16)  # coordinates between two looks at the limit; the fewer looks, the faster the loop
_TILE: Final = 256  # candidates that stay in the cache while all queries pass over them


def chunked(rows: Floats, parts: int = 1) -> Floats:
    """Rows [n, width] as [n, chunks, chunk]; `parts` equal parts of a row are each filled up with zeros.

    Loops over a contiguous last axis are what the compiler vectorises best. A copy only where the width asks for it.
    """
    width = rows.shape[1] // parts
    chunk = next((size for size in _CHUNKS if -width % size <= width // 8), _CHUNKS[-1])
    padded = width + -width % chunk
    if padded != width:
        filled = np.zeros((len(rows), parts, padded), dtype=np.float32)
        filled[:, :, :width] = rows.reshape(len(rows), parts, width)
        rows = filled
    return np.ascontiguousarray(rows).reshape(len(rows), parts * padded // chunk, chunk)


@inlined
def _l1(x: Floats, i: int, y: Floats, j: int, limit: np.float32) -> np.float32:
    total = np.float32(0)
    for c in range(x.shape[1]):
        part = np.float32(0)
        for k in range(x.shape[2]):
            part += abs(x[i, c, k] - y[j, c, k])
        total += part
        if total > limit:
            break
    return total


@inlined
def _squared_l2(x: Floats, i: int, y: Floats, j: int, limit: np.float32) -> np.float32:
    total = np.float32(0)
    for c in range(x.shape[1]):
        part = np.float32(0)
        for k in range(x.shape[2]):
            difference = x[i, c, k] - y[j, c, k]
            part += difference * difference
        total += part
        if total > limit:
            break
    return total


@inlined
def _complex_l1(x: Floats, i: int, y: Floats, j: int, limit: np.float32) -> np.float32:
    total = np.float32(0)
    half = x.shape[1] // 2
    for c in range(half):
        part = np.float32(0)
        for k in range(x.shape[2]):
            re = x[i, c, k] - y[j, c, k]
            im = x[i, c + half, k] - y[j, c + half, k]
            part += np.sqrt(re * re + im * im)
        total += part
        if total > limit:
            break
    return total


@compiled
def count_l1(x: Floats, y: Floats, answers: Ids, known: Known, better: Ids, equal: Ids) -> bool:
    """By Σ_k |x_ik − y_jk|, smaller is better; x and y as `chunked` gives them."""
    target = np.empty(x.shape[0], np.float32)
    for i in range(x.shape[0]):
        target[i] = _l1(x, i, y, answers[i], np.float32(np.inf))
        better[i], equal[i] = 0, -1  # the answer will meet itself
    for first in range(0, y.shape[0], _TILE):
        tile = y[first : first + _TILE]
        for i in range(x.shape[0]):
            limit, above, level = target[i], 0, 0
            for j in range(tile.shape[0]):
                distance = _l1(x, i, tile, j, limit)
                above += distance < limit
                level += distance == limit
            better[i] += above
            equal[i] += level
    for i in range(x.shape[0]):
        for place in range(known.starts[i], known.starts[i] + known.counts[i]):
            if known.all[place] != answers[i]:
                distance = _l1(x, i, y, known.all[place], target[i])
                better[i] -= distance < target[i]
                equal[i] -= distance == target[i]
    return bool(np.isfinite(target).all())


@compiled
def count_l2(x: Floats, y: Floats, answers: Ids, known: Known, better: Ids, equal: Ids) -> bool:
    """By ‖x_i − y_j‖, smaller is better; squares have the same order."""
    target = np.empty(x.shape[0], np.float32)
    for i in range(x.shape[0]):
        target[i] = _squared_l2(x, i, y, answers[i], np.float32(np.inf))
        better[i], equal[i] = 0, -1
    for first in range(0, y.shape[0], _TILE):
        tile = y[first : first + _TILE]
        for i in range(x.shape[0]):
            limit, above, level = target[i], 0, 0
            for j in range(tile.shape[0]):
                distance = _squared_l2(x, i, tile, j, limit)
                above += distance < limit
                level += distance == limit
            better[i] += above
            equal[i] += level
    for i in range(x.shape[0]):
        for place in range(known.starts[i], known.starts[i] + known.counts[i]):
            if known.all[place] != answers[i]:
                distance = _squared_l2(x, i, y, known.all[place], target[i])
                better[i] -= distance < target[i]
                equal[i] -= distance == target[i]
    return bool(np.isfinite(target).all())


@compiled
def count_complex_l1(x: Floats, y: Floats, answers: Ids, known: Known, better: Ids, equal: Ids) -> bool:
    """By Σ_k |x_ik − y_jk| over complex k, smaller is better."""
    target = np.empty(x.shape[0], np.float32)
    for i in range(x.shape[0]):
        target[i] = _complex_l1(x, i, y, answers[i], np.float32(np.inf))
        better[i], equal[i] = 0, -1
    for first in range(0, y.shape[0], _TILE):
        tile = y[first : first + _TILE]
        for i in range(x.shape[0]):
            limit, above, level = target[i], 0, 0
            for j in range(tile.shape[0]):
                distance = _complex_l1(x, i, tile, j, limit)
                above += distance < limit
                level += distance == limit
            better[i] += above
            equal[i] += level
    for i in range(x.shape[0]):
        for place in range(known.starts[i], known.starts[i] + known.counts[i]):
            if known.all[place] != answers[i]:
                distance = _complex_l1(x, i, y, known.all[place], target[i])
                better[i] -= distance < target[i]
                equal[i] -= distance == target[i]
    return bool(np.isfinite(target).all())


@compiled
def count_scores(scores: Floats, answers: Ids, known: Known, better: Ids, equal: Ids) -> bool:
    """By scores [b, n] that were computed before, in any precision, larger is better; whether all are finite."""
    poison = scores.dtype.type(0)  # becomes NaN where a score is not finite
    for i in range(scores.shape[0]):
        target = scores[i, answers[i]]
        above, level = 0, -1
        for j in range(scores.shape[1]):
            above += scores[i, j] > target
            level += scores[i, j] == target
            poison += scores[i, j] * scores.dtype.type(0)
        for place in range(known.starts[i], known.starts[i] + known.counts[i]):
            if known.all[place] != answers[i]:
                above -= scores[i, known.all[place]] > target
                level -= scores[i, known.all[place]] == target
        better[i], equal[i] = above, level
    return bool(poison == 0)
