"""The group Z_t of residues modulo a prime t below 2^32, for masks beside a cipher whose plaintexts are such residues.

As in `protocols.primitives.group`: a uniformly random vector of the group added to any fixed one is uniformly random.

Misuse: as there. `add_into` and `subtract_into` take elements for granted; what comes from outside goes through
`require` first.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from protocols.primitives.group import Group, GroupVector

# Entries that are added up in words of 64 bits at a time, so that these stay in the cache.
_BLOCK: Final = 1 << 14


@dataclass(frozen=True, slots=True)
class Residues(Group):
    """Z_t. Values are canonical, in [0, t); every method expects and gives such values."""

    modulus: int

    def __post_init__(self) -> None:
        # Two values and their sum have a place in 64 bits, and one value in 32, whatever the modulus.
        if not 2 <= self.modulus < 1 << 32:
            raise ValueError(f"residues modulo {self.modulus} do not fit 32 bits")

    @property
    def name(self) -> str:
        return f"Z_{self.modulus}"

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype("<u4")

    def require(self, vector: GroupVector, length: int) -> None:
        if vector.dtype != self.dtype or vector.shape != (length,):
            raise ValueError(f"{vector.dtype}{vector.shape} is not a vector of {length} entries modulo {self.modulus}")
        if vector.max(initial=0) >= self.modulus:
            raise ValueError(f"a vector with an entry of {self.modulus} or more is not a vector modulo it")

    def add_into(self, total: GroupVector, vector: GroupVector) -> None:
        self._combine_into(total, vector, subtract=False)

    def subtract_into(self, total: GroupVector, vector: GroupVector) -> None:
        self._combine_into(total, vector, subtract=True)

    def _combine_into(self, total: GroupVector, vector: GroupVector, *, subtract: bool) -> None:
        """Of s and s - t, or of s and s + t, the one that is out of range has wrapped, in 64 bits, or is the larger."""
        if total.shape != vector.shape:
            raise ValueError(f"vectors of {total.shape} and {vector.shape}")
        combine, correct = (np.subtract, np.add) if subtract else (np.add, np.subtract)
        modulus = np.uint64(self.modulus)
        words = np.empty((2, min(len(total), _BLOCK)), dtype=np.uint64)
        for start in range(0, len(total), _BLOCK):
            part = total[start : start + _BLOCK]
            combined, corrected = words[0, : len(part)], words[1, : len(part)]
            combine(part, vector[start : start + _BLOCK], out=combined, dtype=np.uint64)
            correct(combined, modulus, out=corrected)
            np.minimum(combined, corrected, out=combined)
            part[...] = combined

    def from_words(self, words: GroupVector) -> GroupVector:
        """As many low bits of each word as t has; a word in which they give t or more is left out."""
        np.bitwise_and(words, np.uint32((1 << self.modulus.bit_length()) - 1), out=words)
        fitting = words < self.modulus
        return words if fitting.all() else words[fitting]
