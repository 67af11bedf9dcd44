"""The shared rows as the server keeps them: means it has computed itself, or sums it cannot read."""

from abc import ABC, abstractmethod
from collections import deque
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protocols.alignment.interface import Union
from protocols.foundation import wire
from protocols.foundation.identifiers import RoundId
from protocols.sums.interface import Collected, MeanGrid
from protocols.sums.totals import SumTotal
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.row_sum import Rows, mean_rows
from secure_kg.federation.plan.twins import Result
from secure_kg.foundation.errors import UserError

MOST_KEPT: Final = 32
"""How many sums are kept for dropouts. One that misses more is lent the table by another client."""


class SharedTable(ABC):
    """What has become of the shared rows so far."""

    def __init__(self, block: Block, union: Union) -> None:
        self.block, self.union = block, union
        self.newest = 0
        """The round of the last sum that went in."""

    @abstractmethod
    def add(self, round_id: RoundId, result: Result) -> None:
        """Take in the sum of a round."""

    @abstractmethod
    def news_since(self, round_id: int) -> list[wire.Message]:
        """The messages that bring a client up to date that has everything up to `round_id`."""

    def reaches_back_to(self, round_id: int) -> bool:
        """Whether `news_since` is all that such a client lacks."""
        return True


class ReadableTable(SharedTable):
    """Under plain and pairwise-masked sums: the means, and when each row was last averaged (0: never)."""

    def __init__(self, block: Block, union: Union, grid: MeanGrid | None = None) -> None:
        """`grid`: that the means of its sums lie on, if they do."""
        super().__init__(block, union)
        self._grid = grid
        self.rows: Rows = np.zeros((union.size, block.width), dtype=np.float32)
        self.averaged: npt.NDArray[np.uint32] = np.zeros(union.size, dtype=np.uint32)

    def add(self, round_id: RoundId, result: Result) -> None:
        if not isinstance(result, Collected):
            raise TypeError("a sum that cannot be read")
        some = result.total.counts > 0
        self.rows = np.where(some[:, None], mean_rows(result.total), self.rows)
        self.averaged = np.where(some, np.uint32(round_id), self.averaged)
        self.newest = int(round_id)

    def news_since(self, round_id: int) -> list[wire.Message]:
        return [self.block.message(self.rows, self.averaged, self._grid)] if self.newest > round_id else []

    @property
    def never_averaged(self) -> int:
        return int((self.averaged == 0).sum())

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """For a checkpoint."""
        return {f"{self._prefix}rows": self.rows, f"{self._prefix}averaged": self.averaged}

    def load_state(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Go on from a checkpoint's table."""
        rows, averaged = arrays.get(f"{self._prefix}rows"), arrays.get(f"{self._prefix}averaged")
        if rows is None or averaged is None or rows.shape != self.rows.shape or averaged.shape != self.averaged.shape:
            raise UserError("the checkpoint does not fit this federation: the clients' data have changed")
        self.rows, self.averaged = rows, averaged
        self.newest = int(averaged.max(initial=0))

    @property
    def _prefix(self) -> str:
        return "" if self.block.aligned else f"{self.block.name}/"


class SealedTable(SharedTable):
    """Under secret sums: the sums as they are, for clients to read. None of them outlives the session's key."""

    def __init__(self, block: Block, union: Union) -> None:
        super().__init__(block, union)
        self._sums: deque[SumTotal] = deque()
        self._forgotten = 0
        """The last round whose sum is no longer kept."""

    def add(self, round_id: RoundId, result: Result) -> None:
        if not isinstance(result, SumTotal):
            raise TypeError("a sum that is not sealed")
        self._sums.append(result)
        self.newest = int(round_id)
        if len(self._sums) > MOST_KEPT:
            self._forgotten = self._sums.popleft().of_round

    def news_since(self, round_id: int) -> list[wire.Message]:
        return [total for total in self._sums if total.of_round > round_id]

    def reaches_back_to(self, round_id: int) -> bool:
        return round_id >= self._forgotten

    def forget_before(self, round_id: int) -> None:
        """Go on in a new session: no key opens the sums of the old one, whose last round this was."""
        self._sums.clear()
        self.newest = self._forgotten = round_id
