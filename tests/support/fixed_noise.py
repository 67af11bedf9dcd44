"""A noise that is not random: the same numbers in every contribution, to be found again in the sum."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from protocols.primitives.fixed_point import FixedPoint
from protocols.primitives.group import RingVector
from protocols.sums.noise import NOISES, Noise
from protocols.sums.terms import Layout, SumTerms


@dataclass(frozen=True)
class FixedNoise(Noise):
    """The entries of every contribution are changed by `pattern`, over and over, times `units` of the ring."""

    units: int = 1
    largest: float = 0.5
    pattern: tuple[int, ...] = (-2, -1, 0, 1, 2)

    @property
    def bound(self) -> float:
        return self.largest

    def of(self, entries: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return self.units * np.resize(np.array(self.pattern, dtype=np.int64), entries)

    def add_to(self, vector: RingVector, codec: FixedPoint, terms: SumTerms[Layout]) -> None:
        added = self.of(len(vector))
        assert np.abs(added).max() * codec.unit <= self.largest
        codec.ring.add_into(vector, added.astype(vector.dtype))


@contextmanager
def registered(noise: Noise, name: str = "fixed") -> Iterator[str]:
    """The noise under a name, for as long as a test needs it."""
    NOISES[name] = noise
    try:
        yield name
    finally:
        del NOISES[name]
