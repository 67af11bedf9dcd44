"""Distances that are sums over coordinates, and sums of their gradients: L1, and the complex L1 of RotatE.

x [b, width] and y [m, width] are whole numbers below 2²⁰, so differences are exact, and zero or at least one: nothing
underflows. Distances of one point are added up in the order of coordinates. Gradients by a coordinate are −1, 0 or 1,
or parts of a complex number of modulus one, cut to multiples of 2⁻¹⁴. Weights are whole numbers, so sums are exact.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from secure_kg.privacy.gradients.strict import Doubles, strict

Floats = npt.NDArray[np.float32]
TURN: Final = np.float32(2**14)
"""Units of a modulus of one."""
TURN_SLACK: Final = 1 + 2.0**-20
"""A squared modulus is at most this: six roundings in single precision of numbers that are no subnormal ones."""


@strict
def l1(x: Floats, y: Floats, out: Doubles) -> None:
    """out[i, j] = −Σ_k |x_ik − y_kj|, of y [width, m]."""
    total = np.empty(y.shape[1], dtype=np.float32)
    for i in range(x.shape[0]):
        total[:] = np.float32(0)
        for k in range(x.shape[1]):
            for j in range(y.shape[1]):
                total[j] += abs(x[i, k] - y[k, j])
        for j in range(y.shape[1]):
            out[i, j] = -total[j]


@strict
def l1_alike(x: Floats, y: Floats, out: Doubles) -> None:
    """out[i] = −Σ_k |x_ik − y_ik|, of y [b, width]."""
    for i in range(x.shape[0]):
        total = 0.0
        for k in range(x.shape[1]):
            total += abs(x[i, k] - y[i, k])
        out[i] = -total


@strict
def l1_by_answers(x: Floats, y: Floats, g: Doubles, out: Doubles) -> None:
    """out[i] = g_i · sign(x_i − y_i), of y [b, width]."""
    for i in range(x.shape[0]):
        up = g[i]
        for k in range(x.shape[1]):
            out[i, k] = up if x[i, k] > y[i, k] else (-up if x[i, k] < y[i, k] else 0.0)


@strict
def l1_by_points(x: Floats, y: Floats, g: Doubles, out: Doubles) -> None:
    """out[i] = Σ_j g_ij · −sign(x_i − y_j), of y [m, width]."""
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            up = g[i, j]
            if up != 0.0:
                for k in range(x.shape[1]):
                    out[i, k] += -up if x[i, k] > y[j, k] else (up if x[i, k] < y[j, k] else 0.0)


@strict
def l1_by_candidates(x: Floats, y: Floats, g: Doubles, out: Doubles) -> None:
    """out[j] += Σ_i g_ij · sign(x_i − y_j)."""
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            up = g[i, j]
            if up != 0.0:
                for k in range(x.shape[1]):
                    out[j, k] += up if x[i, k] > y[j, k] else (-up if x[i, k] < y[j, k] else 0.0)


@strict
def complex_l1(x: Floats, y: Floats, out: Doubles) -> None:
    """out[i, j] = −Σ_k |x_ik − y_kj| over complex k, of y [width, m]; rows hold real parts, then imaginary parts."""
    half, total = x.shape[1] // 2, np.empty(y.shape[1], dtype=np.float32)
    for i in range(x.shape[0]):
        total[:] = np.float32(0)
        for k in range(half):
            for j in range(y.shape[1]):
                re, im = x[i, k] - y[k, j], x[i, k + half] - y[k + half, j]
                total[j] += np.sqrt(re * re + im * im)
        for j in range(y.shape[1]):
            out[i, j] = -total[j]


@strict
def turns(x: Floats, y: Floats, out: Doubles) -> None:
    """out = (x − y) / |x − y| over complex coordinates of x, y [width], in units of 2⁻¹⁴, cut; zero at zero."""
    half, one = len(x) // 2, np.float32(1)
    for k in range(half):
        re, im = x[k] - y[k], x[k + half] - y[k + half]
        square = re * re + im * im
        modulus = np.sqrt(square if square > one else one)  # a square is zero or at least one
        out[k] = np.trunc(re / modulus * TURN)
        out[k + half] = np.trunc(im / modulus * TURN)


@strict
def complex_alike(x: Floats, y: Floats, out: Doubles) -> None:
    """out[i] = −Σ_k |x_ik − y_ik| over complex k, of y [b, width]."""
    half = x.shape[1] // 2
    for i in range(x.shape[0]):
        total = 0.0
        for k in range(half):
            re, im = x[i, k] - y[i, k], x[i, k + half] - y[i, k + half]
            total += np.sqrt(re * re + im * im)
        out[i] = -total


@strict
def complex_by_answers(x: Floats, y: Floats, g: Doubles, out: Doubles) -> None:
    """out[i] = g_i · turn(x_i − y_i), of y [b, width], in units of 2⁻¹⁴."""
    for i in range(x.shape[0]):
        turns(x[i], y[i], out[i])
        for k in range(x.shape[1]):
            out[i, k] *= g[i]


@strict
def complex_by_points(x: Floats, y: Floats, g: Doubles, out: Doubles) -> None:
    """out[i] = Σ_j g_ij · −turn(x_i − y_j), in units of 2⁻¹⁴."""
    turn = np.empty(x.shape[1])
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            up = g[i, j]
            if up != 0.0:
                turns(x[i], y[j], turn)
                for k in range(x.shape[1]):
                    out[i, k] -= up * turn[k]


@strict
def complex_by_candidates(x: Floats, y: Floats, g: Doubles, out: Doubles) -> None:
    """out[j] += Σ_i g_ij · turn(x_i − y_j), in units of 2⁻¹⁴."""
    turn = np.empty(x.shape[1])
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            up = g[i, j]
            if up != 0.0:
                turns(x[i], y[j], turn)
                for k in range(x.shape[1]):
                    out[j, k] += up * turn[k]
