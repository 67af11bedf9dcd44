"""Marks on those of a batch's shared candidates that are true answers."""

import numpy as np
import numpy.typing as npt

from secure_kg.kernels.compiling import compiled
from secure_kg.kernels.known import Known

Ids = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@compiled
def mark_known(position: Ids, candidates: Ids, rows: int, known: Known, marks: Flags) -> None:
    """marks [b, m]: whether candidate j of query i's group is among the known answers of query i.

    candidates [groups, m], all different within a group; a group is `rows` queries that follow each other. `position`
    [entities] holds −1 everywhere, and does so again afterwards; marks come in as False.
    """
    for u in range(candidates.shape[0]):
        for j in range(candidates.shape[1]):
            position[candidates[u, j]] = j
        for i in range(u * rows, min((u + 1) * rows, known.starts.shape[0])):
            for place in range(known.starts[i], known.starts[i] + known.counts[i]):
                column = position[known.all[place]]
                if column >= 0:
                    marks[i, column] = True
        for j in range(candidates.shape[1]):
            position[candidates[u, j]] = -1
