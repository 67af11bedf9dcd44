"""The uniformity test itself: it passes good noise and fails what a broken mask would leave."""

import numpy as np
import numpy.typing as npt
import pytest

from tests.support.uniformity import ENTRIES, looks_uniform

RNG = np.random.default_rng(5)
NOISE = RNG.integers(0, 2**64, ENTRIES, dtype=np.uint64)
SMALL = np.rint(RNG.normal(0, 2.0**20, ENTRIES)).astype(np.int64).view(np.uint64)


def test_noise_passes() -> None:
    assert looks_uniform(NOISE)
    assert looks_uniform(NOISE.astype(np.uint32))
    assert looks_uniform(NOISE + SMALL)


@pytest.mark.parametrize(
    "vector",
    [
        np.zeros(ENTRIES, dtype=np.uint64),
        np.arange(ENTRIES, dtype=np.uint64),
        SMALL,
        SMALL + NOISE[0],
        SMALL + (NOISE >> np.uint64(32)),
        np.tile(NOISE[: ENTRIES // 16], 16),
    ],
    ids=["zeros", "counter", "unmasked", "one mask for all entries", "mask of half the width", "repeating mask"],
)
def test_what_is_not_noise_fails(vector: npt.NDArray[np.uint64]) -> None:
    assert not looks_uniform(vector)


def test_too_little_is_not_judged() -> None:
    with pytest.raises(ValueError, match="too few"):
        looks_uniform(NOISE[:-1])
