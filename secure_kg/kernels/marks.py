"""A batch's shared candidates: all different within a group, and marks on those that are true answers."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from secure_kg.kernels.compiling import compiled
from secure_kg.kernels.known import Known

Ids = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Places(NamedTuple):
    """Of every entity: whether it is among the candidates of a group, and in which column. Between calls none is.

    The flags have an array of their own, which is small enough to stay close to the processor: nearly all are False.
    """

    drawn: Flags
    column: npt.NDArray[np.int32]


@compiled
def make_distinct(drawn: Ids, entities: int, taken: Flags) -> None:
    """Groups [groups, m] of different ids below `entities`, every set being as likely, from independent draws.

    Place j holds a draw from 0 to entities − m + j, both included (Floyd's algorithm: Bentley, "Programming Pearls: A
    Sample of Brilliance", Communications of the ACM 1987): one that is taken already becomes its bound, which is not.
    `taken` [entities] is False everywhere, and so it is again afterwards.
    """
    m = drawn.shape[1]
    for u in range(drawn.shape[0]):
        for j in range(m):
            if taken[drawn[u, j]]:
                drawn[u, j] = entities - m + j
            taken[drawn[u, j]] = True
        for j in range(m):
            taken[drawn[u, j]] = False


@compiled
def mark_known(places: Places, candidates: Ids, rows: int, known: Known, marks: Flags) -> None:
    """marks [b, m]: whether candidate j of query i's group is among the known answers of query i.

    candidates [groups, m], all different within a group; a group is `rows` queries that follow each other. Marks come
    in as False.
    """
    for u in range(candidates.shape[0]):
        for j in range(candidates.shape[1]):
            places.drawn[candidates[u, j]] = True
            places.column[candidates[u, j]] = j
        for i in range(u * rows, min((u + 1) * rows, known.starts.shape[0])):
            for place in range(known.starts[i], known.starts[i] + known.counts[i]):
                if places.drawn[known.all[place]]:
                    marks[i, places.column[known.all[place]]] = True
        for j in range(candidates.shape[1]):
            places.drawn[candidates[u, j]] = False
