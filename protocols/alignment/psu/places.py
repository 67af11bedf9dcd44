"""Places: clients find the positions of their names without being told the tags of the union.

The server has peeled the union from the table. It deals out the positions 0 to m - 1 at random and publishes one number
modulo m for each cell of the table, so that for each tag of the union the numbers in its three cells add up to its
position. Whoever has a tag adds up three numbers. A tag that is not in the union gives a position as well, and nothing
in it shows that it is wrong.

How the numbers are found (Botelho, Pagh and Ziviani, WADS 2007). All cells begin with uniform numbers. The rounds of
peeling are gone through backwards, and each tag sets the cell it was alone in, so that its sum comes out right. Nothing
is spoilt by that, and a round can be set at once: call the cell that tag t was alone in c(t). When the round of t
began, c(t) was a cell of no other tag of that round or of a later one. So

- setting c(t) changes the sum of no tag that was set before (a later round) or is set with it (the same round), and
- the other two cells of t are never set after it: such a cell would be c(s) for a tag s of the same round or an earlier
  one, but t, which was still there, has it too.

That two tags which share a cell are never taken for one tag alone holds but for a chance of 2 / p in each cell
(`table`), or for weights that a client has chosen instead of drawn. So the result is checked, tag by tag.

What the numbers tell a client: the size of the union, and that each position has exactly one name of the union, under
the map from all names to positions that the numbers give. Nothing else: given that, and that the union can be peeled,
they are uniform. (The sums of the m tags can be chosen freely and each choice has equally many solutions, because every
tag has a cell of its own to set; positions are a uniform permutation, and what is free is uniform.) In particular

- a guessed name whose position is one of the client's own is not in the union. A client with a of the m positions rules
  out a guess that is wrong with probability a / m. Otherwise the guess is as open as before, or rather likelier by the
  factor 1 / (1 - a / m) at most;
- of guessed names that share a position at most one is in the union;
- a client that has a list of d names of which it is certain that it contains the whole union knows that each position
  belongs to one of them: about d / m names on average, but if it is only one, that name is in the union. Positions hide
  names among many possible ones, not among a few.

Misuse: numbers modulo m for free cells are random words of 64 bits modulo m, whose distance from uniform is m / 2^64
for each cell: 2^-34 at most.
"""

import secrets
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.alignment.psu.layout import TableLayout
from protocols.alignment.psu.table import Peeled, PeelFailed
from protocols.primitives.group import FieldArray

MAX_UNION: Final = 1 << 30
"""Sums of three numbers below it are formed in words of 64 bits; numbers travel in 32."""

PlaceNumbers: TypeAlias = npt.NDArray[np.uint32]
"""[cells of the table]; numbers modulo the size of the union."""


def places_of(peeled: Peeled, layout: TableLayout) -> PlaceNumbers:
    """The numbers for a union that is not empty, with positions dealt out afresh; `PeelFailed` if there are none."""
    size = peeled.size
    if not 1 <= size < MAX_UNION:
        raise ValueError(f"places for a union of {size}")
    positions = _shuffled(size)
    modulus = np.uint64(size)
    places = _words(layout.cells) % modulus
    ends = np.cumsum([len(peeled_round.alone) for peeled_round in peeled.rounds])
    for peeled_round, end in zip(reversed(peeled.rounds), reversed(ends), strict=True):
        wanted = positions[end - len(peeled_round.alone) : end]
        own = np.take_along_axis(peeled_round.cells, peeled_round.alone[None, :], axis=0)[0]
        places[own] = 0
        # wanted and modulus exceed what is subtracted after it was reduced: a word never goes below zero.
        others = places[peeled_round.cells].sum(axis=0) % modulus
        places[own] = (wanted + modulus - others) % modulus
    numbers = places.astype(np.uint32)
    tags = np.concatenate([peeled_round.tags for peeled_round in peeled.rounds])
    if not np.array_equal(positions_in(numbers, size, tags, layout), positions):
        raise PeelFailed("two tags of one cell were taken for a tag alone")
    return numbers


def positions_in(places: PlaceNumbers, size: int, tags: FieldArray, layout: TableLayout) -> npt.NDArray[np.int64]:
    """The positions [n] of the tags [n, 2] in a union of `size`."""
    first, second = np.ascontiguousarray(tags.T)
    total = np.zeros(len(tags), dtype=np.int64)
    for cells in layout.cells_of(first, second):
        total += places[cells]
    return total % size


def _shuffled(size: int) -> npt.NDArray[np.uint64]:
    """0 to size - 1 in an order that is exactly uniform."""
    while True:
        words = _words(size)
        order = np.argsort(words)
        drawn = words[order]
        # Equal words would stand in an order that is not random: once in 2^25 times for 2^20 positions.
        if (drawn[1:] != drawn[:-1]).all():
            return order.astype(np.uint64)


def _words(count: int) -> npt.NDArray[np.uint64]:
    words: npt.NDArray[Any] = np.frombuffer(secrets.token_bytes(8 * count), dtype=np.uint64)
    return words
