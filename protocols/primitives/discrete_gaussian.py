"""Discrete Gaussian noise N_Z(0, sigma^2) from the operating system's randomness: P(z) ~ exp(-z^2 / 2 sigma^2).

Each call has a fresh 256-bit key, and all its choices come from that key's keystream (`prg`): nobody can draw the noise
again, and no seed repeats it. A caller that must be able to repeat its own draws brings a key, which must be a secret
of its own and must never serve for two calls that differ in anything. No floating-point number is ever a draw.

How. Rejection from a discrete Laplace as in Canonne, Kamath, Steinke (The Discrete Gaussian for Differential Privacy,
NeurIPS 2020), here of base 2 in steps, because its probabilities are powers of two and bits give them exactly.
With b = 2^k between 0.6 and 1.2 sigma, or 1 if sigma is below 1.7, a proposal has the magnitude u + b v, u uniform
below b and v geometric with P(v) = 2^-(v + 1), and a sign. It is accepted with probability

    exp(v log 2 - (u + b v)^2 / 2 sigma^2 - c),    c = max over v of v log 2 - (b v)^2 / 2 sigma^2,

and zero with a minus never. That takes 1.7 to 2.0 proposals for a draw.

How exact. A proposal is accepted if a random number below 1 is below that probability. The number's first 64 bits are
compared with the probability in double precision, and that decides unless the two are closer than 2^-40, which is more
than any double can be off by here. What it does not decide, one proposal in 2^39, is decided by 256 bits and 100
decimal digits. So the distance in total variation of a draw from N_Z(0, sigma^2) has three parts (`sampling_error`):
2^-250 for the decisions, at most 2^-220 for v, which ends at 30 or more, and, because a block cipher is a permutation,
the birthday bound of the blocks that the draws of one key take. Beyond that, AES-256 is assumed to be a pseudorandom
permutation.

What it costs in time depends on how many proposals were refused, which is independent of the draws.
"""

import math
import secrets
from decimal import Context, Decimal
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.primitives.prg import KEY_BYTES, MAX_STREAM_BYTES, Keystream

SMALLEST: Final = 0.5
LARGEST: Final = 2.0**52
Draws: TypeAlias = npt.NDArray[np.int64]

_CLOSE: Final = 2.0**-40
_NARROW: Final = 33
"""Up to so many bits of u, one word has them all: u, the sign, and 30 bits for v."""
_PIECE: Final = 1 << 15
"""Proposals at a time: their arrays stay in the cache."""
_MORE_WORDS: Final = 3
_BLOCKS: Final = 128
"""Of 16 bytes, for a draw at the most: one that is drawn by itself takes 100, one of many takes 4."""
_DIGITS: Final = Context(prec=100)
_ONE: Final = np.uint64(1)


def discrete_gaussian(sigma: float, count: int, key: bytes | None = None) -> Draws:
    """`count` independent draws of N_Z(0, sigma^2) as signed integers. `key`: 256 secret bits; None: fresh ones."""
    return _Sampler(sigma, secrets.token_bytes(KEY_BYTES) if key is None else key).draws(count)


def sampling_error(draws: int) -> float:
    """How far so many draws, of any number of calls, are from independent N_Z(0, sigma^2), in total variation."""
    blocks = float(_BLOCKS * draws)
    birthday = blocks * min(blocks, float(MAX_STREAM_BYTES // 16)) * 2.0**-129
    return draws * (_BLOCKS * 2.0**-250 + 2.0**-220) + birthday


class _Sampler:
    """The draws of one key. Made and thrown away within a call."""

    __slots__ = ("_bits", "_offset", "_peak", "_scale", "_sigma", "_stream")

    def __init__(self, sigma: float, key: bytes) -> None:
        if not SMALLEST <= sigma <= LARGEST:
            raise ValueError(f"discrete Gaussian noise has a deviation between {SMALLEST:g} and 2^52, not {sigma:g}")
        self._sigma, self._stream = sigma, Keystream(key)
        self._bits = max(0, math.ceil(math.log2(0.6 * sigma)))
        self._peak = highest(sigma, self._bits)
        self._offset, self._scale = float(self._peak), math.sqrt(0.5) / sigma

    def __repr__(self) -> str:
        return "_Sampler()"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a sampler is not serialised")

    def draws(self, count: int) -> Draws:
        found = np.empty(count, dtype=np.int64)
        done = 0
        while done < count:
            accepted = self._piece(min(_PIECE, 2 * (count - done) + 64))[: count - done]
            found[done : done + len(accepted)] = accepted
            done += len(accepted)
        return found

    def _piece(self, size: int) -> Draws:
        """The accepted ones of `size` proposals, in their order."""
        steps, below, negative = self._proposals(size)
        values = ((steps << np.uint64(self._bits)) + below).view(np.int64)
        chance = values * self._scale
        np.multiply(chance, chance, out=chance)
        np.subtract(steps * math.log(2), chance, out=chance)
        np.subtract(chance, self._offset, out=chance)
        np.exp(chance, out=chance)
        words = self._stream.words(size)
        # The first 53 bits of the word, which a double holds: what is cut off is far less than _CLOSE.
        chance -= (words >> np.uint64(11)) * 2.0**-53
        accepted = chance > 0
        for place in np.flatnonzero(np.abs(chance) < _CLOSE):
            accepted[place] = self.decide(int(steps[place]), int(values[place]), int(words[place]))
        accepted &= (values != 0) | ~negative
        np.negative(values, out=values, where=negative)
        return values[accepted]

    def _proposals(self, size: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
        """v, u and whether the sign is minus."""
        words = self._stream.words(size)
        below = words & np.uint64((1 << self._bits) - 1)
        if self._bits <= _NARROW:
            rest, left = words >> np.uint64(self._bits), 63 - self._bits
        else:
            rest, left = self._stream.words(size), 63
        negative = (rest & _ONE).astype(np.bool_)
        rest >>= _ONE
        rest |= _ONE << np.uint64(left)  # the end of v, whatever the bits are
        # The lowest bit that is set stands at v. As a double it is 2^v, and its exponent can be read off.
        lowest = (rest & (~rest + _ONE)).astype(np.float64)
        steps = (lowest.view(np.uint64) >> np.uint64(52)) - np.uint64(1023)
        return steps, below, negative

    def decide(self, steps: int, magnitude: int, word: int) -> bool:
        """Whether a proposal is accepted that doubles cannot decide."""
        for extra in self._stream.words(_MORE_WORDS):
            word = (word << 64) | int(extra)
        chance = _DIGITS.exp(_DIGITS.subtract(log_weight(self._sigma, steps, magnitude), self._peak))
        return Decimal(word) < _DIGITS.multiply(chance, Decimal(1 << (64 * (1 + _MORE_WORDS))))


def log_weight(sigma: float, steps: int, magnitude: int) -> Decimal:
    """v log 2 - magnitude^2 / 2 sigma^2, to some 95 digits."""
    ratio = _DIGITS.divide(Decimal(magnitude), Decimal(sigma))
    growth = _DIGITS.multiply(Decimal(steps), _DIGITS.ln(Decimal(2)))
    return _DIGITS.subtract(growth, _DIGITS.divide(_DIGITS.multiply(ratio, ratio), Decimal(2)))


def highest(sigma: float, bits: int) -> Decimal:
    """c: the largest weight of a proposal. It is reached at u = 0 and, as b is at least 0.6 sigma, at v = 2 or less."""
    return max(log_weight(sigma, steps, steps << bits) for steps in range(4))
