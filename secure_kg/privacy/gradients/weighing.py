"""Gradients of the self-adversarial loss by similarities, row by row, on a grid.

By the similarity with candidate j the gradient is w p_j σ(f_j), w the weight of the relation. It is cut to a multiple
of a public unit, so that products with rows on a grid are exact, in whatever order they are added up.
"""

from typing import NamedTuple

import numpy as np

from secure_kg.privacy.gradients.strict import Doubles, Ids, exponential, sigmoid, step, strict, summed

_OUT = -1e290  # a similarity that nothing has


class Loss(NamedTuple):
    """What the loss of b triples takes beside similarities. Scores are offset + weight · similarity."""

    temperature: float
    offset: float
    weights: Doubles
    """[b]: of relations, not negative."""
    own: Ids
    """[b, 2]: the columns of candidates that are ends of the triple itself; −1 for none."""


@strict
def by_positive(similarities: Doubles, loss: Loss) -> None:
    """Similarities [b] with answers, to the gradients by them: w (σ(f) − 1)."""
    for i in range(len(similarities)):
        weight = loss.weights[i]
        similarities[i] = -weight * sigmoid(-(loss.offset + weight * similarities[i]))


@step
def _highest(row: Doubles) -> float:
    best = _OUT
    for j in range(len(row)):
        best = row[j] if row[j] > best else best
    return best


@step
def _leave_out(row: Doubles, own: Ids, value: float) -> None:
    for end in range(2):
        if own[end] >= 0:
            row[own[end]] = value


@step
def _unscaled(row: Doubles, loss: Loss, i: int, share: Doubles, far: Doubles) -> float:
    """share[j] = e^(α (f_j − max f)) σ(f_j) / far[j], nothing for own columns; returns w / Σ, to multiply it by."""
    weight, temperature, offset = loss.weights[i], loss.temperature, loss.offset
    own = loss.own[i]
    _leave_out(row, own, _OUT)
    best = offset + weight * _highest(row)
    for j in range(len(row)):
        share[j] = exponential(temperature * (offset + weight * row[j] - best))
    _leave_out(share, own, 0.0)
    total = summed(share)
    for j in range(len(row)):
        score = offset + weight * row[j]
        small = exponential(-abs(score))
        share[j] = share[j] * (1.0 if score >= 0.0 else small) / ((1.0 + small) * far[j])
    return weight / total if total > 0.0 else 0.0


@strict
def weigh(similarities: Doubles, loss: Loss, unit: float, squares: Doubles) -> None:
    """Similarities [b, m] with candidates, to the gradients by them in multiples of unit; squares [b]: their sums."""
    share, ones = np.empty(similarities.shape[1]), np.ones(similarities.shape[1])
    for i in range(similarities.shape[0]):
        row = similarities[i]
        factor = _unscaled(row, loss, i, share, ones) * (1.0 / unit)
        for j in range(len(row)):
            row[j] = np.trunc(share[j] * factor) * unit
            share[j] = row[j] * row[j]
        squares[i] = summed(share)


@strict
def weigh_distances(
    products: Doubles, sides: tuple[Doubles, Doubles], loss: Loss, grid: tuple[float, float], found: Doubles
) -> None:
    """Products [b, m] of points with candidates, to w p_j σ(f_j) / distance in at most grid[1] units of grid[0].

    `sides` are the squared norms of points [b] and of candidates [m]: all on a grid, so squared distances are exact.
    found [2, b]: sums of the weights, and of weight² distance². At distance zero the gradient is zero.
    """
    unit, most = grid
    share, far, y2 = np.empty(products.shape[1]), np.empty(products.shape[1]), sides[1]
    for i in range(products.shape[0]):
        row, x2 = products[i], sides[0][i]
        for j in range(len(row)):
            distance = np.sqrt(x2 + y2[j] - 2.0 * row[j])
            row[j] = -distance
            far[j] = distance if distance > 0.0 else np.inf
        factor = _unscaled(row, loss, i, share, far) * (1.0 / unit)
        for j in range(len(row)):
            units = np.trunc(share[j] * factor)
            row[j] = (most if units > most else units) * unit
            length = row[j] * far[j] if row[j] > 0.0 else 0.0
            share[j] = length * length
        found[0, i], found[1, i] = summed(row), summed(share)


@strict
def by_distances(by_point: Doubles, x: Doubles, answers: Doubles, factors: Doubles, by_answer: Doubles) -> None:
    """by_answer = b (x − answer); that and a x are subtracted from by_point, of factors (a, b) [2, b]."""
    for i in range(x.shape[0]):
        pulled, point, answer, found = by_point[i], x[i], answers[i], by_answer[i]
        total, factor = factors[0, i], factors[1, i]
        for k in range(len(point)):
            found[k] = (point[k] - answer[k]) * factor
            pulled[k] = pulled[k] - point[k] * total - found[k]


@strict
def by_products(by_point: Doubles, x: Doubles, answers: Doubles, factors: Doubles, by_answer: Doubles) -> None:
    """by_answer = b x, and b answer is added to by_point, of factors b [b]."""
    for i in range(x.shape[0]):
        pulled, point, answer, found = by_point[i], x[i], answers[i], by_answer[i]
        factor = factors[i]
        for k in range(len(point)):
            found[k] = point[k] * factor
            pulled[k] += answer[k] * factor


@strict
def squared_distances(x: Doubles, y: Doubles, out: Doubles) -> None:
    """out[i] = |x_i − y_i|² of x, y [b, width]."""
    squares = np.empty(x.shape[1])
    for i in range(x.shape[0]):
        a, b = x[i], y[i]
        for k in range(len(a)):
            difference = a[k] - b[k]
            squares[k] = difference * difference
        out[i] = summed(squares)
