"""A model of costs: what a party does how often, times constants that are fitted to measured points.

    client of a sum   1, one for each neighbour (keys, shares), one for each entry, one for each entry of a keystream
    server of a sum   1, one for each client and for each pair (messages, shares), one for each key that it agrees on
                      in a dropout's place, one for each entry that it adds, one for each entry of a keystream that it
                      removes: a client's own, and those of each dropout
    union             the same over its table, and one for each name
    secret round      a sum of rows and a count of holders: entries of both

Constants are not negative, and fitted to relative errors, so that small sizes count as large ones do.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.optimize import nnls

from benchmarks.scale.measuring import HOLDERS, KINDS, Kind, Point, Size
from protocols.alignment.psu.layout import TableLayout

Quantity = str
QUANTITIES: Final = ("client_seconds", "server_seconds", "process_megabytes")


def work(quantity: Quantity, size: Size, neighbours: int) -> list[float]:
    """How often each thing is done."""
    clients, entries = size.clients, _entries(size)
    streams = entries * (neighbours + 1)
    removed = entries * (clients - size.dropped + size.dropped * neighbours)
    if quantity == "client_seconds":
        return [1.0, neighbours, entries, streams, *_more(size)]
    if quantity == "server_seconds":
        pairs, agreed = clients * neighbours, size.dropped * neighbours
        return [1.0, clients, pairs, agreed, entries * clients, removed, *_more(size)]
    return [1.0, entries, clients * neighbours, clients]


def _entries(size: Size) -> float:
    """Of the vector that is masked."""
    if size.kind == "union":
        return float(TableLayout.for_bound(size.rows).entries)
    return float(size.entries)


def _more(size: Size) -> list[float]:
    if size.kind == "union":
        return [float(size.rows)]
    if size.kind == "secret round":
        counted = size.rows * (HOLDERS - 1) ** 2
        return [float(counted), float(counted * size.clients)]
    return []


@dataclass(frozen=True, slots=True)
class Fit:
    """The constants of one quantity of one kind, and how far the model was from points that it was not fitted to."""

    kind: Kind
    quantity: Quantity
    constants: tuple[float, ...]
    errors: tuple[float, ...]
    """Relative, of the points that were held out."""

    @property
    def largest_error(self) -> float:
        return max((abs(error) for error in self.errors), default=0.0)

    @property
    def usual_error(self) -> float:
        return statistics.median([abs(error) for error in self.errors]) if self.errors else 0.0

    def predict(self, size: Size, neighbours: int) -> float:
        return float(np.dot(self.constants, work(self.quantity, size, neighbours)))


def fit(points: Sequence[Point], held_out: Sequence[Point]) -> list[Fit]:
    """For every kind and quantity that was measured."""
    found = []
    for kind in KINDS:
        for quantity in QUANTITIES:
            if fitted := _of(kind, quantity, points):
                found.append(_fit(kind, quantity, fitted, _of(kind, quantity, held_out)))
    return found


def _of(kind: Kind, quantity: Quantity, points: Sequence[Point]) -> list[Point]:
    return [point for point in points if point.size.kind == kind and getattr(point, quantity) > 0]


def _fit(kind: Kind, quantity: Quantity, points: Sequence[Point], held_out: Sequence[Point]) -> Fit:
    measured = np.array([getattr(point, quantity) for point in points])
    done = np.array([work(quantity, point.size, point.neighbours) for point in points])
    scale = np.maximum(done.max(axis=0), 1.0)  # so that constants of seconds per entry and per client are of one size
    constants, _ = nnls(done / scale / measured[:, None], np.ones(len(points)))
    made = Fit(kind, quantity, tuple((constants / scale).tolist()), ())
    errors = [made.predict(one.size, one.neighbours) / getattr(one, quantity) - 1 for one in held_out]
    return Fit(kind, quantity, made.constants, tuple(errors))
