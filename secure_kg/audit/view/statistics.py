"""Statistical tests on what should be uniform: exact enough to accuse on, cheap enough for every upload of a run.

All give a p-value: the probability of a result at least as odd if the values were uniform and independent. Several
tests of the same values count as one by Bonferroni: the smallest p-value, times their number. Thousands of uploads are
tested in an audit, so a single test accuses at `ALARM` only; even a million tests then raise a false alarm with
probability below 0.001.

Field elements are the numbers below p = 2^61 - 1. Of the 2^61 numbers of 61 bits only p itself is none, so every window
of w bits is uniform up to a share of 2^(w-61), which is less than these tests can see.

`bits`: of elements of a ring, if they are fewer than those of the type that holds them.

Tails are from `scipy.special`: `scipy.stats` agrees to eight digits, but is slow to import and on short vectors.
"""

import math
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import special

ALARM: Final = 1e-9
LEAST_BYTES: Final = 2560
"""Ten expected in each of 256 cells; below that the chi-square test is not to be trusted."""
LEAST_TOPS: Final = 3200
"""A hundred expected in each of 32 cells; with so few cells, fewer in each would make the far tail too heavy."""
_MOST_ENTRIES: Final = 1 << 20
"""Of a vector; a million tells as much as a hundred million."""
_FIELD: Final = (1 << 61) - 1
_FIELD_BITS: Final = 61
_FIELD_BYTES: Final = 7
"""Whole bytes of a field element; on top of them are five more bits."""
_TOPS: Final = 1 << (_FIELD_BITS - 8 * _FIELD_BYTES)
_BITS_OF_BYTES: Final = (np.arange(256)[:, None] >> np.arange(8)) & 1
"""[256, 8]: the bits of each byte, the lowest first."""

Words = npt.NDArray[np.unsignedinteger]
Histogram = npt.NDArray[np.int64]
"""[bytes of a word, 256]: how often each byte occurred at each place, the lowest first. Several vectors' add up."""


def byte_histogram(words: Words) -> Histogram:
    little = np.ascontiguousarray(words[:_MOST_ENTRIES], dtype=words.dtype.newbyteorder("<"))
    places = little.view(np.uint8).reshape(len(little), words.dtype.itemsize)
    return np.array([np.bincount(place, minlength=256) for place in places.T], dtype=np.int64)


def small_p(words: Words, in_field: bool, bits: int | None = None) -> float:
    """Whether too many values lie near zero, on either side of it: exact, for vectors of any length.

    Of uniform values 1 in 128 lies within 1/256 of the group's size from zero; of numbers in clear nearly all do.
    """
    near = int(np.count_nonzero(np.abs(_signed(words[:_MOST_ENTRIES], in_field, bits)) < 1 / 256))
    return float(special.bdtrc(near - 1, min(len(words), _MOST_ENTRIES), 1 / 128))


def odd_p(words: Words, in_field: bool, bits: int | None = None) -> float:
    """All tests of this module that are cheap: `small_p`, `edges_p` and `uniform_p`."""
    even = uniform_p(byte_histogram(words), in_field, bits)
    return _together(small_p(words, in_field, bits), edges_p(words, in_field, bits), even)


