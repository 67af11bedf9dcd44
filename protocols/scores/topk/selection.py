"""Selection of the k largest of N distinct keys that were shuffled, from comparisons alone.

A generator that yields pairs of places and is sent, for each pair, whether the first key is larger. It sees no key and
no score: all that it does is a function of N, k and the order in which the keys were shuffled. `best` therefore serves
the protocol and its simulator alike.

    few candidates    all pairs at once, in one step
    many candidates   the first 128 of them, a random sample because they are shuffled, are compared with each other;
                      one near the rank that is wanted becomes the pivot, and all others are compared with it
"""

import math
from collections.abc import Generator
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Places: TypeAlias = npt.NDArray[np.int64]
Larger: TypeAlias = npt.NDArray[np.bool_]
Pairs: TypeAlias = tuple[Places, Places]
Selecting: TypeAlias = Generator[Pairs, Larger, Places]

SAMPLE: Final = 128
FEW: Final = 256
"""So many candidates are compared all with all, where steps cost more than comparisons."""
FEW_OF_MANY: Final = 64
"""The same in large batches, where comparisons cost more than steps."""
MANY_QUERIES: Final = 4


def few_candidates(queries: int) -> int:
    """How many candidates of a query are compared all with all."""
    return FEW if queries <= MANY_QUERIES else FEW_OF_MANY


def best(candidates: Places, top: int, few: int) -> Selecting:
    """The `top` candidates with the largest keys, largest first; all of them in order if there are no more."""
    found: list[Places] = []
    while True:
        count = len(candidates)
        if top <= 0 or count == 0:
            break
        if count <= few:
            ordered = yield from _ordered(candidates)
            found.append(ordered[:top])
            break
        sample = candidates[: min(SAMPLE, max(2, count // 2))]
        in_order = yield from _ordered(sample)
        place = pivot_place(len(sample), count, top)
        pivot, above, below = in_order[place], in_order[:place], in_order[place + 1 :]
        rest = candidates[len(sample) :]
        larger = yield rest, np.full(len(rest), pivot)
        above, below = np.concatenate([rest[larger], above]), np.concatenate([rest[~larger], below])
        if len(above) >= top:
            candidates = above
            continue
        # All above the pivot are wanted, the pivot, too, and some of those below.
        ordered = yield from best(above, len(above), few)
        found += [ordered, np.array([pivot])]
        top -= len(above) + 1
        candidates = below
    return np.concatenate(found) if found else candidates[:0]


def pivot_place(sample: int, count: int, top: int) -> int:
    """Which of a sample, largest first, is the pivot.

    With a margin, so that hardly ever fewer than `top` candidates are above it. The median where most are wanted.
    """
    if 2 * top >= count:
        return sample // 2
    share = sample * top / count
    return min(sample - 1, math.ceil(share + 2 * math.sqrt(share)))


def _ordered(candidates: Places) -> Selecting:
    """All of them, largest first, from one step in which all pairs are compared."""
    count = len(candidates)
    if count < 2:
        return candidates
    first, second = np.triu_indices(count, 1)
    larger = yield candidates[first], candidates[second]
    wins = np.bincount(first[larger], minlength=count) + np.bincount(second[~larger], minlength=count)
    return candidates[np.argsort(-wins, kind="stable")]
