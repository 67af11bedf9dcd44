"""Which of a batch's shared candidates are true answers."""

import numpy as np
import numpy.typing as npt

from secure_kg.kernels.compiling import compiled

Ids = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@compiled
def mark_known(position: Ids, candidates: Ids, starts: Ids, counts: Ids, known: Ids, marks: Flags) -> None:
    """marks [b, m]: whether candidate j is among known[starts[i] : starts[i] + counts[i]].

    `position` [entities] holds −1 everywhere, and does so again afterwards; marks come in as False.
    """
    for j in range(candidates.shape[0]):
        position[candidates[j]] = j
    for i in range(starts.shape[0]):
        for place in range(starts[i], starts[i] + counts[i]):
            column = position[known[place]]
            if column >= 0:
                marks[i, column] = True
    for j in range(candidates.shape[0]):
        position[candidates[j]] = -1
