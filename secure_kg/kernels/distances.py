"""Distances of every x to every y of its group, and their gradients, without a [groups, b, m, width] intermediate.

x [groups, b, width] and y [groups, m, width] are float32 and contiguous; results are written into arrays the caller
gives. The gradient kernels add to x_grad and y_grad, of the shapes of x and y; g [groups, b, m] is the gradient of the
distances.
"""

import math

import numpy as np
import numpy.typing as npt

from secure_kg.kernels.compiling import compiled

Floats = npt.NDArray[np.float32]


@compiled
def l1(x: Floats, y: Floats, out: Floats) -> None:
    """out[u, i, j] = Σ_k |x_ik − y_jk|."""
    for u in range(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range(y.shape[1]):
                total = np.float32(0)
                for k in range(x.shape[2]):
                    total += abs(x[u, i, k] - y[u, j, k])
                out[u, i, j] = total


@compiled
def l1_gradient(x: Floats, y: Floats, g: Floats, x_grad: Floats, y_grad: Floats) -> None:
    """The subgradient 0 is taken where two coordinates are equal, as torch does."""
    zero = np.float32(0)
    for u in range(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range(y.shape[1]):
                up = g[u, i, j]
                if up != zero:
                    down = -up
                    for k in range(x.shape[2]):
                        difference = x[u, i, k] - y[u, j, k]
                        step = up if difference > zero else (down if difference < zero else zero)
                        x_grad[u, i, k] += step
                        y_grad[u, j, k] -= step


@compiled
def l2(x: Floats, y: Floats, out: Floats) -> None:
    """out[u, i, j] = ‖x_i − y_j‖, from differences: the form with a matrix product cancels for close rows."""
    for u in range(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range(y.shape[1]):
                total = np.float32(0)
                for k in range(x.shape[2]):
                    difference = x[u, i, k] - y[u, j, k]
                    total += difference * difference
                out[u, i, j] = math.sqrt(total)


@compiled
def l2_gradient(x: Floats, y: Floats, g: Floats, x_grad: Floats, y_grad: Floats) -> None:
    """From differences as well; equal rows get no gradient."""
    zero = np.float32(0)
    for u in range(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range(y.shape[1]):
                up = g[u, i, j]
                if up != zero:
                    total = zero
                    for k in range(x.shape[2]):
                        difference = x[u, i, k] - y[u, j, k]
                        total += difference * difference
                    weight = up / math.sqrt(total) if total > zero else zero
                    for k in range(x.shape[2]):
                        step = weight * (x[u, i, k] - y[u, j, k])
                        x_grad[u, i, k] += step
                        y_grad[u, j, k] -= step


@compiled
def complex_l1(x: Floats, y: Floats, out: Floats) -> None:
    """out[u, i, j] = Σ_k |x_ik − y_jk| over complex k; rows hold real parts, then imaginary parts."""
    half = x.shape[2] // 2
    for u in range(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range(y.shape[1]):
                total = np.float32(0)
                for k in range(half):
                    re = x[u, i, k] - y[u, j, k]
                    im = x[u, i, k + half] - y[u, j, k + half]
                    total += math.sqrt(re * re + im * im)
                out[u, i, j] = total


@compiled
def complex_l1_gradient(x: Floats, y: Floats, g: Floats, x_grad: Floats, y_grad: Floats) -> None:
    """The floor only matters where a modulus is zero; there the differences, and so the gradients, are zero."""
    half = x.shape[2] // 2
    zero, floor = np.float32(0), np.float32(1e-30)
    for u in range(x.shape[0]):
        for i in range(x.shape[1]):
            for j in range(y.shape[1]):
                up = g[u, i, j]
                if up != zero:
                    for k in range(half):
                        re = x[u, i, k] - y[u, j, k]
                        im = x[u, i, k + half] - y[u, j, k + half]
                        weight = up / math.sqrt(max(re * re + im * im, floor))
                        re *= weight
                        im *= weight
                        x_grad[u, i, k] += re
                        x_grad[u, i, k + half] += im
                        y_grad[u, j, k] -= re
                        y_grad[u, j, k + half] -= im
