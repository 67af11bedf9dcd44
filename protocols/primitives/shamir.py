"""Shamir's secret sharing of 32-byte secrets over the field of p = 2^61 - 1 elements.

The secret, read as a little-endian number, is cut into five limbs: four of 60 bits and one of the remaining 16. Each
limb is the constant term of a polynomial of degree threshold - 1 whose other coefficients are exactly uniform. A share
is the five values at the holder's point, as little-endian words of 8 bytes. Fewer than `threshold` shares say nothing
about the secret; with threshold 1 every share is the secret.

Misuse: shares carry no authentication. A wrong share among exactly `threshold` of them gives a wrong secret, noticed
only if a limb leaves its range; only surplus shares make it certain to be noticed, and they do not say whose it is.
Have shares come from their holders over authenticated channels, and check what was recombined against a public value
(the public key of a recombined private key). Shares of one secret belong to one call of `split`: shares of two calls
do not go together, and two calls at different thresholds protect only as well as the lower one.
"""

import operator
import secrets
import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from protocols.foundation.errors import PeerMisbehaved
from protocols.primitives.group import MODULUS, FieldArray, PrimeField

SECRET_BYTES: Final = 32
_LIMBS: Final = 5
_LIMB_BITS: Final = 60
_LIMB_LIMITS: Final = [1 << min(_LIMB_BITS, 8 * SECRET_BYTES - _LIMB_BITS * limb) for limb in range(_LIMBS)]
SHARE_BYTES: Final = 8 * _LIMBS
_FIELD: Final = PrimeField()
# Entries of the intermediate product when shares are combined: 512 KB, whatever the number of shares.
_BLOCK: Final = 1 << 16
# Up to so many products of a limb, Python's integers are quicker than arrays: a dozen clients, whole.
_FEW: Final = 150
_SHARE: Final = struct.Struct(f"<{_LIMBS}Q")
_LOW_LIMB: Final = (1 << _LIMB_BITS) - 1
_OUTSIDE: Final = "a share with a value outside the field"
_NOT_OF_ONE: Final = "shares that do not belong to one secret"


def split(secret: bytes, points: Sequence[int], threshold: int) -> dict[int, bytes]:
    """One share for each point, any `threshold` of which give the secret. Points are distinct numbers in [1, p)."""
    if len(secret) != SECRET_BYTES:
        raise ValueError(f"a secret has {SECRET_BYTES} bytes")
    if not all(_is_point(point) for point in points) or len(set(points)) != len(points):
        # The share at zero would be the secret itself.
        raise ValueError("points must be distinct numbers from 1 to 2^61-2")
    if not 1 <= threshold <= len(points):
        raise ValueError(f"no sharing among {len(points)} with threshold {threshold}")
    if threshold * len(points) <= _FEW:
        return _split_few(secret, points, threshold)
    coefficients = _FIELD.uniform((threshold - 1, _LIMBS))
    places = np.array(points, dtype=np.uint64)[:, np.newaxis]
    values = np.zeros((len(points), _LIMBS), dtype=np.uint64)
    for coefficient in (*coefficients, np.array(_limbs(secret), dtype=np.uint64)):
        values = _FIELD.add(_FIELD.multiply(values, places), coefficient)
    encoded = values.astype("<u8").tobytes()
    return {point: encoded[at * SHARE_BYTES : (at + 1) * SHARE_BYTES] for at, point in enumerate(points)}


def recombine(shares: Mapping[int, bytes], threshold: int) -> bytes:
    """The secret from the shares at the `threshold` lowest points; all further shares must agree with them.

    `ValueError` for fewer than `threshold` shares, `PeerMisbehaved` for shares `split` cannot have made. Each surplus
    share costs as much as recombining once more.
    """
    if threshold < 1:
        raise ValueError(f"no sharing with threshold {threshold}")
    if len(shares) < threshold:
        raise ValueError(f"{len(shares)} shares, fewer than the threshold of {threshold}")
    if not all(_is_point(point) for point in shares):
        raise PeerMisbehaved("a share at a point that is no number from 1 to 2^61-2")
    if any(len(share) != SHARE_BYTES for share in shares.values()):
        raise PeerMisbehaved(f"a share that does not have {SHARE_BYTES} bytes")
    points = sorted(shares)
    given, surplus = tuple(points[:threshold]), tuple(points[threshold:])
    if threshold * (1 + len(surplus)) <= _FEW:
        return _secret_of(_recombine_few([_SHARE.unpack(shares[point]) for point in points], given, surplus))
    values = np.frombuffer(b"".join(shares[point] for point in points), dtype="<u8").reshape(-1, _LIMBS)
    if values.max() >= MODULUS:
        raise PeerMisbehaved(_OUTSIDE)
    expected = _combined(_weights(given, surplus), values[:threshold])
    if not np.array_equal(expected[1:], values[threshold:]):
        raise PeerMisbehaved(_NOT_OF_ONE)
    return _secret_of(expected[0].tolist())


