"""Points against entities. A query's score of an entity is that of its best point.

    dot: scale · x·e      squared: −scale · ‖x − e‖²      l2: −scale · ‖x − e‖

The scale is one of the operators and starts at 1: without it the loss could only be lowered by longer rows. It changes
no order, so that rankings go without it.
"""

from torch import Tensor

from secure_kg.models.queries.shapes import Score

_LEAST = 1e-6
"""Of a squared distance: the root has no slope at zero, and a difference of products may fall below it."""


def alike(points: Tensor, rows: Tensor, score: Score) -> Tensor:
    """Points [b, k, d] and rows [b, d] to [b]: each query with a row of its own. Not scaled."""
    return _similar((points * rows[:, None]).sum(-1), points, rows[:, None], score).amax(1)


def pairs(points: Tensor, rows: Tensor, score: Score) -> Tensor:
    """Points [b, k, d] and rows [m, d] to [b, m]: each query with every row. Not scaled."""
    number, several, width = points.shape
    flat = points.reshape(-1, width)
    found = _similar(flat @ rows.T, flat[:, None], rows, score)
    return found if several == 1 else found.view(number, several, -1).amax(1)


def _similar(products: Tensor, points: Tensor, rows: Tensor, score: Score) -> Tensor:
    if score == "dot":
        return products
    squares = (points * points).sum(-1) + (rows * rows).sum(-1) - 2 * products
    return -squares if score == "squared" else -squares.clamp_min(_LEAST).sqrt()
