"""Hidden queries: what their scores are, in fixed point, and how large they can be.

The score of a row e for a query q is an inner product, or minus the squared Euclidean distance:

    inner       e . q
    squared     -|e - q|^2 = 2 e . q - |e|^2 - |q|^2

Rows and queries are rounded to f fraction bits, so a score is a whole number of units of 2^-2f, without any truncation.
By Cauchy and Schwarz it is bounded by the declared norms of rows and queries. f is the largest with which a mean of
such scores, times L, fits a key (`keys`). A row that is longer than declared is shortened and counted: which norm is
announced does not come from its client, and a refusal would tell of its rows. Other scores (L1 distances, maxima) are
no such products, and are refused.
"""

import math
import struct
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.foundation.errors import EncodingOverflow

Integers = npt.NDArray[np.int64]
_FEWEST_BITS: Final = 6
_MOST_BITS: Final = 24
_MOST_DIMENSIONS: Final = 4096
_MOST_BRANCHES: Final = 4096
_LONGEST: Final = 2.0**30
_BELOW: Final = 1 - 1e-12
"""Of a norm: rounding must not lengthen a row that was shortened to it."""


class Similarity(Enum):
    INNER = "inner"
    SQUARED = "squared"

    @classmethod
    def named(cls, name: str) -> "Similarity":
        """`ValueError` in one line for a score that is no inner product."""
        try:
            return cls(name)
        except ValueError:
            known = ", ".join(one.value for one in cls)
            raise ValueError(f"a hidden query cannot be scored by '{name}': there are {known}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenShape:
    """Public parameters of the hidden queries of a batch."""

    similarity: Similarity
    dimensions: int
    row_norm: float
    """Longer rows are shortened to it."""
    query_norm: float
    """No query is longer."""
    branches: tuple[int, ...]
    """How many branches each query has: its score is the largest over its branches."""

    def __post_init__(self) -> None:
        if not 1 <= self.dimensions <= _MOST_DIMENSIONS:
            raise ValueError(f"{self.dimensions} dimensions, not in 1..{_MOST_DIMENSIONS}")
        if not all(0 < norm <= _LONGEST for norm in (self.row_norm, self.query_norm)):
            raise ValueError(f"norms of rows and queries are positive, and {_LONGEST:.0f} at most")
        if not self.branches or any(count < 1 for count in self.branches):
            raise ValueError("every query has at least one branch")
        if sum(self.branches) > _MOST_BRANCHES:
            raise ValueError(f"more than {_MOST_BRANCHES} branches of queries")

    def largest_score(self, bits: int) -> int:
        """In units of the product of two numbers of so many fraction bits; rounding may lengthen rows and queries."""
        longer = math.sqrt(self.dimensions) / 2
        row, query = (math.ceil(norm * 2.0**bits + longer) for norm in (self.row_norm, self.query_norm))
        return row * query if self.similarity is Similarity.INNER else (row + query) ** 2

    def fraction_bits(self, largest: int) -> int:
        """Of rows and queries each, so that no score exceeds `largest` units.

        `EncodingOverflow` if there are too few to rank anything.
        """
        for bits in range(_MOST_BITS, _FEWEST_BITS - 1, -1):
            if self.largest_score(bits) <= largest:
                return bits
        raise EncodingOverflow(
            f"rows of length {self.row_norm:g} and queries of length {self.query_norm:g} leave fewer than "
            f"{_FEWEST_BITS} fraction bits for hidden queries: smaller norms, fewer clients or fewer positions"
        )

    def rows(self, values: npt.NDArray[np.floating], bits: int) -> Integers:
        """Rows [n, dimensions] in fixed point, those that are too long shortened."""
        wide, lengths = _measured(values, self.dimensions, "row")
        kept = np.where(lengths > self.row_norm, self.row_norm * _BELOW / np.maximum(lengths, self.row_norm), 1.0)
        return _fixed(wide * kept[:, None], bits)

    def too_long(self, values: npt.NDArray[np.floating]) -> int:
        """How many of these rows are shortened."""
        _, lengths = _measured(values, self.dimensions, "row")
        return int((lengths > self.row_norm).sum())

    def queries(self, values: npt.NDArray[np.floating], bits: int) -> Integers:
        """Queries [all branches, dimensions] in fixed point."""
        if len(values) != sum(self.branches):
            raise ValueError(f"{len(values)} branches of queries, where there are {sum(self.branches)}")
        wide, lengths = _measured(values, self.dimensions, "query")
        longest = float(lengths.max(initial=0.0))
        if longest > self.query_norm:
            raise EncodingOverflow(f"a query of length {longest:g}, longer than the declared {self.query_norm:g}")
        return _fixed(wide, bits)

    def encode(self) -> bytes:
        """Everything that clients must agree on."""
        numbers = struct.pack("<Qdd", self.dimensions, self.row_norm, self.query_norm)
        return self.similarity.value.encode() + b"\0" + numbers + struct.pack(f"<{len(self.branches)}Q", *self.branches)


def _measured(
    values: npt.NDArray[np.floating], dimensions: int, what: str
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """In double precision, and the lengths."""
    if values.ndim != 2 or values.shape[1] != dimensions:
        raise ValueError(f"{what} of shape {values.shape}, where there are {dimensions} dimensions")
    wide = values.astype(np.float64)
    if not np.isfinite(wide).all():
        raise EncodingOverflow(f"a {what} that is not finite")
    return wide, np.sqrt(np.square(wide).sum(axis=1))


def _fixed(values: npt.NDArray[np.float64], bits: int) -> Integers:
    return np.rint(values * float(1 << bits)).astype(np.int64)