def _secret_of(limbs: Sequence[int]) -> bytes:
    if any(limb >= limit for limb, limit in zip(limbs, _LIMB_LIMITS, strict=True)):
        raise PeerMisbehaved("shares that do not give a secret")
    return sum(limb << (_LIMB_BITS * place) for place, limb in enumerate(limbs)).to_bytes(SECRET_BYTES, "little")


def _is_point(point: object) -> bool:
    return isinstance(point, int) and 1 <= point < MODULUS


def _limbs(secret: bytes) -> list[int]:
    number = int.from_bytes(secret, "little")
    return [(number >> (_LIMB_BITS * place)) & _LOW_LIMB for place in range(_LIMBS)]


def _split_few(secret: bytes, points: Sequence[int], threshold: int) -> dict[int, bytes]:
    """What `split` gives, without the cost of each operation on a small array."""
    higher, shares = _uniform(_LIMBS * (threshold - 1)), dict[int, bytes]()
    polynomials = [(*higher[place::_LIMBS], limb) for place, limb in enumerate(_limbs(secret))]
    for point in points:
        values = list[int]()
        for polynomial in polynomials:
            value = 0
            for coefficient in polynomial:  # from the highest on
                value = (value * point + coefficient) % MODULUS
            values.append(value)
        shares[point] = _SHARE.pack(*values)
    return shares


def _uniform(count: int) -> list[int]:
    """As many exactly uniform elements of the field, as `PrimeField.uniform` draws them."""
    elements = list[int]()
    while missing := count - len(elements):
        words = struct.unpack(f"<{missing}Q", secrets.token_bytes(8 * missing))
        elements += [low for word in words if (low := word & MODULUS) != MODULUS]
    return elements


def _recombine_few(
    values: Sequence[tuple[int, ...]], given: tuple[int, ...], surplus: tuple[int, ...]
) -> Sequence[int]:
    """The limbs of the secret, likewise. `values`: of the shares at the points `given`, then of the surplus ones."""
    if max(map(max, values)) >= MODULUS:
        raise PeerMisbehaved(_OUTSIDE)
    columns = list(zip(*values[: len(given)], strict=True))
    expected = [
        tuple([sum(map(operator.mul, row, column)) % MODULUS for column in columns])
        for row in _few_weights(given, surplus)
    ]
    if expected[1:] != list(values[len(given) :]):
        raise PeerMisbehaved(_NOT_OF_ONE)
    return expected[0]


# A server recombines many secrets from the shares of few sets of parties. Points are public.
@lru_cache(maxsize=16)
def _weights(points: tuple[int, ...], others: tuple[int, ...]) -> FieldArray:
    """Lagrange coefficients: row times values at `points` is the value at zero (first row), then at each of `others`.

    The coefficient of point x_i for the value at y is prod_{j != i} (y - x_j) / (x_i - x_j), computed as
    prod_j (y - x_j) / ((y - x_i) prod_{j != i} (x_i - x_j)): all divisors are inverted together.
    """
    at = np.array(points, dtype=np.uint64)
    targets = np.array((0, *others), dtype=np.uint64)
    apart = _FIELD.subtract(at[np.newaxis, :], at[:, np.newaxis])
    np.fill_diagonal(apart, 1)
    away = _FIELD.subtract(targets[np.newaxis, :], at[:, np.newaxis])
    divisors = _FIELD.multiply(away, _FIELD.product(apart)[:, np.newaxis])
    weights = np.ascontiguousarray(_FIELD.multiply(_FIELD.product(away), _FIELD.inverse(divisors)).T)
    weights.flags.writeable = False  # every later call gets this very array
    return weights


@lru_cache(maxsize=16)
def _few_weights(points: tuple[int, ...], others: tuple[int, ...]) -> list[list[int]]:
    """The same as Python's integers."""
    weights: list[list[int]] = _weights(points, others).tolist()
    return weights


def _combined(weights: FieldArray, values: FieldArray) -> FieldArray:
    """The matrix product of (rows, points) and (points, limbs) in the field."""
    rows = max(1, _BLOCK // values.size)
    blocks = [weights[start : start + rows].T[:, :, np.newaxis] for start in range(0, len(weights), rows)]
    return np.concatenate([_FIELD.sum(_FIELD.multiply(block, values[:, np.newaxis, :])) for block in blocks])
