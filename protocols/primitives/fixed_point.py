"""Real numbers as ring elements such that a sum over all parties cannot wrap.

A value is clipped to ±bound, multiplied by 2^fraction_bits and rounded to the nearest integer. The constructor refuses
parameters under which `parties` worst-case values could leave the signed range of the ring, so a decoded sum is the
exact sum of the rounded inputs. Error of one value: at most half a unit, 2^-(fraction_bits + 1), plus what clipping
took; clipped values are counted, never silent.
"""

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.foundation.errors import EncodingOverflow
from protocols.primitives.group import Ring, RingVector

_BLOCK: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class Encoded:
    """A vector ready for masking, with what its encoding lost."""

    vector: RingVector = field(repr=False)
    clipped: int
    """How many values lay outside ±bound."""
    max_error: float
    """Largest rounding error among the values that were not clipped."""


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """The encoding for sums of up to `parties` vectors with entries in ±bound."""

    ring: Ring
    bound: float
    parties: int
    fraction_bits: int
    margin: float = 0.0
    """How much a party may add to an encoded value, e.g. as noise. Values are clipped to the bound all the same."""

    def __post_init__(self) -> None:
        if self.parties < 1 or not 0 < self.bound < float("inf") or not 0 <= self.fraction_bits < 53:
            raise EncodingOverflow(
                f"no encoding for {self.parties} parties, bound {self.bound}, {self.fraction_bits} fraction bits"
            )
        if not 0 <= self.margin < float("inf"):
            raise EncodingOverflow(f"no encoding with a margin of {self.margin}")
        # Beyond 2^53 a double no longer holds every integer and the rounding error would be understated.
        if self.bound * self.scale >= 1 << 53:
            raise EncodingOverflow(f"±{self.bound:g} with {self.fraction_bits} fraction bits exceeds double precision")
        if self.parties * (self._largest + math.ceil(self.margin * self.scale)) >= 1 << (self.ring.bits - 1):
            raise EncodingOverflow(
                f"{self.parties} values of ±{self.bound:g} with {self.fraction_bits} fraction bits "
                f"could overflow {self.ring.bits} bits"
            )

    @staticmethod
    def widest(ring: Ring, bound: float, parties: int, margin: float = 0.0) -> "FixedPoint":
        """The encoding with the most fraction bits that cannot overflow."""
        return _widest(ring, bound, parties, margin)

    @property
    def scale(self) -> float:
        return float(1 << self.fraction_bits)

    @property
    def unit(self) -> float:
        """The distance of two neighbouring encoded values."""
        return 1.0 / self.scale

    @property
    def largest_value(self) -> float:
        """No encoded value is larger, so no mean of encoded values is."""
        return self._largest * self.unit

    @property
    def _largest(self) -> int:
        return int(np.rint(self.bound * self.scale))

    def encode(self, values: npt.NDArray[np.floating]) -> Encoded:
        """Encode a flat vector. Values that are not finite raise `EncodingOverflow`: they have no place in a sum."""
        vector = np.empty(len(values), dtype=self.ring.dtype)
        return self.encode_into(values, vector)

    def encode_into(self, values: npt.NDArray[np.floating], vector: RingVector) -> Encoded:
        """The same into a given vector of the same length, block by block so that the work stays in the cache."""
        self.ring.require_room(vector, len(values))
        # Scaling by a power of two, rounding and their difference are exact in the precision the values have already.
        if values.dtype not in (np.float32, np.float64):
            values = values.astype(np.float64)
        signed: npt.NDArray[np.signedinteger] = vector.view(f"<i{self.ring.dtype.itemsize}")
        scratch = np.empty((2, min(_BLOCK, len(values))), dtype=values.dtype)
        clipped, error = 0, 0.0
        with np.errstate(over="ignore", invalid="ignore"):  # whatever is not finite is looked at below
            for start in range(0, len(values), _BLOCK):
                block = slice(start, start + _BLOCK)
                block_clipped, block_error = self._encode_block(values[block], signed[block], scratch)
                clipped += block_clipped
                error = max(error, block_error)
                self.ring.reduce(vector[block])
        return Encoded(vector=vector, clipped=clipped, max_error=error * self.unit)

    def _encode_block(
        self,
        values: npt.NDArray[np.floating],
        signed: npt.NDArray[np.signedinteger],
        scratch: npt.NDArray[np.floating],
    ) -> tuple[int, float]:
        """How many values were clipped, and the largest rounding error of the others in units."""
        scaled, rounded = scratch[0, : len(values)], scratch[1, : len(values)]
        np.multiply(values, values.dtype.type(self.scale), out=scaled)
        np.rint(scaled, out=rounded)
        # Strictly below, so that it does not matter whether the limit itself has a place in this precision. Values that
        # are not finite fail the comparison too.
        if max(np.maximum.reduce(rounded), -np.minimum.reduce(rounded)) < self._largest:
            np.copyto(signed, rounded, casting="unsafe")
            np.subtract(rounded, scaled, out=scaled)
            return 0, float(max(np.maximum.reduce(scaled), -np.minimum.reduce(scaled)))
        return self._encode_beyond(values.astype(np.float64), signed)

    def _encode_beyond(
        self, values: npt.NDArray[np.float64], signed: npt.NDArray[np.signedinteger]
    ) -> tuple[int, float]:
        """The same for a block with values at or beyond the bound."""
        if not np.isfinite(values).all():
            raise EncodingOverflow("a value to be summed is not finite")
        scaled = values * self.scale  # a finite value that scales to infinity is clipped like any other
        rounded = np.rint(scaled)
        outside = np.abs(rounded) > self._largest
        limit = float(self._largest)
        np.copyto(signed, np.clip(rounded, -limit, limit), casting="unsafe")
        inside = ~outside
        error = np.abs(rounded[inside] - scaled[inside]).max(initial=0.0)
        return int(np.count_nonzero(outside)), float(error)

    def decode(self, total: RingVector) -> npt.NDArray[np.float64]:
        """The sum as real numbers (float64, exact below 2^53 units)."""
        decoded: npt.NDArray[np.float64] = self.ring.signed(total).astype(np.float64) * self.unit
        return decoded


@lru_cache(maxsize=64)  # every use of a layout asks for its encoding
def _widest(ring: Ring, bound: float, parties: int, margin: float) -> FixedPoint:
    for fraction_bits in range(min(52, ring.bits - 2), -1, -1):
        try:
            return FixedPoint(ring, bound, parties, fraction_bits, margin)
        except EncodingOverflow:
            continue
    raise EncodingOverflow(f"{parties} values of ±{bound:g} do not fit {ring.bits} bits")
