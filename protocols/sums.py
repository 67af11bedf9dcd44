"""Adding up vectors over parties: the interface that the plain sum and every secure sum share.

A contribution has a real part (embedding rows, metric sums) and a count part (who holds a row, how many triples).
Its `SumLayout` is public and computed by every party from its own configuration, never taken from the server.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from protocols.conversation import Conversation
from protocols.errors import EncodingOverflow
from protocols.identifiers import PartyId, RoundId
from protocols.primitives.fixed_point import Encoded, FixedPoint
from protocols.primitives.group import Ring, RingVector
from protocols.transport.deadline import Deadline


@dataclass(frozen=True, slots=True)
class SumLayout:
    """How many entries a contribution has and how large they may be. Parameters that could overflow are refused."""

    real_entries: int
    count_entries: int
    bound: float
    """Real entries are clipped to ±bound; clipped ones are counted."""
    max_count: int
    """Largest count of one party; a larger one is refused."""
    parties: int
    """How many contributions may be added at most."""
    ring_bits: Literal[32, 64]

    def __post_init__(self) -> None:
        if self.real_entries < 0 or self.count_entries < 0 or self.max_count < 0:
            raise EncodingOverflow("a sum with a negative number of entries")
        if self.parties * self.max_count >= 1 << (self.ring_bits - 1):
            raise EncodingOverflow(f"{self.parties} counts up to {self.max_count} could overflow {self.ring_bits} bits")
        if self.real_entries:
            self.codec  # noqa: B018  refuses what does not fit

    @property
    def ring(self) -> Ring:
        return Ring(self.ring_bits)

    @property
    def codec(self) -> FixedPoint:
        return FixedPoint.widest(self.ring, self.bound, self.parties)

    @property
    def entries(self) -> int:
        return self.real_entries + self.count_entries

    def encode(self, contribution: "Contribution") -> Encoded:
        """One ring vector: the real part in fixed point, then the counts."""
        contribution.check(self)
        counts = contribution.counts.astype(self.ring.dtype)
        if not self.real_entries:
            return Encoded(vector=counts, clipped=0, max_error=0.0)
        real = self.codec.encode(contribution.real)
        return Encoded(np.concatenate([real.vector, counts]), real.clipped, real.max_error)

    def decode(self, total: RingVector) -> "Total":
        """The sum of encoded contributions as numbers."""
        real = np.zeros(0) if not self.real_entries else self.codec.decode(total[: self.real_entries])
        return Total(real, total[self.real_entries :].astype(np.int64))


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one party adds. Private: kept out of reprs."""

    real: npt.NDArray[np.floating] = field(repr=False)
    counts: npt.NDArray[np.integer] = field(repr=False)

    def check(self, layout: SumLayout) -> None:
        if self.real.shape != (layout.real_entries,) or self.counts.shape != (layout.count_entries,):
            raise EncodingOverflow("a contribution does not have the shape of its sum")
        if layout.count_entries and not (int(self.counts.min()) >= 0 and int(self.counts.max()) <= layout.max_count):
            raise EncodingOverflow(f"a count lies outside 0..{layout.max_count}")
        if not np.isfinite(self.real).all():
            raise EncodingOverflow("a value to be summed is not finite")


@dataclass(frozen=True, slots=True)
class Total:
    """The sum over the contributors."""

    real: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ContributionReport:
    """What a contribution cost and lost on the way; known to its own client only."""

    clipped: int = 0
    max_error: float = 0.0
    encode_seconds: float = 0.0
    mask_seconds: float = 0.0


class SumClient(ABC):
    """A client's part in the sums of one session."""

    @abstractmethod
    def setup(self, conversation: Conversation, deadline: Deadline) -> None:
        """Agree on whatever the sums of this session need. Called once."""

    @abstractmethod
    def contribute(
        self,
        conversation: Conversation,
        round_id: RoundId,
        purpose: str,
        participants: Collection[PartyId],
        layout: SumLayout,
        contribution: Contribution,
    ) -> ContributionReport:
        """Send one contribution. At most once per round and purpose; `participants` is the client's own reckoning."""


class SumServer(ABC):
    """The server's part in the sums of one session."""

    unmask_seconds: float = 0.0
    """Time spent adding up and reading the sums, so far."""

    @abstractmethod
    def setup(self, conversation: Conversation, deadline: Deadline) -> None:
        """The counterpart of `SumClient.setup`."""

    @abstractmethod
    def collect(
        self,
        conversation: Conversation,
        round_id: RoundId,
        purpose: str,
        participants: Collection[PartyId],
        layout: SumLayout,
        deadline: Deadline,
    ) -> Total:
        """Receive one contribution from every participant and add them up. A silent one raises `DeadlineExpired`."""
