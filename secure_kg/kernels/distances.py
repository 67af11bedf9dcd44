"""Distances of every x to every y, and their gradients, without a [b, m, width] intermediate.

x [b, width] and y [m, width] are float32 and contiguous; results are written into arrays the caller gives. The
gradient kernels add to x_grad [b, width] and y_grad [m, width]; g [b, m] is the gradient of the distances.
"""

import math

import numpy as np
import numpy.typing as npt

from secure_kg.kernels.compiling import compiled

Floats = npt.NDArray[np.float32]


@compiled
def l1(x: Floats, y: Floats, out: Floats) -> None:
    """out[i, j] = Σ_k |x_ik − y_jk|."""
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            total = np.float32(0)
            for k in range(x.shape[1]):
                total += abs(x[i, k] - y[j, k])
            out[i, j] = total


@compiled
def l1_gradient(x: Floats, y: Floats, g: Floats, x_grad: Floats, y_grad: Floats) -> None:
    """The subgradient 0 is taken where two coordinates are equal, as torch does."""
    zero = np.float32(0)
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            up = g[i, j]
            if up != zero:
                down = -up
                for k in range(x.shape[1]):
                    difference = x[i, k] - y[j, k]
                    step = up if difference > zero else (down if difference < zero else zero)
                    x_grad[i, k] += step
                    y_grad[j, k] -= step


@compiled
def l2(x: Floats, y: Floats, out: Floats) -> None:
    """out[i, j] = ‖x_i − y_j‖, from differences: the form with a matrix product cancels for close rows."""
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            total = np.float32(0)
            for k in range(x.shape[1]):
                difference = x[i, k] - y[j, k]
                total += difference * difference
            out[i, j] = math.sqrt(total)


@compiled
def complex_l1(x: Floats, y: Floats, out: Floats) -> None:
    """out[i, j] = Σ_k |x_ik − y_jk| over complex k; rows hold real parts, then imaginary parts."""
    half = x.shape[1] // 2
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            total = np.float32(0)
            for k in range(half):
                re = x[i, k] - y[j, k]
                im = x[i, k + half] - y[j, k + half]
                total += math.sqrt(re * re + im * im)
            out[i, j] = total


@compiled
def complex_l1_gradient(x: Floats, y: Floats, g: Floats, x_grad: Floats, y_grad: Floats) -> None:
    """The floor only matters where a modulus is zero; there the differences, and so the gradients, are zero."""
    half = x.shape[1] // 2
    zero, floor = np.float32(0), np.float32(1e-30)
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            up = g[i, j]
            if up != zero:
                for k in range(half):
                    re = x[i, k] - y[j, k]
                    im = x[i, k + half] - y[j, k + half]
                    weight = up / math.sqrt(max(re * re + im * im, floor))
                    re *= weight
                    im *= weight
                    x_grad[i, k] += re
                    x_grad[i, k + half] += im
                    y_grad[j, k] -= re
                    y_grad[j, k + half] -= im
