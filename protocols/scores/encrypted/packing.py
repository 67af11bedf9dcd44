"""Words of 32 bits in the slots of large integers, such that integers can be added up without slots running over.

A slot has 32 bits and room for carries: of a addends, each below 2^32, the sum is below 2^(32 + ceil(log2 a)). The
slots of a sum of integers are then the sums of the slots, and their low 32 bits the sums modulo 2^32.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

WORD_BITS: Final = 32
_SPAN: Final = 5
"""Bytes that a word touches, wherever in a byte it begins: 32 + 7 bits."""


@dataclass(frozen=True, slots=True)
class Slots:
    """Slots for sums of `addends`, in integers of less than `bits` bits."""

    addends: int
    bits: int

    def __post_init__(self) -> None:
        if self.addends < 1 or self.bits < self.slot_bits:
            raise ValueError(f"no slot for sums of {self.addends} has room in {self.bits} bits")

    @property
    def slot_bits(self) -> int:
        return WORD_BITS + (self.addends - 1).bit_length()

    @property
    def per_integer(self) -> int:
        return self.bits // self.slot_bits

    @property
    def used_bits(self) -> int:
        """A sum of packed integers has no more."""
        return self.per_integer * self.slot_bits

    def integers(self, entries: int) -> int:
        """How many integers so many words take."""
        return -(-entries // self.per_integer)

    def pack(self, words: npt.NDArray[np.uint32]) -> list[int]:
        """Words in order, the first in the lowest slot; the last integer is filled up with zeros."""
        rows = self.integers(len(words))
        table = np.zeros((rows, self.per_integer), dtype=np.uint64)
        table.reshape(-1)[: len(words)] = words
        columns = np.zeros((self._bytes + _SPAN, rows), dtype=np.uint8)
        for slot, (first, shift) in enumerate(self._places):
            # The bits of a slot above its word are zero, so neighbours in one byte do not meet.
            shifted = table[:, slot] << np.uint64(shift)
            for byte in range(_SPAN):
                columns[first + byte] |= (shifted >> np.uint64(8 * byte)).astype(np.uint8)
        lines = np.ascontiguousarray(columns[: self._bytes].T)
        return [int.from_bytes(line.tobytes(), "little") for line in lines]

    def unpack(self, integers: Sequence[int], entries: int) -> npt.NDArray[np.uint32]:
        """The sums modulo 2^32; `OverflowError` for an integer that is no sum of packed ones."""
        if any(one.bit_length() > self.used_bits for one in integers):
            raise OverflowError(f"an integer of more than {self.used_bits} bits")
        joined = b"".join(int(one).to_bytes(self._bytes + _SPAN, "little") for one in integers)
        columns = np.frombuffer(joined, dtype=np.uint8).reshape(len(integers), self._bytes + _SPAN).T.astype(np.uint64)
        table = np.empty((len(integers), self.per_integer), dtype=np.uint32)
        for slot, (first, shift) in enumerate(self._places):
            word = columns[first] >> np.uint64(shift)
            for byte in range(1, _SPAN):
                word |= columns[first + byte] << np.uint64(8 * byte) >> np.uint64(shift)
            table[:, slot] = word.astype(np.uint32)
        return table.reshape(-1)[:entries]

    @property
    def _bytes(self) -> int:
        return -(-self.used_bits // 8)

    @property
    def _places(self) -> list[tuple[int, int]]:
        """Of every slot the byte and the bit of that byte where it begins."""
        return [divmod(slot * self.slot_bits, 8) for slot in range(self.per_integer)]
