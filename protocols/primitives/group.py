"""The rings Z_2^32 and Z_2^64 on numpy arrays: unsigned arithmetic that wraps by definition of the type.

A uniformly random ring vector added to any fixed one is uniformly random again: that is what hides a masked input.
It holds in the ring only. Adding masks as integers or floats would leave the input visible in the carries.
"""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

RingVector: TypeAlias = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]
"""Shape (length,), unsigned; arithmetic modulo 2^32 or 2^64."""


@dataclass(frozen=True, slots=True)
class Ring:
    """Z_2^bits. Vectors are little-endian unsigned arrays, so that a keystream can be read as ring elements."""

    bits: Literal[32, 64]

    def __post_init__(self) -> None:
        if self.bits not in (32, 64):
            raise ValueError(f"a ring of {self.bits} bits is not available: 32 or 64")

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(f"<u{self.bits // 8}")

    @property
    def element_bytes(self) -> int:
        return self.bits // 8

    def zeros(self, length: int) -> RingVector:
        return np.zeros(length, dtype=self.dtype)

    def require(self, vector: RingVector, length: int) -> None:
        """Raise `ValueError` unless `vector` is a vector of this ring with `length` entries."""
        if vector.dtype != self.dtype or vector.shape != (length,):
            raise ValueError(f"{vector.dtype}{vector.shape} is not a vector of {length} entries modulo 2^{self.bits}")

    def add_into(self, total: RingVector, vector: RingVector) -> None:
        """total += vector in the ring, without a temporary."""
        np.add(total, vector, out=total)

    def subtract_into(self, total: RingVector, vector: RingVector) -> None:
        """total -= vector in the ring, without a temporary."""
        np.subtract(total, vector, out=total)
