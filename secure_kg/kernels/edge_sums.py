"""Weighted sums of rows over the edges of each node, and their gradients, without an [edges, width] intermediate.

Edges are sorted by node: those of node i stand at starts[i] to starts[i + 1], so that every sum is added up in one
order. Rows are float32 and contiguous; results are added into arrays the caller gives.
"""

import numpy as np
import numpy.typing as npt

from secure_kg.kernels.compiling import compiled

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]


@compiled
def edge_sums(starts: Ids, sources: Ids, weights: Floats, rows: Floats, out: Floats) -> None:
    """out[i] += Σ_e weights[e] · rows[sources[e]] over the edges e of node i."""
    for i in range(out.shape[0]):
        for e in range(starts[i], starts[i + 1]):
            weight, j = weights[e], sources[e]
            for k in range(out.shape[1]):
                out[i, k] += weight * rows[j, k]


@compiled
def edge_sums_gradient(
    starts: Ids, sources: Ids, weights: Floats, rows: Floats, up: Floats, grads: tuple[Floats, Floats]
) -> None:
    """Adds to the gradients of weights and rows; up [nodes, width] is the gradient of the sums."""
    weights_grad, rows_grad = grads
    for i in range(up.shape[0]):
        for e in range(starts[i], starts[i + 1]):
            weight, j = weights[e], sources[e]
            total = np.float32(0)
            for k in range(up.shape[1]):
                total += up[i, k] * rows[j, k]
                rows_grad[j, k] += weight * up[i, k]
            weights_grad[e] += total
