"""Numbers by which a client's real view of a count of holders might be told from a simulated one.

They are what an attacker would look at: bits and bytes of what is left of each row, its size, zeros and repetitions,
the ranks of the matrices, ratios that several rows have in common, and what stays from one count to the next. Rows are
taken apart by how many others truly hold them. Under the claim nothing but min(m, k) shows in them.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.holders.secret import regular
from protocols.primitives.group import MODULUS, FieldArray, PrimeField

Features: TypeAlias = dict[str, float]
Rests: TypeAlias = FieldArray
"""[k, k, rows]"""
_FIELD: Final = PrimeField()
_SMALL: Final = 1 << 58
"""One in eight uniform elements is below."""


def features_of(seen: Sequence[Rests], others: Sequence[npt.NDArray[np.int64]]) -> Features:
    """Of each count [k, k, rows], for each true number of other holders apart; and of two counts together."""
    found: Features = {}
    for number, (rests, counted) in enumerate(zip(seen, others, strict=True)):
        for m in np.unique(counted).tolist():
            part = _of_rows(rests[..., counted == m])
            found |= {f"count {number}, {m} others: {name}": value for name, value in part.items()}
    for (at, first), (to, second) in combinations(enumerate(seen), 2):
        size = min(len(first), len(second))
        change = _FIELD.subtract(second[:size, :size], first[:size, :size])
        both = (first[:size, :size] != 0) & (second[:size, :size] != 0)
        found[f"counts {at} and {to}: entries that stay"] = float(((change == 0) & both).sum())
    return found


def _of_rows(rests: Rests) -> Features:
    """Of matrices [k, k, n]."""
    size, flat = len(rests), rests.reshape(-1)
    words = np.frombuffer(flat.tobytes(), dtype=np.uint8).reshape(-1, 8)[:, :7]  # the highest byte has five bits only
    expected = words.size / 256
    counts = np.bincount(words.reshape(-1), minlength=256)
    first = rests[0, 0] != 0
    ratios = [_FIELD.multiply(entry[first], _FIELD.inverse(rests[0, 0][first])) for entry in (rests[1, 0], rests[0, 1])]
    centred = np.minimum(flat, np.uint64(MODULUS) - flat).astype(np.float64) / MODULUS
    return {
        "chi-square": float(((counts - expected) ** 2).sum() / expected / 255),
        "low bits": float((flat & np.uint64(1)).mean()),
        "zeros": float((flat == 0).sum()),
        "small": float((flat < _SMALL).mean()),
        "size": float(centred.mean()),
        "repeated entries": float(len(flat) - len(np.unique(flat))),
        "regular": float(regular(rests).sum()),
        "regular corners": float(regular(rests[: size - 1, : size - 1]).sum()),
        "rank at most one": float(_rank_at_most_one(rests).sum()),
        "repeated ratios": float(sum(len(ratio) - len(np.unique(ratio)) for ratio in ratios)),
        "equal rows": float((rests[0] == rests[1]).all(axis=0).sum()),
        "equal columns": float((rests[:, 0] == rests[:, 1]).all(axis=0).sum()),
    }


def _rank_at_most_one(rests: Rests) -> npt.NDArray[np.bool_]:
    """[n]: whether all minors of two rows and two columns are zero."""
    pairs = list(combinations(range(len(rests)), 2))
    found = np.ones(rests.shape[-1], dtype=np.bool_)
    for top, bottom in pairs:
        for left, right in pairs:
            found &= ~regular(rests[[[top], [bottom]], [left, right]])
    return found
