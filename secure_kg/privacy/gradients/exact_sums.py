"""Sums of chunks without any rounding: two limbs of doubles.

A chunk's sum is a whole number of units below 2⁵³. It is split, exactly, into a multiple of 2³² units and a rest of at
most 2³¹. Of 2²¹ chunks, the first limbs add up to at most 2⁴³ multiples and the rests to at most 2⁵² units: no addition
rounds. The end is one addition of the two, rounded once.
"""

from typing import Final

import torch
from torch import Tensor

CHUNK: Final = 1024
"""Triples of which sums are exact: what adds up so many whole numbers has 2⁴³ for each."""
MOST_TRIPLES: Final = CHUNK * 2**21
_SPLIT: Final = 2.0**32


class ExactSum:
    """A table of sums over chunks, each a multiple of unit, a power of two, below 2⁵³ units."""

    def __init__(self, shape: torch.Size, unit: float) -> None:
        self._coarse = torch.zeros(shape, dtype=torch.float64)
        self._fine = torch.zeros_like(self._coarse)
        self._step = unit * _SPLIT

    def add(self, part: Tensor, row: int | None = None) -> None:
        """A chunk's sum, of all rows or of one row."""
        high = (part / self._step).round_().mul_(self._step)
        coarse, fine = (self._coarse, self._fine) if row is None else (self._coarse[row], self._fine[row])
        coarse.add_(high)
        fine.add_(part - high)

    def total(self) -> Tensor:
        """Rounded to double precision, once."""
        return self._coarse + self._fine
