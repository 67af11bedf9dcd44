"""Functions of sixteen floats at a time, by polynomials: the same on any machine, to about a unit in the last place.

Exponential: x = n ln 2 + r with |r| ≤ ln 2 / 2, and the series of e^r to the seventh power. Logarithm of 1 + z for
0 ≤ z ≤ 1: 2 artanh s = 2 (s + s³/3 + s⁵/5 + …) with s = z / (2 + z) ≤ 1/3, to s¹⁵. Inverse root: with a first value y
from the bits of x and h = 1 − x y², |h| < 0.07, it is y (1 − h)^−½; the polynomial in h is the best one of degree four,
with an error of 2.4e-8. It takes half the time of a root and a division in hardware.
"""

import numpy as np

from secure_kg.kernels.compiling import inlined_as_written
from secure_kg.kernels.lanes import Lanes, about_inverse_root, fused, larger, spread, two_to_the, whole

_LOWEST = np.float32(-87.0)  # e to it is still a normal number
_LOG2E = np.float32(1.4426950408889634)
_LN2_HIGH, _LN2_LOW = np.float32(-0.693359375), np.float32(2.12194440e-4)  # their sum is −ln 2
_ONE, _MINUS, _TWO, _HALF = np.float32(1), np.float32(-1), np.float32(2), np.float32(0.5)
_E7, _E6, _E5, _E4, _E3 = (np.float32(1 / n) for n in (5040, 720, 120, 24, 6))
_A15, _A13, _A11, _A9, _A7, _A5, _A3 = (np.float32(2 / n) for n in (15, 13, 11, 9, 7, 5, 3))
_H1, _H2, _H3, _H4 = (np.float32(c) for c in (-0.49999833, 0.37500013, -0.31393738, 0.27414125))


@inlined_as_written
def inverse_root(x: Lanes) -> Lanes:
    """1 / √x for normal x > 0."""
    y = about_inverse_root(x)
    h = fused(x * y, y, spread(_MINUS))  # minus the h above; the signs of the polynomial are turned
    p = fused(spread(_H4), h, spread(_H3))
    p = fused(p, h, spread(_H2))
    p = fused(p, h, spread(_H1))
    return fused(y * h, p, y)


@inlined_as_written
def exponential(x: Lanes) -> Lanes:
    """e^x for x ≤ 0; below −87 that of −87. Not a number stays so."""
    x = larger(x, spread(_LOWEST))
    n = whole(x * spread(_LOG2E))
    r = fused(n, spread(_LN2_LOW), fused(n, spread(_LN2_HIGH), x))
    p = fused(spread(_E7), r, spread(_E6))
    p = fused(p, r, spread(_E5))
    p = fused(p, r, spread(_E4))
    p = fused(p, r, spread(_E3))
    p = fused(p, r, spread(_HALF))
    p = fused(p, r, spread(_ONE))
    p = fused(p, r, spread(_ONE))
    return p * two_to_the(n)


@inlined_as_written
def log_of_one_plus(z: Lanes) -> Lanes:
    """log(1 + z) for 0 ≤ z ≤ 1, without the loss of digits of 1 + z."""
    s = z / (z + spread(_TWO))
    q = s * s
    p = fused(spread(_A15), q, spread(_A13))
    p = fused(p, q, spread(_A11))
    p = fused(p, q, spread(_A9))
    p = fused(p, q, spread(_A7))
    p = fused(p, q, spread(_A5))
    p = fused(p, q, spread(_A3))
    return s * fused(p, q, spread(_TWO))
