"""Statistical tests on what should be uniform: exact enough to accuse on, cheap enough for every upload of a run.

All give a p-value: the probability of a result at least as odd if the values were uniform and independent. Thousands of
uploads are tested in an audit, so a single test accuses at `ALARM` only; even a million tests then raise a false alarm
with probability below 0.001.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import stats

ALARM: Final = 1e-9
LEAST_BYTES: Final = 2560
"""Ten expected in each of 256 cells; below that the chi-square test is not to be trusted."""
_MOST_ENTRIES: Final = 1 << 20
"""Of a vector; a million tells as much as a hundred million."""
_FIELD_BYTES: Final = 7
"""Elements of the prime field of 2^61 - 1 are uniform in their low 56 bits, up to 2^-61."""

Words = npt.NDArray[np.unsignedinteger]
Histogram = npt.NDArray[np.int64]
"""[256]: how often each byte occurred."""


def byte_histogram(words: Words, in_field: bool) -> Histogram:
    """Of the bytes of ring elements, or of those bytes of field elements that are uniform."""
    little = np.ascontiguousarray(words[:_MOST_ENTRIES], dtype=words.dtype.newbyteorder("<"))
    planes = little.view(np.uint8).reshape(len(little), words.dtype.itemsize)
    if in_field:
        planes = planes[:, :_FIELD_BYTES]
    return np.bincount(planes.reshape(-1), minlength=256).astype(np.int64)


def small_p(words: Words, in_field: bool) -> float:
    """Whether too many values lie near zero, on either side of it: exact, for vectors of any length.

    Of uniform values 1 in 128 lies within 1/256 of the group's size from zero; of numbers in clear nearly all do.
    """
    near = int(np.count_nonzero(np.abs(_signed(words[:_MOST_ENTRIES], in_field)) < 1 / 256))
    return float(stats.binom.sf(near - 1, min(len(words), _MOST_ENTRIES), 1 / 128))


def odd_p(words: Words, in_field: bool) -> float:
    """The smaller p-value of both tests, for having made two."""
    by_bytes = uniform_p(byte_histogram(words, in_field))
    return min(1.0, 2 * min(small_p(words, in_field), 1.0 if by_bytes is None else by_bytes))


def uniform_p(histogram: Histogram) -> float | None:
    """Chi-square with 255 degrees of freedom; None for too few bytes."""
    total = int(histogram.sum())
    if total < LEAST_BYTES:
        return None
    expected = total / 256
    statistic = float(((histogram - expected) ** 2).sum() / expected)
    # Both tails: values that are too even are no more random than values that are too odd.
    return float(min(1.0, 2 * min(stats.chi2.sf(statistic, 255), stats.chi2.cdf(statistic, 255))))


def correlation_p(first: Words, second: Words, in_field: bool) -> tuple[float, float] | None:
    """The correlation of two vectors entry by entry, and its p-value; None for fewer than 64 entries."""
    count = min(len(first), len(second), _MOST_ENTRIES)
    if count < 64:
        return None
    left, right = (_centred(words[:count], in_field) for words in (first, second))
    correlation = float(left @ right / np.sqrt(float(left @ left) * float(right @ right) or 1.0))
    return correlation, float(2 * stats.norm.sf(abs(correlation) * np.sqrt(count)))


def difference(first: Words, second: Words, in_field: bool) -> Words:
    """First minus second in their group: what is left if both lay under the same mask."""
    count = min(len(first), len(second), _MOST_ENTRIES)
    left, right = first[:count], second[:count]
    if not in_field:
        return left - right
    modulus = np.uint64((1 << 61) - 1)
    return np.where(left >= right, left - right, left + (modulus - right))


def _signed(words: Words, in_field: bool) -> npt.NDArray[np.float64]:
    """In -0.5 ... 0.5, as the nearest numbers to zero that stand for the group's elements."""
    shares = _centred(words, in_field) + 0.5
    return np.where(shares < 0.5, shares, shares - 1.0)


def _centred(words: Words, in_field: bool) -> npt.NDArray[np.float64]:
    scale = float((1 << 61) - 1) if in_field else 2.0 ** (8 * words.dtype.itemsize)
    return words.astype(np.float64) / scale - 0.5
