"""The shared rows as one party has applied them: what a client binds to the keys of its next sum.

A table is the whole of the shared rows, whoever holds them, with the round in which each was last averaged. All
clients of a sum must have applied the same table (`AppliedTable.digest` enters their keys), and every step from one
table to the next must be one that the update rule can make. So what a server chooses for one client it chooses for all.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protocols.foundation.digests import digest
from protocols.foundation.errors import PeerMisbehaved
from secure_kg.federation.plan.row_sum import Rows

Rounds = npt.NDArray[np.uint32]
"""[union]: the round in which each row was last averaged; zero: never."""
_DOMAIN: Final = b"secure-kg/table/1"


@dataclass(frozen=True, slots=True)
class UpdateRule:
    """What a table of means can look like. `most`: no mean is larger, for every value is clipped before it is added.

    `first`: the same for means of first rows, which are averaged in round `agreeing`.
    """

    most: float
    first: float
    agreeing: int

    def check(self, rows: Rows, averaged: Rounds) -> None:
        """Check rows [n, width] that were newly averaged in rounds [n]; `PeerMisbehaved` if they cannot be means."""
        if not len(rows):
            return
        largest = np.abs(rows).max(axis=1, initial=0.0)
        if not bool((largest <= np.where(averaged == self.agreeing, self.first, self.most)).all()):
            raise PeerMisbehaved("the server's table has values that no mean of clipped rows has")


class AppliedTable:
    """[union, width] rows, zero where never averaged, and the rounds [union] of their last means."""

    def __init__(self, size: int, width: int) -> None:
        self.rows: Rows = np.zeros((size, width), dtype=np.float32)
        self.averaged: Rounds = np.zeros(size, dtype=np.uint32)

    @property
    def newest(self) -> int:
        """The last round whose sum is in it."""
        return int(self.averaged.max(initial=0))

    def digest(self, union: bytes) -> bytes:
        """`union`: the digest of the alignment, through which clients have found their rows' positions."""
        return digest(_DOMAIN, union, _bytes(self.averaged, "<u4"), _bytes(self.rows, "<f4"))

    def accept(self, rows: Rows, averaged: Rounds, round_id: int, rule: UpdateRule) -> npt.NDArray[np.bool_]:
        """Go on to a later table; which rows [union] are new in it. `PeerMisbehaved` if it does not follow this one.

        The same table again is no news. A later one has a newer mean, none from beyond `round_id`, and leaves all rows
        alone that were not averaged since: so there is at most one table for every round.
        """
        if rows.shape != self.rows.shape or averaged.shape != self.averaged.shape:
            raise PeerMisbehaved("the server's table has another shape than the union")
        fresh: npt.NDArray[np.bool_] = averaged > self.averaged
        if bool((averaged < self.averaged).any()):
            raise PeerMisbehaved("the server's table goes back to earlier means")
        kept = ~fresh
        if not np.array_equal(rows[kept], self.rows[kept]):
            raise PeerMisbehaved("the server's table changes rows that it does not call averaged")
        if not fresh.any():
            return fresh
        if int(averaged.max()) > round_id:
            raise PeerMisbehaved(f"the server's table has means of round {int(averaged.max())} in round {round_id}")
        if int(averaged[fresh].min()) <= self.newest:
            raise PeerMisbehaved("the server's table has means of a round whose table was another one")
        rule.check(rows[fresh], averaged[fresh])
        self.rows, self.averaged = rows, averaged
        return fresh

    def state(self, prefix: str) -> dict[str, npt.NDArray[Any]]:
        """For a checkpoint."""
        return {f"{prefix}rows": self.rows, f"{prefix}averaged": self.averaged}

    def load_state(self, arrays: dict[str, npt.NDArray[Any]], prefix: str) -> bool:
        """Whether the checkpoint holds a table of this kind and shape, which is then taken."""
        rows, averaged = arrays.get(f"{prefix}rows"), arrays.get(f"{prefix}averaged")
        if rows is None or averaged is None or rows.dtype != np.float32 or averaged.dtype != np.uint32:
            return False
        if rows.shape != self.rows.shape or averaged.shape != self.averaged.shape:
            return False
        self.rows, self.averaged = rows, averaged
        return True

    def to_bytes(self) -> bytes:
        """For another client, which knows the shape."""
        return _bytes(self.averaged, "<u4") + _bytes(self.rows, "<f4")

    def parse(self, content: bytes) -> tuple[Rows, Rounds]:
        """Rows and rounds of a table of this one's shape; `PeerMisbehaved` if these are not the bytes of one."""
        size, width = self.rows.shape
        if len(content) != 4 * size * (1 + width):
            raise PeerMisbehaved("a table of another shape than the union")
        averaged = np.frombuffer(content, dtype="<u4", count=size).astype(np.uint32)
        rows = np.frombuffer(content, dtype="<f4", offset=4 * size).reshape(size, width).astype(np.float32)
        if not np.isfinite(rows).all():
            raise PeerMisbehaved("a table with rows that are not finite")
        return rows, averaged


def _bytes(array: npt.NDArray[np.generic], dtype: str) -> bytes:
    return np.ascontiguousarray(array, dtype=dtype).tobytes()
