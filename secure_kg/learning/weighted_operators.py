"""A mean of operators by weights, through sums that know no weights.

A client with n train triples contributes s x and s, where x are its operators and s = n / 2^20, at most 1. The plain
mean of all contributions is [mean of s x, mean of s], and the first divided by the second is the mean of x by weights.
What clients keep and commit to is the plain mean; each divides it for itself.

Fixed-point numbers of 32 bits carry a number up to some 1e-8. Divided by the weights of clients with a hundred triples
that is some 1e-4, which a mean of networks bears; `--ring-bits 64` is finer.
"""

from typing import Final

import numpy as np

from protocols.foundation.errors import PeerMisbehaved
from secure_kg.learning.learner import Rows

MOST_TRIPLES: Final = 1 << 20
"""A client with more counts as one with so many."""
_LARGEST: Final = 2.0**20
"""No operator of a mean is larger: a false weight near zero must not get through as a model."""


def exported(operators: Rows, weighted: bool) -> Rows:
    """A row [1, n] as the block has it, behind it a weight of one if the block has weights."""
    return np.append(operators, np.float32(1)).astype(np.float32)[None] if weighted else operators


def contributed(operators: Rows, triples: int) -> Rows:
    """[1, n + 1]: the operators of a client with so many train triples, times its weight, and the weight."""
    weight = np.float32(min(triples, MOST_TRIPLES) / MOST_TRIPLES)
    return exported(operators, weighted=True) * weight


def mean_of(rows: Rows) -> Rows:
    """The operators [1, n] of a mean [1, n + 1]. `PeerMisbehaved` for one that no clients can have added up."""
    values, weight = rows[:, :-1].astype(np.float64), float(rows[0, -1])
    # Comparisons that a number which is none fails, too.
    if not (0 < weight <= 1 + 1e-3 and (np.abs(values) <= _LARGEST * weight).all()):
        raise PeerMisbehaved("a mean of operators without their weights")
    return (values / weight).astype(np.float32)
