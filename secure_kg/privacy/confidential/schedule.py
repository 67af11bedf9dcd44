"""Algorithm 1's choice of batches: from whichever part was used less, so that both are used evenly.

As printed, the next batch is from C if m_U / m_C > |U| / |C|, m being the statements used so far, from U if it is
smaller, and a coin decides otherwise. That is m_U / |U| against m_C / |C|: passes over each part. Passes are counted
here, which makes the same choices and leaves the size of C, which is private, out of it.
"""

from collections.abc import Iterator
from typing import Literal

from secure_kg.foundation.seeds import generator

Part = Literal["U", "C"]


def batches(passes: int, rates: dict[Part, float], seed: int) -> Iterator[Part]:
    """The parts of batches in order, until each part that has a rate was passed over `passes` times.

    `rates`: how much of a part a batch takes, on average. A part that the arm does not use has none.
    """
    left: dict[Part, int] = {part: round(passes / rate) for part, rate in rates.items()}
    taken: dict[Part, int] = dict.fromkeys(rates, 0)
    coins = generator(seed, "choice of batches")
    while any(left[part] > taken[part] for part in rates):
        part = _next(taken, rates, left, bool(coins.random() < 0.5))
        taken[part] += 1
        yield part


def _next(taken: dict[Part, int], rates: dict[Part, float], left: dict[Part, int], coin: bool) -> Part:
    open_parts = [part for part in rates if taken[part] < left[part]]
    if len(open_parts) == 1:
        return open_parts[0]
    passed = {part: taken[part] * rates[part] for part in open_parts}
    if passed["U"] == passed["C"]:
        return "C" if coin else "U"
    return "C" if passed["U"] > passed["C"] else "U"


def steps_on(part: Part, passes: int, rates: dict[Part, float]) -> int:
    """How many batches of a part the schedule has; public, and what an accountant is asked about."""
    return round(passes / rates[part]) if part in rates else 0
