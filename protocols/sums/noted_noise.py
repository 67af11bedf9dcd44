"""Noise of which its own client takes note: for attacks by a client that is curious about the others.

A client draws its share of the noise itself, so nothing can keep it from knowing that share. An attack that left it in
the totals would understate the risk.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.primitives.fixed_point import FixedPoint
from protocols.primitives.group import RingVector
from protocols.sums.noise import KeyOf, Noise
from protocols.sums.terms import Layout, SumTerms

Drawn: TypeAlias = npt.NDArray[np.float32]
"""What was added to the real entries of a contribution [entries]."""


class NotedNoise(Noise):
    """The same noise, told with its round to whoever adds it."""

    def __init__(self, noise: Noise, note: Callable[[int, Drawn], None]) -> None:
        self._noise, self._note = noise, note

    @property
    def bound(self) -> float:
        return self._noise.bound

    def bound_in(self, round_id: int) -> float:
        return self._noise.bound_in(round_id)

    def require_room(self, codec: FixedPoint) -> None:
        self._noise.require_room(codec)

    def require_enough(self, participants: int, missing: int) -> None:
        self._noise.require_enough(participants, missing)

    def keyed(self, key_of: KeyOf) -> "NotedNoise":
        return NotedNoise(self._noise.keyed(key_of), self._note)

    def add_to(self, vector: RingVector, codec: FixedPoint, terms: SumTerms[Layout]) -> None:
        before = vector.copy()
        self._noise.add_to(vector, codec, terms)
        ring = codec.ring
        ring.subtract_into(noise := vector.copy(), before)
        added = ring.signed(noise)  # modulo the ring, with its sign
        self._note(int(terms.round), (added * codec.unit).astype(np.float32))