def uniform_p(histogram: Histogram, in_field: bool, bits: int | None = None) -> float:
    """Every bit by itself, exact for any number of values; of many, their bytes and top bits by chi-square too."""
    count = int(histogram[0].sum())
    if count == 0:
        return 1.0
    if in_field and len(histogram) <= _FIELD_BYTES:
        return 0.0  # words that are too narrow for the field
    if in_field and histogram[_FIELD_BYTES, _TOPS:].any():
        return 0.0  # no element of the field has more than 61 bits
    used = _FIELD_BITS if in_field else bits or 8 * len(histogram)
    ones = (histogram @ _BITS_OF_BYTES).reshape(-1)
    if ones[used:].any():
        return 0.0  # no element has bits there
    found = [_both_tails(ones[:used], count, 0.5)]
    whole = histogram[: used // 8]
    if whole.sum() >= LEAST_BYTES:
        found.append(_even_p(whole.sum(axis=0)))
    if in_field and count >= LEAST_TOPS:
        found.append(_even_p(histogram[_FIELD_BYTES, :_TOPS]))
    return _together(*found)


def edges_p(words: Words, in_field: bool, bits: int | None = None) -> float:
    """Whether the least or the largest value is too near to or too far from its end of the group: exact.

    The largest of n values from half of the group gives 2^-n.
    """
    values = words[:_MOST_ENTRIES]
    if not len(values):
        return 1.0
    size = _size(words, in_field, bits)
    gaps = int(values.min()), size - 1 - int(values.max())
    return _together(*(_gap_p(gap, len(values), size) for gap in gaps))


def ranges_p(words: Words, in_field: bool) -> float:
    """Whether too many or too few values lie within 2^b of either end of the group, for any b: exact.

    This finds values of which only a part comes from a range that is too small.
    """
    ordered = np.sort(words.astype(np.uint64))
    size = _size(words, in_field)
    limits = [1 << bit for bit in range(size.bit_length() - 1)]
    below = np.searchsorted(ordered, np.array(limits, dtype=np.uint64))
    above = len(ordered) - np.searchsorted(ordered, np.array([size - limit for limit in limits], dtype=np.uint64))
    shares = np.array([limit / size for limit in limits])
    return _together(*(_both_tails(counts, len(ordered), shares) for counts in (below, above)))


def repeats_p(words: Words, in_field: bool) -> float:
    """Whether values come twice more often than by chance: pairs of equal values are as good as Poisson distributed."""
    pairs = len(words) * (len(words) - 1) / 2
    repeated = len(words) - len(np.unique(words))
    return float(special.pdtrc(repeated - 1, pairs / _size(words, in_field))) if repeated else 1.0


def secrets_p(words: Words, in_field: bool) -> float:
    """Every test of this module, for values that are few and must be uniform by themselves."""
    return _together(odd_p(words, in_field), ranges_p(words, in_field), repeats_p(words, in_field))


def _together(*found: float) -> float:
    return min(1.0, len(found) * min(found))


def _both_tails(counts: npt.NDArray[np.int64], total: int, share: float | npt.NDArray[np.float64]) -> float:
    """Of binomial counts the oddest, for having looked at all."""
    tails = np.minimum(special.bdtr(counts, total, share), special.bdtrc(counts - 1, total, share))
    return float(min(1.0, 2 * tails.min() * len(counts)))


def _even_p(cells: npt.NDArray[np.int64]) -> float:
    """Chi-square for cells that are equally likely."""
    expected, freedom = cells.sum() / len(cells), len(cells) - 1
    statistic = float(((cells - expected) ** 2).sum() / expected)
    # Both tails: values that are too even are no more random than values that are too odd.
    return float(min(1.0, 2 * min(special.chdtrc(freedom, statistic), special.chdtr(freedom, statistic))))


def _gap_p(gap: int, count: int, size: int) -> float:
    """The least of `count` uniform numbers below `size`, both tails."""
    at_least = math.exp(count * _log_share_from(gap, size))
    at_most = -math.expm1(count * _log_share_from(gap + 1, size))
    return min(1.0, 2 * min(at_least, at_most))


def _log_share_from(number: int, size: int) -> float:
    """The logarithm of the share of numbers below `size` that are `number` or more, exact at both ends."""
    if number >= size:
        return -math.inf
    return math.log1p(-number / size) if 2 * number < size else math.log((size - number) / size)


def _size(words: Words, in_field: bool, bits: int | None = None) -> int:
    return _FIELD if in_field else 1 << (bits or 8 * words.dtype.itemsize)


def correlation_p(first: Words, second: Words, in_field: bool, bits: int | None = None) -> tuple[float, float] | None:
    """The correlation of two vectors entry by entry, and its p-value; None for fewer than 64 entries."""
    count = min(len(first), len(second), _MOST_ENTRIES)
    if count < 64:
        return None
    left, right = (_centred(words[:count], in_field, bits) for words in (first, second))
    correlation = float(left @ right / np.sqrt(float(left @ left) * float(right @ right) or 1.0))
    return correlation, float(2 * special.ndtr(-abs(correlation) * np.sqrt(count)))


def difference(first: Words, second: Words, in_field: bool, bits: int | None = None) -> Words:
    """First minus second in their group: what is left if both lay under the same mask."""
    count = min(len(first), len(second), _MOST_ENTRIES)
    left, right = first[:count], second[:count]
    if not in_field:
        wrapped: Words = left - right
        return wrapped if bits is None else wrapped & wrapped.dtype.type((1 << bits) - 1)
    modulus = np.uint64(_FIELD)
    return np.where(left >= right, left - right, left + (modulus - right))


def _signed(words: Words, in_field: bool, bits: int | None = None) -> npt.NDArray[np.float64]:
    """In -0.5 ... 0.5, as the nearest numbers to zero that stand for the group's elements."""
    shares = _centred(words, in_field, bits) + 0.5
    return np.where(shares < 0.5, shares, shares - 1.0)


def _centred(words: Words, in_field: bool, bits: int | None = None) -> npt.NDArray[np.float64]:
    return words.astype(np.float64) / float(_size(words, in_field, bits)) - 0.5
