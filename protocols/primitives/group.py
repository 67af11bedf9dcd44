"""The groups masks live in, on numpy arrays: the rings Z_2^b for b from 16 to 64, and the prime field F_(2^61-1).

A uniformly random vector of a group added to any fixed one is uniformly random again: that is what hides a masked
input. It holds in the group only. Adding masks as integers or floats would leave the input visible in the carries.

Misuse: `add_into`, `subtract_into` and the field's arithmetic take elements for granted and check no values. Whatever
comes from outside goes through `require` first: an entry at or above the field's modulus gives wrong sums in silence.
"""

import secrets
from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.primitives.packing import entries_in, pack, packed_bytes, unpack

RingVector: TypeAlias = npt.NDArray[np.uint16] | npt.NDArray[np.uint32] | npt.NDArray[np.uint64]
"""Shape (length,), unsigned, of the narrowest type that holds an element; every entry below 2^bits."""

GroupVector: TypeAlias = RingVector
"""Shape (length,), unsigned; elements of any of the groups."""

VECTOR_TYPES: Final = ("<u1", "<u2", "<u4", "<u8")
"""Of arrays as which vectors travel; that of single bytes is a stream of bits."""

FieldArray: TypeAlias = npt.NDArray[np.uint64]
"""Any shape; elements of the prime field, each below `MODULUS`."""

MODULUS: Final = (1 << 61) - 1
_P: Final = np.uint64(MODULUS)
_LOW_30: Final = np.uint64((1 << 30) - 1)
_LOW_31: Final = np.uint64((1 << 31) - 1)
_LOW_32: Final = np.uint64((1 << 32) - 1)
_TWO_TO_32: Final = np.array(1 << 32, dtype=np.uint64)
_30: Final = np.uint64(30)
_31: Final = np.uint64(31)
_32: Final = np.uint64(32)
_61: Final = np.uint64(61)
# Entries whose sums are brought below the modulus at a time, so that the second array needed for it stays in the cache.
_BLOCK: Final = 1 << 14


