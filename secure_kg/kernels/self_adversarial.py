"""Steps of training on distances: scores, self-adversarial loss and gradients of a batch in one pass.

The loss is that of `secure_kg.learning.loss`, with scores offset − scale · distance. A group of rows and the candidates
that they share are copied into scratch memory that stays in the cache until their gradients are known, so that neither
the candidates' rows nor the scores of a batch are ever written down. All sums have one order, whatever the machine:
sixteen partial sums over coordinates (or candidates), which `lanes.total` folds.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from secure_kg.kernels.compiling import compiled_as_written, inlined_as_written
from secure_kg.kernels.elementary import exponential, inverse_root, log_of_one_plus
from secure_kg.kernels.lanes import (
    COUNT,
    Lanes,
    fused,
    if_positive,
    larger,
    largest,
    load,
    signed,
    size,
    spread,
    store,
    total,
)

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

ROWS: Final = 4
"""Rows that pass over a candidate together; scratch memory has a multiple of it."""
_ZERO, _ONE, _MINUS, _TINY = np.float32(0), np.float32(1), np.float32(-1), np.float32(1e-30)
_FAR: Final = np.float32(3e38)


class Batch(NamedTuple):
    """What is compared: points [b, width] with rows of table [n, width], the true ones [b] and candidates [groups, m].

    marks [b, m] are candidates that are true as well. Distances are multiplied by scales [b].
    """

    points: Floats
    table: Floats
    truths: Ids
    candidates: Ids
    marks: Flags
    scales: Floats


class Terms(NamedTuple):
    """Constants of the loss."""

    offset: np.float32
    temperature: np.float32


class Gradients(NamedTuple):
    """Where they go: those of points [b, width] are written, those of rows are added to table [n, width]."""

    points: Floats
    table: Floats


class Scratch(NamedTuple):
    """Memory of one group. Rows stand in chunks of coordinates, [chunks, rows, width of a chunk], filled with zeros.

    distances [rows, m] become the gradients by them, and so does `own`, of true rows; `kept` holds what is known of the
    candidates of one row. `inverse` holds 1 / |x − y| of all coordinates of two rows, for complex rows only.
    """

    x: Floats
    truth: Floats
    y: Floats
    x_gradient: Floats
    truth_gradient: Floats
    y_gradient: Floats
    distances: Floats
    own: Floats
    kept: Floats
    inverse: Floats


def scratch(rows: int, candidates: int, width: int, parts: int) -> Scratch:
    """For groups of so many rows and candidates; rows of `parts` parts, each of `width / parts` numbers."""
    rows, candidates = -(-rows // ROWS) * ROWS, -(-candidates // COUNT) * COUNT
    chunks = -(-width // (parts * COUNT))
    sizes = (rows, rows, candidates, rows, rows, candidates)
    # One row more than needed: chunks of a row that lie a power of two apart would share one set of the cache.
    sides = (np.zeros((chunks, number + 1, parts * COUNT), dtype=np.float32) for number in sizes)
    rest = (np.zeros(shape, dtype=np.float32) for shape in ((rows, candidates), rows, candidates))
    inverse = np.empty((chunks if parts > 1 else 0, 2, candidates + 1, COUNT), dtype=np.float32)
    return Scratch(*(*sides, *rest, inverse))


@inlined_as_written
def _take(rows: Floats, row: int, into: Floats, place: int) -> None:
    """Copy a row into chunks."""
    parts = into.shape[2] // COUNT
    width = rows.shape[1] // parts
    for part in range(parts):
        for c in range(into.shape[0]):
            start, lane = part * width + c * COUNT, part * COUNT
            if (c + 1) * COUNT <= width:
                store(into, (c, place, lane), load(rows, (row, start)))
            else:
                for k in range(width - c * COUNT):
                    into[c, place, lane + k] = rows[row, start + k]


@inlined_as_written
def _add(chunks: Floats, place: int, rows: Floats, row: int) -> None:
    """Add chunks to a row."""
    parts = chunks.shape[2] // COUNT
    width = rows.shape[1] // parts
    for part in range(parts):
        for c in range(chunks.shape[0]):
            start, lane = part * width + c * COUNT, part * COUNT
            if (c + 1) * COUNT <= width:
                store(rows, (row, start), load(rows, (row, start)) + load(chunks, (c, place, lane)))
            else:
                for k in range(width - c * COUNT):
                    rows[row, start + k] += chunks[c, place, lane + k]


@inlined_as_written
def _rows_of_a_group(batch: Batch) -> int:
    return -(-len(batch.points) // len(batch.candidates))


@compiled_as_written
def _take_group(batch: Batch, first: int, number: int, group: int, work: Scratch) -> None:
    """Copy the rows [first : first + number] of a batch and the candidates of their group; the rest becomes zero."""
    for i in range(number):
        _take(batch.points, first + i, work.x, i)
        _take(batch.table, batch.truths[first + i], work.truth, i)
    work.x[:, number:] = _ZERO
    work.truth[:, number:] = _ZERO
    for j in range(batch.candidates.shape[1]):
        _take(batch.table, batch.candidates[group, j], work.y, j)
    work.y_gradient[:] = _ZERO


@compiled_as_written
def _give_group(batch: Batch, first: int, number: int, group: int, work: Scratch, gradients: Gradients) -> None:
    """Hand the gradients of a group over."""
    gradients.points[first : first + number] = _ZERO
    for i in range(number):
        _add(work.x_gradient, i, gradients.points, first + i)
        _add(work.truth_gradient, i, gradients.table, batch.truths[first + i])
    for j in range(batch.candidates.shape[1]):
        _add(work.y_gradient, j, gradients.table, batch.candidates[group, j])


@compiled_as_written
def _weigh(batch: Batch, terms: Terms, row: int, i: int, work: Scratch) -> float:
    """Loss of row `row` of a batch, which is row i of its group; its distances become gradients by them."""
    m, distances, kept = batch.candidates.shape[1], work.distances, work.kept
    scale, count = batch.scales[row], np.float32(len(batch.points))
    own = terms.offset - scale * work.own[i]
    # σ and log σ from e^−|f|, which cannot overflow.
    z = exponential(spread(-abs(own)))
    lost = largest(log_of_one_plus(z)) + max(-own, _ZERO)
    z_one = largest(z)  # all are the same
    work.own[i] = scale * (z_one if own > _ZERO else _ONE) / (_ONE + z_one) / count
    loss = np.float64(lost)
    for j in range(m):
        kept[j] = _ONE - np.float32(batch.marks[row, j])
    kept[m:] = _ZERO
    offset, down, warm = spread(terms.offset), spread(-scale), spread(terms.temperature)
    one, far = spread(_ONE), spread(_FAR)
    top = spread(-_FAR)
    for j in range(0, len(kept), COUNT):
        score = fused(down, load(distances, (i, j)), offset)
        top = larger(fused(load(kept, (j,)) - one, far, warm * score), top)
    top = spread(largest(top))
    weights = spread(_ZERO)
    for j in range(0, len(kept), COUNT):
        score, keep = fused(down, load(distances, (i, j)), offset), load(kept, (j,))
        weight = keep * exponential(fused(keep - one, far, warm * score) - top)
        weights = weights + weight
        store(kept, (j,), weight)
    whole = total(weights)
    if whole == _ZERO:  # all candidates are marked
        distances[i] = _ZERO
        return loss
    share = spread(_ONE / whole)
    lost_here, step = spread(_ZERO), spread(-scale / count)
    for j in range(0, len(kept), COUNT):
        score = fused(down, load(distances, (i, j)), offset)
        weight = load(kept, (j,)) * share
        z = exponential(spread(_ZERO) - size(score))
        positive = larger(score, spread(_ZERO))
        lost_here = fused(weight, positive + log_of_one_plus(z), lost_here)
        # σ(f) = 1 / (1 + z) for f > 0 and z / (1 + z) otherwise
        sigma = if_positive(score, one, z) / (one + z)
        store(distances, (i, j), step * weight * sigma)
    return loss + np.float64(total(lost_here))


@compiled_as_written
def _l1_distances(work: Scratch, candidates: int) -> None:
    """Σ |x − y| of four rows and two candidates at a time, and of rows and their true rows."""
    x, y, zero = work.x, work.y, spread(_ZERO)
    for i in range(len(work.distances)):
        a0 = zero
        for c in range(x.shape[0]):
            a0 = a0 + size(load(x, (c, i, 0)) - load(work.truth, (c, i, 0)))
        work.own[i] = total(a0)
    for j in range(0, candidates, 2):
        for i in range(0, len(work.distances), ROWS):
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = zero
            for c in range(x.shape[0]):
                x0, x1 = load(x, (c, i, 0)), load(x, (c, i + 1, 0))
                x2, x3 = load(x, (c, i + 2, 0)), load(x, (c, i + 3, 0))
                y0, y1 = load(y, (c, j, 0)), load(y, (c, j + 1, 0))
                a0, a1, a2, a3 = a0 + size(x0 - y0), a1 + size(x1 - y0), a2 + size(x2 - y0), a3 + size(x3 - y0)
                b0, b1, b2, b3 = b0 + size(x0 - y1), b1 + size(x1 - y1), b2 + size(x2 - y1), b3 + size(x3 - y1)
            work.distances[i, j], work.distances[i, j + 1] = total(a0), total(b0)
            work.distances[i + 1, j], work.distances[i + 1, j + 1] = total(a1), total(b1)
            work.distances[i + 2, j], work.distances[i + 2, j + 1] = total(a2), total(b2)
            work.distances[i + 3, j], work.distances[i + 3, j + 1] = total(a3), total(b3)


@compiled_as_written
def _l1_gradients(work: Scratch, candidates: int) -> None:
    """Where two coordinates are equal the subgradient is 0, as in torch."""
    x, y, g, zero = work.x, work.y, work.distances, spread(_ZERO)
    for c in range(x.shape[0]):
        for i in range(0, len(work.distances), ROWS):
            x0, x1, x2, x3 = load(x, (c, i, 0)), load(x, (c, i + 1, 0)), load(x, (c, i + 2, 0)), load(x, (c, i + 3, 0))
            s0 = s1 = s2 = s3 = zero
            for j in range(candidates):
                other = load(y, (c, j, 0))
                t0, t1 = signed(spread(g[i, j]), x0 - other), signed(spread(g[i + 1, j]), x1 - other)
                t2, t3 = signed(spread(g[i + 2, j]), x2 - other), signed(spread(g[i + 3, j]), x3 - other)
                s0, s1, s2, s3 = s0 + t0, s1 + t1, s2 + t2, s3 + t3
                store(work.y_gradient, (c, j, 0), load(work.y_gradient, (c, j, 0)) - ((t0 + t1) + (t2 + t3)))
            store(work.x_gradient, (c, i, 0), s0)
            store(work.x_gradient, (c, i + 1, 0), s1)
            store(work.x_gradient, (c, i + 2, 0), s2)
            store(work.x_gradient, (c, i + 3, 0), s3)
        for i in range(len(work.distances)):
            t0 = signed(spread(work.own[i]), load(x, (c, i, 0)) - load(work.truth, (c, i, 0)))
            store(work.truth_gradient, (c, i, 0), zero - t0)
            store(work.x_gradient, (c, i, 0), load(work.x_gradient, (c, i, 0)) + t0)


@compiled_as_written
def l1_step(batch: Batch, terms: Terms, work: Scratch, gradients: Gradients) -> float:
    """The loss by Σ_k |x_k − y_k|, summed over the batch; gradients are those of its mean."""
    loss, rows = np.float64(0), _rows_of_a_group(batch)
    for group in range(len(batch.candidates)):
        first, number = group * rows, min(rows, len(batch.points) - group * rows)
        _take_group(batch, first, number, group, work)
        _l1_distances(work, batch.candidates.shape[1])
        for i in range(number):
            loss += _weigh(batch, terms, first + i, i, work)
        work.distances[number:], work.own[number:] = _ZERO, _ZERO
        _l1_gradients(work, batch.candidates.shape[1])
        _give_group(batch, first, number, group, work, gradients)
    return loss


@inlined_as_written
def _square(re: Lanes, im: Lanes) -> Lanes:
    """The square of a modulus, and so little more that it has an inverse: where it matters, the gradient is zero."""
    return fused(re, re, fused(im, im, spread(_TINY)))


@compiled_as_written
def _complex_distances(work: Scratch, i: int, candidates: int) -> None:
    """Σ |x − y| over complex coordinates of rows i and i + 1; moduli are kept for the gradient."""
    x, y, zero = work.x, work.y, spread(_ZERO)
    for row in range(i, i + 2):
        a0 = zero
        for c in range(x.shape[0]):
            re = load(x, (c, row, 0)) - load(work.truth, (c, row, 0))
            im = load(x, (c, row, COUNT)) - load(work.truth, (c, row, COUNT))
            square = _square(re, im)
            a0 = fused(square, inverse_root(square), a0)
        work.own[row] = total(a0)
    for j in range(candidates):
        a0 = a1 = zero
        for c in range(x.shape[0]):
            re, im = load(y, (c, j, 0)), load(y, (c, j, COUNT))
            s0 = _square(load(x, (c, i, 0)) - re, load(x, (c, i, COUNT)) - im)
            s1 = _square(load(x, (c, i + 1, 0)) - re, load(x, (c, i + 1, COUNT)) - im)
            r0, r1 = inverse_root(s0), inverse_root(s1)
            store(work.inverse, (c, 0, j, 0), r0)
            store(work.inverse, (c, 1, j, 0), r1)
            a0, a1 = fused(s0, r0, a0), fused(s1, r1, a1)
        work.distances[i, j], work.distances[i + 1, j] = total(a0), total(a1)


@compiled_as_written
def _complex_gradients(work: Scratch, i: int, candidates: int) -> None:
    """g (x − y) / |x − y| of rows i and i + 1."""
    x, y, g, to, zero = work.x, work.y, work.distances, work.y_gradient, spread(_ZERO)
    for c in range(x.shape[0]):
        re0, im0 = load(x, (c, i, 0)), load(x, (c, i, COUNT))
        re1, im1 = load(x, (c, i + 1, 0)), load(x, (c, i + 1, COUNT))
        a0 = b0 = a1 = b1 = zero
        for j in range(candidates):
            re, im = load(y, (c, j, 0)), load(y, (c, j, COUNT))
            w0 = spread(g[i, j]) * load(work.inverse, (c, 0, j, 0))
            w1 = spread(g[i + 1, j]) * load(work.inverse, (c, 1, j, 0))
            # Half of the sums are fused with products and half are not: a processor does both at the same time.
            d0, d1, v0, v1 = re - re0, re - re1, w0 * (im - im0), w1 * (im - im1)
            a0, b0, a1, b1 = fused(w0, d0, a0), b0 + v0, fused(w1, d1, a1), b1 + v1
            store(to, (c, j, 0), fused(w1, d1, fused(w0, d0, load(to, (c, j, 0)))))
            store(to, (c, j, COUNT), load(to, (c, j, COUNT)) + (v0 + v1))
        store(work.x_gradient, (c, i, 0), zero - a0)
        store(work.x_gradient, (c, i, COUNT), zero - b0)
        store(work.x_gradient, (c, i + 1, 0), zero - a1)
        store(work.x_gradient, (c, i + 1, COUNT), zero - b1)
        for row in range(i, i + 2):
            re = load(x, (c, row, 0)) - load(work.truth, (c, row, 0))
            im = load(x, (c, row, COUNT)) - load(work.truth, (c, row, COUNT))
            w0 = spread(work.own[row]) * inverse_root(_square(re, im))
            store(work.truth_gradient, (c, row, 0), zero - w0 * re)
            store(work.truth_gradient, (c, row, COUNT), zero - w0 * im)
            store(work.x_gradient, (c, row, 0), load(work.x_gradient, (c, row, 0)) + w0 * re)
            store(work.x_gradient, (c, row, COUNT), load(work.x_gradient, (c, row, COUNT)) + w0 * im)


@compiled_as_written
def complex_l1_step(batch: Batch, terms: Terms, work: Scratch, gradients: Gradients) -> float:
    """The same by Σ_k |x_k − y_k| over complex k; rows hold real parts, then imaginary parts."""
    loss, rows, m = np.float64(0), _rows_of_a_group(batch), batch.candidates.shape[1]
    for group in range(len(batch.candidates)):
        first, number = group * rows, min(rows, len(batch.points) - group * rows)
        _take_group(batch, first, number, group, work)
        for i in range(0, number, 2):
            _complex_distances(work, i, m)
            loss += _weigh(batch, terms, first + i, i, work)
            if i + 1 < number:
                loss += _weigh(batch, terms, first + i + 1, i + 1, work)
            else:
                work.distances[i + 1], work.own[i + 1] = _ZERO, _ZERO
            _complex_gradients(work, i, m)
        _give_group(batch, first, number, group, work, gradients)
    return loss
