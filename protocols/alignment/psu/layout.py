"""Layout of a union table: its size, and the cells that belong to a tag. Public, and the same for all parties.

A table has three thirds, and a tag has one cell in each. Which one is a hash of the tag and the salt. The hash is no
cryptographic one and need not be: tags are pseudorandom, so whoever lacks the key of the tags cannot choose names that
meet in the same cells. A client has the key and can; with that it makes peeling fail, as it could by plainer means.
"""

import hashlib
from dataclasses import dataclass
from math import comb, isqrt
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.foundation.digests import length_prefixed
from protocols.primitives.group import FieldArray

CELLS_PER_TAG: Final = 3
CELL_ENTRIES: Final = 4
MIN_THIRD: Final = 128
"""12 KiB for the smallest table. A union of a dozen then fails once in 30000 times, and a second sum costs more."""
MAX_THIRD: Final = 1 << 30
_PAIR_ODDS: Final = 2048
# A third for n tags has 0.41 n + 2 sqrt(n) cells at least: 1.23 cells per tag in all, and a margin.
_PERCENT_PER_TAG: Final = 41
_PERCENT_PER_ROOT: Final = 200
_DOMAIN: Final = b"secure-kg/psu/table/1"

CellNumbers: TypeAlias = npt.NDArray[np.int64]
"""Any shape; places in a table, counted from zero through all three thirds."""

# The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a bijection of 64-bit words that mixes well.
_FIRST_FACTOR: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_FACTOR: Final = np.uint64(0x94D049BB133111EB)
_27: Final = np.uint64(27)
_30: Final = np.uint64(30)
_31: Final = np.uint64(31)
_32: Final = np.uint64(32)


@dataclass(frozen=True, slots=True)
class TableLayout:
    """`third` cells in each third. Another size or another salt gives independent cells to every tag."""

    third: int
    salt: bytes = b""

    def __post_init__(self) -> None:
        if not 1 <= self.third <= MAX_THIRD:
            raise ValueError(f"a third of {self.third} cells: 1 to 2^30 are possible")

    @classmethod
    def for_bound(cls, union_bound: int, salt: bytes = b"") -> "TableLayout":
        """A table from which a union of `union_bound` tags or fewer is peeled, but for one case in 1000 at most.

        Two things make peeling fail. The first: two tags that have the same three cells. Of n tags in thirds of w cells
        n (n - 1) / 2 / w^3 such pairs are expected, and w is chosen to make that 1/2048; larger knots of tags are rarer
        by about that factor again. This decides up to some 13000 tags. The second: more tags than can be resolved at
        all. With three cells for each tag that begins, for large n, at 1.222 cells per tag (Molloy, SODA 2004), within
        a window of the order of sqrt(n). The size chosen is beyond that window: measured failures are those by pairs,
        at 14541 tags and more as below (4 * 10^-4 and falling with 1 / n).
        """
        if union_bound < 0:
            raise ValueError(f"a union of {union_bound} tags")
        # Integers only: all parties must come to the same size, whatever their machine makes of a root.
        by_pairs = _cube_root(comb(union_bound, 2) * _PAIR_ODDS)
        by_threshold = -(-(_PERCENT_PER_TAG * union_bound + _PERCENT_PER_ROOT * isqrt(union_bound)) // 100)
        return cls(max(MIN_THIRD, by_pairs, by_threshold), salt)

    @property
    def cells(self) -> int:
        return CELLS_PER_TAG * self.third

    @property
    def entries(self) -> int:
        """The length of the vector that holds a table."""
        return CELL_ENTRIES * self.cells

    def cells_of(self, first: FieldArray, second: FieldArray) -> CellNumbers:
        """The cells [3, n] of the n tags (first, second): one row for each third.

        With constants s from SHA-256 of size and salt, and all arithmetic modulo 2^64, the hash of a tag is
        h = mix(mix(x1 + s0) + x2 + s1), and its cell in third t has number floor(high32(mix(h + s(2+t))) third / 2^32).
        """
        tag = self._hash(first, second)
        cells = np.empty((CELLS_PER_TAG, len(tag)), dtype=np.int64)
        for number in range(CELLS_PER_TAG):
            cells[number] = self._places(tag, number)
            cells[number] += number * self.third
        return cells

    def places_in_third(self, number: int, first: FieldArray, second: FieldArray) -> npt.NDArray[np.uint64]:
        """The places [n] of the cells of n tags within one third."""
        return self._places(self._hash(first, second), number)

    def _hash(self, first: FieldArray, second: FieldArray) -> npt.NDArray[np.uint64]:
        return _mixed(_mixed(np.add(first, self._constant(0))) + second + self._constant(1))

    def _places(self, tag: npt.NDArray[np.uint64], number: int) -> npt.NDArray[np.uint64]:
        words = _mixed(tag + self._constant(2 + number))
        # Below 2^32 times at most 2^30. No cell is favoured by more than one part in 2^32 / third.
        places: npt.NDArray[np.uint64] = ((words >> _32) * np.uint64(self.third)) >> _32
        return places

    def _constant(self, number: int) -> np.uint64:
        numbers = number.to_bytes(8, "little") + self.third.to_bytes(8, "little")
        digest = hashlib.sha256(length_prefixed(_DOMAIN, numbers, self.salt)).digest()
        return np.uint64(int.from_bytes(digest[:8], "little"))


def _mixed(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    words = (words ^ (words >> _30)) * _FIRST_FACTOR
    words = (words ^ (words >> _27)) * _SECOND_FACTOR
    return words ^ (words >> _31)


def _cube_root(number: int) -> int:
    """The cube root, rounded up."""
    root: int = round(float(number) ** (1 / 3))  # close, and put right below
    while root**3 < number:
        root += 1
    while root > 0 and (root - 1) ** 3 >= number:
        root -= 1
    return root
