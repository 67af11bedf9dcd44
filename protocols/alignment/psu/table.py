"""Sets of tags as tables that can be added: an invertible Bloom lookup table in the field of p = 2^61 - 1 elements.

For each tag x = (x1, x2) a client draws a fresh weight r, uniform in the field, and adds

    (r, r x1, r x2, r q(x)),    q(x) = x1^2 + x2^2,

to three cells (`layout`). In the sum of all clients' tables a tag stands with the sum of its holders' weights. That is
uniform and independent of everything else however many they are, so the sum has the same distribution as a table
written by a single client that holds the union. For this zero must be among the weights. A tag whose weights sum to
zero is in no cell and is overlooked by everybody: probability 2^-61 for each tag, with one holder as with many.

Peeling. A cell (s0, s1, s2, s3) with s0 != 0 holds one tag alone if s0 s3 = s1^2 + s2^2; the tag is (s1 / s0, s2 / s0)
and must have this cell among its own. It is taken out of its three cells, which may leave others alone in theirs.

Never a wrong tag. For tags x_i with weights r_i in one cell

    s0 s3 - s1^2 - s2^2 = sum over i < j of r_i r_j q(x_i - x_j),

and q is zero for no difference of two tags, because -1 is no square modulo p (p mod 4 = 3). With two or more tags this
is a quadratic polynomial in uniform weights that is not the zero polynomial, so a mixed cell passes with probability
2 / p at most (Schwartz-Zippel), and its tag has this very cell in one case of `third` only. Whatever happened on the
way, in the end the total must be exactly what the tags found would have written: all entries of all cells are zero, or
`PeelFailed` is raised. There are no partial results.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.alignment.psu.layout import CELL_ENTRIES, CELLS_PER_TAG, CellNumbers, TableLayout
from protocols.alignment.psu.tags import LIMBS
from protocols.foundation.errors import ProtocolError
from protocols.primitives.group import MODULUS, FieldArray, PrimeField

MAX_ROUNDS: Final = 1000
"""Unions within the bound take some 50 rounds at most. A table made to be slow, or to turn in circles, ends here."""

_FIELD: Final = PrimeField()
_P: Final = np.uint64(MODULUS)
_LOW_32: Final = np.uint64((1 << 32) - 1)
_TWO_TO_32: Final = np.array(1 << 32, dtype=np.uint64)
_32: Final = np.uint64(32)
_BLOCK: Final = 1 << 14
"""Tags, or cells, at a time: what is computed of them stays in the cache."""


class PeelFailed(ProtocolError):
    """A table that is too full, unlucky or no table. Nothing is known of the union; a larger table may tell."""


def write(tags: FieldArray, layout: TableLayout, into: FieldArray | None = None) -> FieldArray:
    """The table of the tags [n, 2], a vector of `layout.entries` field elements: all first entries, all second, ...

    Two calls for the same tags give different tables. A tag that stands twice is written as one, with another weight.
    `into`: where to write it; what stands there is overwritten. Beside the table this takes a sixth of its memory, and
    a word and a half for each tag.
    """
    if tags.ndim != 2 or tags.shape[1] != LIMBS:
        raise ValueError(f"tags of shape {tags.shape}")
    _FIELD.require(tags.reshape(-1), tags.size)
    table = np.empty(layout.entries, dtype=np.uint64) if into is None else into
    if table.dtype != _FIELD.dtype or table.shape != (layout.entries,):
        raise ValueError(f"{table.dtype}{table.shape} has no room for a table of {layout.entries} entries")
    thirds = table.reshape(CELL_ENTRIES, CELLS_PER_TAG, layout.third)
    weights = _weights(len(tags))
    places = np.empty(len(tags), dtype=np.uint32)
    halves = np.empty((2, layout.third), dtype=np.uint64)
    blocks = [slice(start, start + _BLOCK) for start in range(0, len(tags), _BLOCK)]
    # Three times the multiplications take less time than they would outside the cache; for few tags they are kept.
    kept = [_content(entry, tags, weights) for entry in range(CELL_ENTRIES)] if len(blocks) == 1 else None
    for third in range(CELLS_PER_TAG):
        for block in blocks:
            places[block] = layout.places_in_third(third, *np.ascontiguousarray(tags[block].T))
        for entry in range(CELL_ENTRIES):
            halves[...] = 0
            for block in blocks:
                content = kept[entry] if kept is not None else _content(entry, tags[block], weights[block])
                _add_halves(halves, places[block].astype(np.int64), content)
            _join_halves(halves, thirds[entry, third])
    return table


def _content(entry: int, tags: FieldArray, weights: FieldArray) -> FieldArray:
    """What the tags [k, 2] with weights [k] add to one of the four entries of their cells [k]."""
    first, second = np.ascontiguousarray(tags.T)
    match entry:
        case 0:
            return weights
        case 1:
            return _FIELD.multiply(weights, first)
        case 2:
            return _FIELD.multiply(weights, second)
    return _FIELD.multiply(weights, _check(first, second))


def _add_halves(halves: FieldArray, places: npt.NDArray[np.int64], values: FieldArray) -> None:
    """Add each value at its place, as halves of 32 bits [2, length].

    Fewer than 2^32 of them do not leave a word, whereas nine elements of the field could.
    """
    np.add.at(halves[0], places, values & _LOW_32)
    np.add.at(halves[1], places, values >> _32)


def _join_halves(halves: FieldArray, total: FieldArray) -> None:
    """The sums that halves [2, length] stand for, as field elements, into `total` [length]."""
    for start in range(0, len(total), _BLOCK):
        low, high = halves[:, start : start + _BLOCK] % _P
        total[start : start + _BLOCK] = _FIELD.add(low, _FIELD.multiply(high, _TWO_TO_32))


@dataclass(frozen=True, slots=True)
class PeelRound:
    """The k tags that were taken out of the table at once, each from a cell it was alone in."""

    tags: FieldArray
    """[k, 2]"""
    weights: FieldArray
    """[k]: what the reader of a total sees of the number of holders. Uniform, whatever that is."""
    cells: CellNumbers
    """[3, k]"""
    alone: npt.NDArray[np.int64]
    """[k]: in which of its cells (0, 1, 2) a tag was alone when its round began."""


@dataclass(frozen=True, slots=True)
class Peeled:
    """A union as it was read from a total: its tags in the order in which they came out."""

    rounds: tuple[PeelRound, ...]

    @property
    def size(self) -> int:
        return sum(len(peeled.weights) for peeled in self.rounds)

    def in_order(self) -> tuple[FieldArray, FieldArray]:
        """Tags [m, 2], ascending, and their weights [m]."""
        rows = np.concatenate(
            [
                np.empty((0, LIMBS + 1), dtype=np.uint64),
                *(np.column_stack((peeled.tags, peeled.weights)) for peeled in self.rounds),
            ]
        )
        rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
        return rows[:, :LIMBS].copy(), rows[:, LIMBS].copy()


def peel(total: FieldArray, layout: TableLayout) -> FieldArray:
    """The union [m, 2] of the sets whose tables add up to `total`, in ascending order, or `PeelFailed`."""
    tags, _ = peel_in_rounds(total, layout).in_order()
    return tags


def peel_in_rounds(total: FieldArray, layout: TableLayout) -> Peeled:
    """As `peel`, and how the tags came out of the table."""
    _FIELD.require(total, layout.entries)
    table: FieldArray = total.reshape(CELL_ENTRIES, layout.cells).copy()
    rounds: list[PeelRound] = []
    touched: CellNumbers = np.arange(layout.cells)
    for _ in range(MAX_ROUNDS):
        found, contents = _alone(table, touched, layout)
        if not len(found.tags):
            break
        rounds.append(found)
        # What a cell held alone is what its tag has written into all three: no need to compute it again.
        touched, places = np.unique(found.cells, return_inverse=True)
        places = places.reshape(found.cells.shape)
        for entry, content in enumerate(contents):
            table[entry, touched] = _FIELD.subtract(table[entry, touched], _sums(places, content, len(touched)))
    if table.any():
        raise PeelFailed(f"{np.count_nonzero(table.any(axis=0))} of {layout.cells} cells cannot be resolved")
    peeled = Peeled(tuple(rounds))
    tags, _ = peeled.in_order()
    # No tag of a sum of tables is found twice, and none that is found has weight zero.
    if (tags[1:] == tags[:-1]).all(axis=1).any():
        raise PeelFailed("a tag stands in its cells with different weights")
    return peeled


def _alone(table: FieldArray, candidates: CellNumbers, layout: TableLayout) -> tuple[PeelRound, FieldArray]:
    """The k tags that are alone in a candidate cell, each once, and what they add to each of their cells [4, k]."""
    candidates = candidates[table[0, candidates] != 0]
    contents = table[:, candidates]
    alone = _FIELD.multiply(contents[0], contents[3]) == _check(contents[1], contents[2])
    candidates, contents = candidates[alone], contents[:, alone]
    first, second = _FIELD.multiply(_FIELD.inverse(contents[0]), contents[1:3])
    cells = layout.cells_of(first, second)
    third = candidates // layout.third
    own = cells[third, np.arange(len(candidates))] == candidates
    # A tag may be alone in two or three of its cells: it is taken from the first of them.
    is_alone = np.zeros(layout.cells, dtype=np.bool_)
    is_alone[candidates[own]] = True
    first_place: npt.NDArray[np.int64] = is_alone[cells].argmax(axis=0)
    chosen = own & (first_place == third)
    tags = np.column_stack((first, second))[chosen]
    return PeelRound(tags, contents[0, chosen], cells[:, chosen], third[chosen]), contents[:, chosen]


def _check(first: FieldArray, second: FieldArray) -> FieldArray:
    return _FIELD.add(_FIELD.multiply(first, first), _FIELD.multiply(second, second))


def _weights(count: int) -> FieldArray:
    return _FIELD.uniform((count,))


def _sums(places: CellNumbers, values: FieldArray, length: int) -> FieldArray:
    """A vector of zeros with value n added, in the field, at each of the places [3, n] in column n."""
    halves, total = np.zeros((2, length), dtype=np.uint64), np.empty(length, dtype=np.uint64)
    for row in places:
        _add_halves(halves, row, values)
    _join_halves(halves, total)
    return total
