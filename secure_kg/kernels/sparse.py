"""Products of a sparse matrix with dense rows, each row of the result added up in one order.

A library's own products may add up in an order that depends on threads or on where an array lies. Here the order is
that of the entries, so that the same numbers give the same bits in every process.
"""

import numpy as np
import numpy.typing as npt

from secure_kg.kernels.compiling import compiled

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]


@compiled
def times_rows(starts: Ids, columns: Ids, values: Floats, rows: Floats, out: Floats) -> None:
    """out[i] = Σ_k values[k] · rows[columns[k]], k from starts[i] to starts[i + 1]; `out` [n, width] is overwritten."""
    for i in range(out.shape[0]):
        for c in range(out.shape[1]):
            out[i, c] = np.float32(0)
        for k in range(starts[i], starts[i + 1]):
            value, j = values[k], columns[k]
            for c in range(out.shape[1]):
                out[i, c] += value * rows[j, c]
