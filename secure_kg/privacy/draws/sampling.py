"""Poisson samples: every triple is in a step's sample with the same probability, by itself.

The amplification by sampling that an accountant counts on holds against those who do not know the sample. The seeds of
training are public, so samples come from the operating system's randomness. For the same reason shuffled batches of a
fixed size are not offered: they are another mechanism, with another analysis.
"""

import secrets
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from secure_kg.foundation.errors import UserError

RandomBytes = Callable[[int], bytes]


def poisson_sample(count: int, rate: float, random: RandomBytes = secrets.token_bytes) -> npt.NDArray[np.int64]:
    """Which of `count` triples are in a sample, in order; at rate 1 all of them."""
    if not 0 < rate <= 1:
        raise UserError(f"a sampling rate lies above 0 and is at most 1, not {rate:g}")
    if rate == 1:
        return np.arange(count)
    draws = np.frombuffer(random(8 * count), dtype="<u8") >> np.uint64(11)  # 53 bits: exact as doubles
    return np.flatnonzero(draws < np.uint64(int(rate * 2**53)))
