"""Shared rows as a sum: FedR, algorithm 1, line 8.

A client contributes its rows at their positions in the union and zeros elsewhere, with a count of one for every row it
holds; rows and counts travel in one vector. The mean of a row is its sum divided by its count; a row nobody contributed
this round keeps its value.
"""

import hashlib
from typing import Literal

import numpy as np
import numpy.typing as npt

from protocols.sums import Contribution, SumLayout, Total

Rows = npt.NDArray[np.float32]
"""Shape (rows, width)."""


def row_layout(union_size: int, width: int, clip: float, parties: int, ring_bits: Literal[32, 64]) -> SumLayout:
    return SumLayout(
        real_entries=union_size * width,
        count_entries=union_size,
        bound=clip,
        max_count=1,
        parties=parties,
        ring_bits=ring_bits,
    )


def row_contribution(rows: Rows, positions: npt.NDArray[np.int64], union_size: int) -> Contribution:
    """`rows` [own, width] of one client, row i standing at `positions[i]` of the union."""
    spread = np.zeros((union_size, rows.shape[1]), dtype=np.float32)
    spread[positions] = rows
    held = np.zeros(union_size, dtype=np.int64)
    held[positions] = 1
    return Contribution(real=spread.reshape(-1), counts=held)


def mean_rows(total: Total, table: Rows) -> Rows:
    """The new table: means where anybody contributed, the old row elsewhere."""
    counts = total.counts[:, None]
    sums = total.real.reshape(table.shape)
    return np.where(counts > 0, sums / np.maximum(counts, 1), table).astype(np.float32)


def table_digest(table: Rows, union: bytes) -> bytes:
    """What every participant must have been sent alike: it enters the keys of the round's masks.

    `union`: the digest of the list of tags in which the clients have found their rows' positions.
    """
    shape = ",".join(map(str, table.shape)).encode()
    return hashlib.sha256(union + shape + b":" + np.ascontiguousarray(table, dtype="<f4").tobytes()).digest()
