"""A client's own rows among the shared ones: where they stand, and what of the others' means it has applied.

A client keeps the whole table as it has applied it, its own rows or not (`applied_table`). Its digest enters the keys
of every sum, so clients that a server has sent different tables, at whatever time and in whatever order, cannot add up.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protocols.alignment.interface import Positions
from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.identifiers import PartyId
from protocols.holders.interface import Holders
from protocols.sums.interface import Contribution, SumLayout, Total
from protocols.sums.noise import KeyOf
from protocols.sums.noises import noise_of
from protocols.sums.terms import SumTerms
from protocols.sums.totals import SumTotal
from secure_kg.federation.client.applied_table import AppliedTable, Rounds, UpdateRule
from secure_kg.federation.client.first_rows import scaled_back
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.row_sum import Rows, mean_rows, row_contribution
from secure_kg.federation.plan.run_plan import AGREEING_ROUND
from secure_kg.learning.learner import Contributed, Learner

_PREFIX: Final = "shared/"
"""In checkpoints, of the aligned block; others add their name."""


class OwnRows:
    """Row i of the learner's `block` stands at `positions.own[i]` of the union."""

    def __init__(
        self, positions: Positions, block: Block, learner: Learner, layout: SumLayout, key_of: KeyOf | None = None
    ) -> None:
        """`layout`: of the block's sums. `key_of`: keys of the noise on them, if it is to repeat."""
        self.positions, self._block, self._learner, self.layout = positions, block, learner, layout
        # Means are rounded to single precision like these bounds, and rounding keeps the order.
        noise = noise_of(block.noise)
        self._noise = noise if key_of is None else noise.keyed(key_of)
        # Noise of all clients, in the mean of a row that only one of them holds.
        at_first = layout.parties * self._noise.bound_in(AGREEING_ROUND)
        largest = np.float32(layout.codec.largest_value + layout.largest_noise)
        begins_small = block.aligned and block.agrees
        first = np.float32((block.span + layout.codec.unit if begins_small else layout.codec.largest_value) + at_first)
        first = min(first, largest)
        self._rule = UpdateRule(float(largest), float(first), AGREEING_ROUND)
        self._applied = AppliedTable(positions.union_size, layout.real_entries // positions.union_size)
        self._digest: bytes | None = None
        self._given = positions.own[:0]
        """Positions of the rows in the last contribution."""
        self._first: Rows | None = None
        """First rows of a public block, of all positions."""

    @property
    def digest(self) -> bytes:
        """Of the whole table as this client has applied it: it enters the keys of the next sum."""
        if self._digest is None:
            self._digest = self._applied.digest(self.positions.digest)
        return self._digest

    @property
    def averaged_in_union(self) -> int:
        """How many rows of the union were averaged in some round, as far as this client was told."""
        return int(np.count_nonzero(self._applied.averaged))

    @property
    def averaged_of_own(self) -> int:
        return int(np.count_nonzero(self._applied.averaged[self.positions.own]))

    @property
    def means(self) -> Rows:
        """The applied means [own, width] of this client's rows, as they arrived; zero where never averaged."""
        return self._applied.rows[self.positions.own]

    def start(self, rows: Rows) -> None:
        """The first rows [own, width], this client's own until the first mean."""
        self._learner.load_block(self._block.name, rows)

    def start_public(self, rows: Rows) -> None:
        """The first rows [union, width] of a block that is public."""
        self._first = rows
        self.start(rows[self.positions.own])

    def contribution(self, holders: Holders | None) -> Contribution:
        """The rows that enough clients hold; all if nobody has counted."""
        rows, own = self._learner.contributed_block(self._block.name), self.positions.own
        if self._first is not None:
            rows, own = self._among_all(rows, self._first), np.arange(self.positions.union_size, dtype=np.int64)
        if holders is not None:
            rows, own = rows[holders.enough], own[holders.enough]
        self._given = own
        return row_contribution(rows, own, self.positions.union_size, self._noise)

    def _among_all(self, rows: Contributed, first: Rows) -> Contributed:
        """Own rows [own, width] among all rows as this client has applied them [union, width].

        A public block has a contribution to every row from everybody, so that none tells whose name it stands under.
        """
        table: Contributed = np.where(self._applied.averaged[:, None] > 0, self._applied.rows, first)
        table = table.astype(np.float64)
        table[self.positions.own] = rows
        return table

    def may_open(self, terms: SumTerms[SumLayout], missing: frozenset[PartyId]) -> None:
        """`SumAbandoned` if the noise of those that are left is too little (`protocols.sums.interface.MayOpen`)."""
        if self._noise.bound_in(terms.round):
            self._noise.require_enough(len(terms.participants), len(missing))

    def has_result_of(self, round_id: int) -> bool:
        """Whether every row of the last contribution, made in this round, was averaged then or later."""
        return bool((self._applied.averaged[self._given] >= round_id).all())

    def take(self, rows: Rows, averaged: Rounds, round_id: int) -> None:
        """A table of means that the server has computed. A row not averaged since stays as this client has it."""
        self._accept(rows, averaged, round_id)

    def take_lent(self, content: bytes, round_id: int) -> None:
        """The table as another client has applied it, for one that has missed sums."""
        self._accept(*self._applied.parse(content), round_id)

    def take_sum(self, news: SumTotal, total: Total, least: int) -> None:
        """A sum that only clients can read, and what this one has read in it. One that it has already is no news.

        `least`: how many holders every row of it must have.
        """
        if news.of_round <= self._applied.newest:
            return
        some = total.counts > 0
        if bool((total.counts[some] < least).any()):
            raise PeerMisbehaved(f"a sum of rows that fewer than {least} clients hold")
        if bool((np.abs(total.real.reshape(len(some), -1)[~some]) > self.layout.largest_noise).any()):
            raise PeerMisbehaved("a sum with rows that nobody has added")
        rows = np.where(some[:, None], mean_rows(total), self._applied.rows)
        averaged = np.where(some, np.uint32(news.of_round), self._applied.averaged)
        self._accept(rows, averaged, news.of_round)

    @property
    def lent_bytes(self) -> int:
        """Length of `lend()`."""
        return int(4 * (self._applied.rows.size + self._applied.averaged.size))

    def lend(self) -> bytes:
        """The table as this client has applied it."""
        return self._applied.to_bytes()

    def _accept(self, rows: Rows, averaged: Rounds, round_id: int) -> None:
        fresh = self._applied.accept(rows, averaged, round_id, self._rule)
        if not fresh.any():
            return
        self._digest = None
        self._put(fresh[self.positions.own])

    def begin_round(self) -> None:
        """Go back to the last mean of every row that has one, whatever this client has trained since.

        A sum that was abandoned leaves a client with rows of its own. If it went on from them, a server could have one
        client train alone, round after round, and then read in a sum with the others how far it has come.
        """
        self._put(self._applied.averaged[self.positions.own] > 0)

    def _put(self, chosen: npt.NDArray[np.bool_]) -> None:
        """Write the applied means of the rows `chosen` [own] into the model."""
        if not chosen.any():
            return
        places = self.positions.own[chosen]
        rows, first = self._applied.rows[places], self._applied.averaged[places] == AGREEING_ROUND
        mine = self._learner.export_block(self._block.name)
        if self._block.aligned and not self._block.public:
            # Means of first rows shrink in the mean; those of rows that all begin alike do not.
            rows = np.where(first[:, None], scaled_back(rows, self._block.span), rows)
        mine[chosen] = rows
        self._learner.load_block(self._block.name, mine)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """For a checkpoint."""
        return self._applied.state(self._prefix)

    def load_state(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Go on from a checkpoint's table. Without it this client takes the whole table first, as a new one does."""
        self._applied.load_state(arrays, self._prefix)
        self._digest = None

    @property
    def _prefix(self) -> str:
        return _PREFIX if self._block.aligned else f"{_PREFIX}{self._block.name}/"
