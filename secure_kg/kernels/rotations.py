"""Complex coordinates turned by phases, and the gradient: one pass each. Rows hold real parts, then imaginary parts."""

import numpy as np
import numpy.typing as npt

from secure_kg.kernels.compiling import compiled

Floats = npt.NDArray[np.float32]


@compiled
def turn(x: Floats, cos: Floats, sin: Floats, out: Floats) -> None:
    """x [b, 2 dim] turned by phases with that cosine and sine [b, dim]."""
    dim = cos.shape[1]
    for i in range(x.shape[0]):
        for k in range(dim):
            out[i, k] = x[i, k] * cos[i, k] - x[i, k + dim] * sin[i, k]
        for k in range(dim):
            out[i, k + dim] = x[i, k] * sin[i, k] + x[i, k + dim] * cos[i, k]


@compiled
def turn_gradient(out: Floats, cos: Floats, sin: Floats, g: Floats, x_grad: Floats, phase_grad: Floats) -> None:
    """From the gradient g [b, 2 dim] by the turned rows `out`: that by x is g turned back."""
    dim = cos.shape[1]
    for i in range(out.shape[0]):
        for k in range(dim):
            x_grad[i, k] = g[i, k] * cos[i, k] + g[i, k + dim] * sin[i, k]
        for k in range(dim):
            x_grad[i, k + dim] = g[i, k + dim] * cos[i, k] - g[i, k] * sin[i, k]
        for k in range(dim):
            phase_grad[i, k] = g[i, k + dim] * out[i, k] - g[i, k] * out[i, k + dim]