class Group(ABC):
    """A finite group of numbers, as wide as the unsigned little-endian type that holds them."""

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """Enters key derivation, so that no two groups ever share a keystream."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """Little-endian, so that a keystream can be read as words of this type."""

    @property
    def element_bytes(self) -> int:
        return self.dtype.itemsize

    def zeros(self, length: int) -> GroupVector:
        return np.zeros(length, dtype=self.dtype)

    def on_wire(self, length: int) -> tuple[int, int]:
        """A vector of this length as it travels: how many entries its array has, and how many bytes each of them."""
        return length, self.element_bytes

    def to_wire(self, vector: GroupVector) -> npt.NDArray[Any]:
        """A vector of this group as it travels: as it is, unless an element has fewer bits than its type."""
        return vector

    def from_wire(self, array: npt.NDArray[Any], length: int) -> GroupVector:
        """What has travelled, as a vector of this group with `length` entries. `ValueError` if it is none."""
        self.require(array, length)
        return array

    def length_on_wire(self, array: npt.NDArray[Any]) -> int:
        """How many entries a vector has that travels as this array."""
        return len(array)

    @abstractmethod
    def require(self, vector: GroupVector, length: int) -> None:
        """Raise `ValueError` unless `vector` is a vector of this group with `length` entries."""

    @abstractmethod
    def add_into(self, total: GroupVector, vector: GroupVector) -> None:
        """total += vector in the group, without a temporary of their length."""

    @abstractmethod
    def subtract_into(self, total: GroupVector, vector: GroupVector) -> None:
        """total -= vector in the group, without a temporary of their length."""

    @abstractmethod
    def from_words(self, words: GroupVector) -> GroupVector:
        """Elements from random words of this dtype, in order and at most as many; `words` is overwritten.

        Uniform and independent words give exactly uniform and independent elements. A word that would favour an
        element is left out, so the caller asks for further words until it has enough.
        """


NARROWEST: Final = 16
WIDEST: Final = 64


@dataclass(frozen=True, slots=True)
class Ring(Group):
    """Z_2^bits, from 16 to 64 bits.

    Of 16, 32 and 64 bits the unsigned arithmetic wraps by definition of the type. Of other widths an element lies in
    the low bits of the next wider type, whose arithmetic is that of the ring once the bits above are cleared. Such
    vectors travel as a stream of their bits (`protocols.primitives.packing`).
    """

    bits: int

    def __post_init__(self) -> None:
        if not NARROWEST <= self.bits <= WIDEST:
            raise ValueError(f"a ring of {self.bits} bits is not available: {NARROWEST} to {WIDEST}")

    @property
    def name(self) -> str:
        return f"Z_2^{self.bits}"

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype("<u2" if self.bits <= 16 else "<u4" if self.bits <= 32 else "<u8")

    @property
    def packed(self) -> bool:
        """Whether an element has fewer bits than the type that holds it."""
        return self.bits < 8 * self.dtype.itemsize

    @property
    def largest(self) -> np.unsignedinteger:
        """The element with all bits set."""
        number: np.unsignedinteger = self.dtype.type((1 << self.bits) - 1)
        return number

    def require_room(self, vector: RingVector, length: int) -> None:
        """As `require`, of memory that is to be written: whatever stands there will do."""
        if vector.dtype != self.dtype or vector.shape != (length,):
            raise ValueError(f"{vector.dtype}{vector.shape} is not a vector of {length} entries modulo 2^{self.bits}")

    def require(self, vector: RingVector, length: int) -> None:
        self.require_room(vector, length)
        if self.packed and vector.max(initial=0) > self.largest:
            raise ValueError(f"a vector with an entry of 2^{self.bits} or more is not one modulo 2^{self.bits}")

    def on_wire(self, length: int) -> tuple[int, int]:
        return (packed_bytes(length, self.bits), 1) if self.packed else (length, self.element_bytes)

    def to_wire(self, vector: RingVector) -> npt.NDArray[Any]:
        return pack(vector, self.bits) if self.packed else vector

    def from_wire(self, array: npt.NDArray[Any], length: int) -> RingVector:
        if self.packed:
            return unpack(array, length, self.bits, self.dtype)
        self.require(array, length)
        return array

    def length_on_wire(self, array: npt.NDArray[Any]) -> int:
        return entries_in(len(array), self.bits) if self.packed else len(array)

    def add_into(self, total: RingVector, vector: RingVector) -> None:
        np.add(total, vector, out=total)
        self.reduce(total)

    def subtract_into(self, total: RingVector, vector: RingVector) -> None:
        np.subtract(total, vector, out=total)
        self.reduce(total)

    def from_words(self, words: RingVector) -> RingVector:
        """The low bits of each word: of uniform words, uniform elements."""
        self.reduce(words)
        return words

    def reduce(self, words: RingVector) -> None:
        """Any words of this type as elements, in place."""
        if self.packed:
            np.bitwise_and(words, self.largest, out=words)

    def signed(self, vector: RingVector) -> npt.NDArray[np.signedinteger]:
        """Every element as the number nearest to zero that it stands for."""
        signed: npt.NDArray[np.signedinteger] = vector.view(f"<i{self.dtype.itemsize}")
        if not self.packed:
            return signed
        above = 8 * self.dtype.itemsize - self.bits
        return (signed << above) >> above


@dataclass(frozen=True, slots=True)
class PrimeField(Group):
    """The field of p = 2^61 - 1 elements. Values are canonical, in [0, p); every method expects and gives such values.

    `add`, `subtract` and `multiply` broadcast like numpy. Sums and differences are brought back below p by a minimum:
    of s and s - p, or of s and s + p, the one that is out of range has wrapped or is the larger one.
    """

    @property
    def name(self) -> str:
        return "F_2^61-1"

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype("<u8")

    def require(self, vector: GroupVector, length: int) -> None:
        if vector.dtype != self.dtype or vector.shape != (length,):
            raise ValueError(f"{vector.dtype}{vector.shape} is not a vector of {length} entries modulo 2^61-1")
        if vector.max(initial=0) >= _P:
            raise ValueError("a vector with an entry of 2^61-1 or more is not a vector of the field")

    def add_into(self, total: GroupVector, vector: GroupVector) -> None:
        self._combine_into(total, vector, subtract=False)

    def subtract_into(self, total: GroupVector, vector: GroupVector) -> None:
        self._combine_into(total, vector, subtract=True)

    @staticmethod
    def _combine_into(total: GroupVector, vector: GroupVector, *, subtract: bool) -> None:
        if total.shape != vector.shape:
            raise ValueError(f"vectors of {total.shape} and {vector.shape}")
        combine, correct = (np.subtract, np.add) if subtract else (np.add, np.subtract)
        corrected = np.empty(min(len(total), _BLOCK), dtype=np.uint64)
        for start in range(0, len(total), _BLOCK):
            part = total[start : start + _BLOCK]
            other = corrected[: len(part)]
            combine(part, vector[start : start + _BLOCK], out=part)
            correct(part, _P, out=other)
            np.minimum(part, other, out=part)

    def from_words(self, words: GroupVector) -> GroupVector:
        """The low 61 bits of each word; a word whose low 61 bits are p is left out.

        The 2^61 values of 61 bits are the p elements and p itself, which would stand for zero a second time.
        """
        np.bitwise_and(words, _P, out=words)
        # One word in 2^61 is left out: the copy is for the day it happens.
        return words if words.max(initial=0) < _P else words[words != _P]

    def uniform(self, shape: tuple[int, ...]) -> FieldArray:
        """Independent, exactly uniform elements from the operating system's randomness."""
        wanted = prod(shape)
        elements = np.empty(wanted, dtype=np.uint64)
        filled = 0
        while filled < wanted:
            words = np.frombuffer(bytearray(secrets.token_bytes(8 * (wanted - filled))), dtype=self.dtype)
            accepted = self.from_words(words)
            elements[filled : filled + len(accepted)] = accepted
            filled += len(accepted)
        return elements.reshape(shape)

    def add(self, left: FieldArray, right: FieldArray) -> FieldArray:
        return _smaller(np.add(left, right), np.subtract)

    def subtract(self, left: FieldArray, right: FieldArray) -> FieldArray:
        return _smaller(np.subtract(left, right), np.add)

    def multiply(self, left: FieldArray, right: FieldArray) -> FieldArray:
        """left * right, exact although the product of two elements has 122 bits.

        With a = a1 2^31 + a0 and b likewise: a b = a1 b1 2^62 + m 2^31 + a0 b0, where m = a1 b0 + a0 b1 < 2^62. As
        2^61 = 1 in the field, 2^62 = 2, and with m = m1 2^30 + m0 the middle term is m1 + m0 2^31. The four terms are
        below 2^61, 2^32, 2^61 and 2^62: their sum fits a word.
        """
        left_high, left_low = left >> _31, left & _LOW_31
        right_high, right_low = right >> _31, right & _LOW_31
        middle = left_high * right_low + left_low * right_high
        high = left_high * right_high
        return _reduced((high + high) + (middle >> _30) + ((middle & _LOW_30) << _31) + left_low * right_low)

    def sum(self, values: FieldArray) -> FieldArray:
        """The sum over the first axis, of up to 2^29 elements."""
        # Halves of 32 bits: so many of them are summed without leaving a word.
        low: FieldArray = np.add.reduce(values & _LOW_32, axis=0)
        high: FieldArray = np.add.reduce(values >> _32, axis=0)
        return self.add(_reduced(low), self.multiply(_reduced(high), _TWO_TO_32))

    def product(self, values: FieldArray) -> FieldArray:
        """The product over the first axis, which must not be empty."""
        while len(values) > 1:
            values = self._halved(values)
        last: FieldArray = values[0]
        return last

    def inverse(self, values: FieldArray) -> FieldArray:
        """1 / value for every entry; `ZeroDivisionError` if one is zero.

        One inversion for all: entries are multiplied in pairs up to the product of all, that is inverted, and on the
        way back the inverse of a pair times one of the two is the inverse of the other.
        """
        if not values.all():
            raise ZeroDivisionError("zero has no inverse in the field")
        levels = [values.reshape(-1)]
        while len(levels[-1]) > 1:
            levels.append(self._halved(levels[-1]))
        top = levels.pop()
        inverses = np.array([pow(int(entry), -1, MODULUS) for entry in top], dtype=np.uint64)  # one entry, or none
        while levels:
            level = levels.pop()
            half = len(level) // 2
            pairs = inverses[:half]
            inverses = np.concatenate(
                (self.multiply(pairs, level[half : 2 * half]), self.multiply(pairs, level[:half]), inverses[half:])
            )
        return inverses.reshape(values.shape)

    def _halved(self, values: FieldArray) -> FieldArray:
        """The products of the first half with the second, entry by entry; an odd last entry stays as it is."""
        half = len(values) // 2
        products = self.multiply(values[:half], values[half : 2 * half])
        return np.concatenate((products, values[2 * half :])) if len(values) % 2 else products


def _reduced(words: FieldArray) -> FieldArray:
    """Any words as field elements: 2^61 = 1, so the bits from the 61st on are added to those below."""
    return _smaller((words & _P) + (words >> _61), np.subtract)


def _smaller(values: FieldArray, correct: np.ufunc) -> FieldArray:
    # Named functions where a result may wrap: unlike the operators they do so in silence for a single value as well.
    smaller: FieldArray = np.minimum(values, correct(values, _P))
    return smaller
