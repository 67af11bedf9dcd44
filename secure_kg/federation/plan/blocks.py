"""Blocks: the parts of a learner's parameters that clients share, each summed and averaged by itself.

A block is a table of rows. Aligned rows stand each under a name that several clients may hold (an entity, a relation):
their positions come from an alignment, and a row is averaged over its holders. A block that is not aligned is one row
under a fixed name, the same at every client (a dense tensor, flattened): it is averaged over all participants.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.alignment.interface import Union
from protocols.foundation.digests import digest
from protocols.sums.interface import MeanGrid
from protocols.sums.noise import NONE
from secure_kg.federation.plan.messages import (
    AnyRows,
    PackedRows,
    SharedBlock,
    SharedRows,
    block_named,
    packed_rows_bytes,
    shared_block_bytes,
    shared_rows_bytes,
)
from secure_kg.federation.plan.row_sum import Rows

Rounds = npt.NDArray[np.uint32]
"""[rows]: the round in which each row was last averaged; 0: never."""

FIRST: Final = "rows"
"""Purpose of the sum of a run's aligned block. Other blocks add their name behind a slash."""
AGREEING_ROUND: Final = 1
"""The round in which clients train nothing and agree on first rows."""
_FIXED: Final = b"secure-kg/fixed block/1"


@dataclass(frozen=True, slots=True)
class Block:
    """One shared block. Public: every party derives it from the run's settings."""

    name: str
    """The learner's own name for it."""
    width: int
    """Numbers per row."""
    aggregation: str
    """How its sums are made: a name of the registry."""
    aligned: bool = True
    span: float = 0.0
    """First rows are uniform in ±span, if the block is aligned: their means are scaled back to that size."""
    noise: str = NONE
    """What every client adds to its rows: a text of `protocols.sums.noises`. Counts and results go without."""
    public: bool = False
    """Whether every client adds to every row of an aligned block, under a name of its own or not. Holders are not
    counted then, and first rows come from the public seed, by position."""
    bound: float | None = None
    """Values are clipped to ± this; None: to the run's own clip."""
    agrees: bool = True
    """Whether the first round agrees on first rows. A table that begins empty needs no such round."""

    @property
    def purpose(self) -> str:
        """Names its sums."""
        return FIRST if self.aligned else f"{FIRST}/{self.name}"

    def message(self, rows: Rows, averaged: Rounds, grid: MeanGrid | None = None) -> AnyRows:
        """The block as the server sends it where it can read its sums. `grid`: of the means, if they lie on one."""
        if grid is not None:
            return PackedRows.of(self._named, rows, averaged, grid)
        return SharedRows(rows, averaged) if self.aligned else SharedBlock(self.name, rows, averaged)

    def message_bytes(self, rows: int, grid: MeanGrid | None = None) -> int:
        """The size of that message for a table of so many rows."""
        if grid is not None:
            return packed_rows_bytes(self._named, rows, self.width, grid)
        return shared_rows_bytes(rows, self.width) if self.aligned else shared_block_bytes(self.name, rows, self.width)

    def is_in(self, message: AnyRows) -> bool:
        """Whether a message has this block's rows."""
        return block_named(message) == self._named

    @property
    def _named(self) -> str:
        return "" if self.aligned else self.name

    @property
    def fixed_union(self) -> Union:
        """What an alignment would have found for a block that needs none: one row, the same for all."""
        return Union(1, digest(_FIXED, self.name.encode(), self.width.to_bytes(8, "little")))


def purpose_of(message: AnyRows) -> str:
    """Of the sums that a message has the means of."""
    name = block_named(message)
    return f"{FIRST}/{name}" if name else FIRST
