"""Shared rows as a sum: FedR, algorithm 1, line 8 (FedE, algorithm 1, for entities).

A client contributes rows at their positions in the union and zeros elsewhere, with a count of one for every row it
contributes; rows and counts travel in one vector. It contributes to rows that enough clients hold, and to no others
(`protocols.holders.secret`). The mean of a row is its sum divided by its count.
"""

import numpy as np
import numpy.typing as npt

from protocols.sums.interface import Contribution, SumLayout, Total
from protocols.sums.noise import NO_NOISE, Noise

Rows = npt.NDArray[np.float32]
"""Shape (rows, width)."""


def row_layout(
    union_size: int,
    width: int,
    clip: float,
    parties: int,
    ring_bits: int,
    noise: Noise = NO_NOISE,
) -> SumLayout:
    return SumLayout(
        real_entries=union_size * width,
        count_entries=union_size,
        bound=clip,
        max_count=1,
        parties=parties,
        ring_bits=ring_bits,
        noise_bound=noise.bound,
    )


def row_contribution(
    rows: Rows | npt.NDArray[np.float64], positions: npt.NDArray[np.int64], union_size: int, noise: Noise = NO_NOISE
) -> Contribution:
    """`rows` [n, width] of one client, row i standing at `positions[i]` of the union."""
    spread = np.zeros((union_size, rows.shape[1]), dtype=np.float64 if rows.dtype == np.float64 else np.float32)
    spread[positions] = rows
    held = np.zeros(union_size, dtype=np.int64)
    held[positions] = 1
    return Contribution(real=spread.reshape(-1), counts=held, noise=noise)


def mean_rows(total: Total) -> Rows:
    """The means [union, width]. Those of rows to which nobody contributed mean nothing."""
    counts = total.counts[:, None]
    means = total.real.reshape(len(counts), -1) / np.maximum(counts, 1)
    return (means if total.grid is None else total.grid.nearest(means)).astype(np.float32)
