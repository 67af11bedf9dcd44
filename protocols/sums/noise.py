"""Noise: the last stage of a client's contribution before masks, for differential privacy.

The stages of a contribution, in this order (`protocols.sums.pipeline`):

1. *Clip.* Values beyond the bound of the sum are set to it and counted. It bounds what one client can change in a sum,
   which is what noise has to hide. So it comes before the noise, and the count never depends on noise.
2. *Encode.* Values are rounded to fixed point.
3. *Noise.* Integers are added to the encoded values, in the ring. By default nothing is added.
4. Masks, in a secure sum.

Noise comes after rounding for three reasons. What is proved of discrete noise holds for what is sent, while noise drawn
as floating-point numbers leaks through its low bits (Mironov, CCS 2012). The noise of several clients adds up exactly,
so the sum has the noise that its analysis says, and a sum and its plain twin with the same noise are equal to the last
bit. And its size is known in units of the ring, so the rule against overflow covers it: the encoding leaves room for
`Noise.bound` (`SumLayout.noise_bound`).

Only the real part of a contribution gets noise. Counts decide what is averaged and whether a sum is accepted at all. A
sum whose counts are to be hidden by noise has them among its real entries.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, TypeAlias

from protocols.foundation.errors import UnknownProtocol
from protocols.primitives.fixed_point import FixedPoint
from protocols.primitives.group import RingVector
from protocols.sums.terms import Layout, SumTerms

KeyOf: TypeAlias = Callable[[int, str, bytes], bytes]
"""Round, purpose and a digest of what noise is added to, to the key of its draws. May refuse by raising."""


class Noise(ABC):
    """Noise that every client adds to its own contribution. Public, but for the numbers that it draws."""

    @property
    @abstractmethod
    def bound(self) -> float:
        """No entry is changed by more, as a real number: draws beyond it are cut off or drawn again."""

    def bound_in(self, round_id: int) -> float:
        """The same for sums of one round."""
        return self.bound

    def require_room(self, codec: FixedPoint) -> None:  # noqa: B027  most noises have nothing to say
        """`EncodingOverflow` if this noise has no place among the units of an encoding. By default it has."""

    def require_enough(self, participants: int, missing: int) -> None:  # noqa: B027
        """`SumAbandoned` if a sum over `participants` from which so many are missing must not be opened.

        Asked by every client before it helps to open a sum. By default any sum may be.
        """

    def keyed(self, key_of: KeyOf) -> "Noise":
        """The same noise with draws that repeat for the same contribution. By default there is nothing to repeat."""
        return self

    @abstractmethod
    def add_to(self, vector: RingVector, codec: FixedPoint, terms: SumTerms[Layout]) -> None:
        """Add one client's noise to its encoded real entries, in place, modulo the ring.

        `codec` says how large a unit of the ring is. Called once per contribution.
        """


class NoNoise(Noise):
    """Adds nothing, and does not look at the vector."""

    @property
    def bound(self) -> float:
        return 0.0

    def add_to(self, vector: RingVector, codec: FixedPoint, terms: SumTerms[Layout]) -> None:
        """Nothing to add."""


NONE: Final = "none"
NO_NOISE: Final = NoNoise()
NOISES: Final[dict[str, Noise]] = {NONE: NO_NOISE}
"""Noises without parameters, by name."""


def noise_named(name: str) -> Noise:
    """The noise of this bare name (any text: `protocols.sums.noises`). An unknown one raises, it never means none."""
    if name not in NOISES:
        raise UnknownProtocol(f"unknown noise '{name}': there are {', '.join(NOISES)}")
    return NOISES[name]
