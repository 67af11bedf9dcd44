"""A client's own rows among the shared ones: where they stand, which were averaged, and what was sent last."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protocols.errors import PeerMisbehaved
from protocols.holders import Holders
from protocols.sums import Contribution, Total
from protocols.totals import SumTotal
from protocols.unions import Positions
from secure_kg.federation.first_rows import AGREEING_ROUND, scaled_back
from secure_kg.federation.messages import SharedRows
from secure_kg.federation.row_sum import Rows, mean_rows, row_contribution, rows_digest
from secure_kg.federation.strategy import Shared
from secure_kg.training.trainer import LocalTrainer

_PREFIX: Final = "shared/"


class OwnRows:
    """`table` of the model is shared; row i of it stands at `positions.own[i]` of the union."""

    def __init__(self, positions: Positions, table: Shared, width: int, span: float, trainer: LocalTrainer) -> None:
        """First rows are uniform in ±`span`."""
        self.positions, self.width, self._span = positions, width, span
        self.digest = rows_digest(None, positions.digest)
        """Of what this client was sent last: it enters the keys of the next sum."""
        self._table: Shared = table
        self._trainer = trainer
        self._taken = 0
        """Everything averaged up to this round is in the model."""
        self._averaged: npt.NDArray[np.bool_] = np.zeros(positions.union_size, dtype=np.bool_)
        """[union]: rows averaged in any round."""

    @property
    def averaged_in_union(self) -> int:
        """How many rows of the union were averaged in some round, as far as this client was told."""
        return int(self._averaged.sum())

    @property
    def averaged_of_own(self) -> int:
        return int(self._averaged[self.positions.own].sum())

    def start(self, rows: Rows) -> None:
        """The first rows [own, width], this client's own until the first mean."""
        self._trainer.set_rows(self._table, rows)

    def contribution(self, holders: Holders | None) -> Contribution:
        """The rows that enough clients hold; all if nobody has counted."""
        rows, own = self._trainer.rows(self._table), self.positions.own
        if holders is not None:
            rows, own = rows[holders.enough], own[holders.enough]
        return row_contribution(rows, own, self.positions.union_size)

    def take(self, news: SharedRows) -> None:
        """Means that the server has computed. A row not averaged since the last time stays as this client has it."""
        if news.rows.shape != (self.positions.union_size, self.width):
            raise PeerMisbehaved("the server's table has another shape than the union")
        self.digest = rows_digest(news, self.positions.digest)
        self._averaged |= news.averaged > 0
        self._put(news.rows, news.averaged > self._taken, news.averaged == AGREEING_ROUND)
        self._taken = max(self._taken, int(news.averaged.max(initial=0)))

    def take_sum(self, news: SumTotal, total: Total) -> None:
        """A sum that only clients can read, and what this one has read in it."""
        self.digest = rows_digest(news, self.positions.digest)
        if news.of_round <= self._taken:
            return
        self._averaged |= total.counts > 0
        self._put(mean_rows(total), total.counts > 0, np.full(len(total.counts), news.of_round == AGREEING_ROUND))
        self._taken = news.of_round

    def _put(self, rows: Rows, fresh: npt.NDArray[np.bool_], first: npt.NDArray[np.bool_]) -> None:
        """All [union, ...]; `first`: means of first rows, which shrink in the mean."""
        own = self.positions.own
        changed = fresh[own]
        if changed.any():
            mine, places = self._trainer.rows(self._table), own[changed]
            mine[changed] = np.where(first[places, None], scaled_back(rows[places], self._span), rows[places])
            self._trainer.set_rows(self._table, mine)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """For a checkpoint."""
        return {f"{_PREFIX}averaged": self._averaged, f"{_PREFIX}taken": np.array([self._taken], dtype=np.int64)}

    def load_state(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        averaged, taken = arrays.get(f"{_PREFIX}averaged"), arrays.get(f"{_PREFIX}taken")
        if averaged is not None and taken is not None and averaged.shape == self._averaged.shape:
            self._averaged, self._taken = averaged.astype(np.bool_), int(taken[0])
