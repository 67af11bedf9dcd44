"""Adding up vectors over parties: the interface that the plain sum and every secure sum share.

A contribution has a real part (embedding rows, metric sums) and a count part (who holds a row, how many triples).
Its `SumTerms` are public and computed by every party from its own configuration, never taken from the server.

A sum has two halves, so that the parties can agree on keys while the values are still being computed: `prepare`, then
whatever work a client has to do, then `contribute` on its side and `collect` on the server's. A participant that drops
out in either half is not in it; the sum is that of the others, exactly, or there is none (`SumAbandoned`).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from protocols.foundation.errors import EncodingOverflow, SumAbandoned
from protocols.foundation.identifiers import PartyId
from protocols.foundation.spent import Spent
from protocols.primitives.fixed_point import Encoded, FixedPoint
from protocols.primitives.group import GroupVector, Ring
from protocols.session.client_session import ClientSession
from protocols.session.server_session import ServerSession
from protocols.sums.noise import NO_NOISE, Noise
from protocols.sums.terms import SumTerms

R = TypeVar("R", covariant=True)


WIDEST_GRID: Final = 24
"""Bits of a number that single precision holds exactly."""


@dataclass(frozen=True, slots=True)
class MeanGrid:
    """The multiples of one unit to which the means of a narrow sum are rounded.

    A mean over c contributors is a multiple of 1/c of the unit. Where the unit is coarse that shows in single precision
    and would tell whoever gets the mean how many contributed. Rounded, it does not; and it travels in fewer bits.
    """

    fraction_bits: int
    """The unit is 2^-fraction_bits."""
    bits: int
    """Of the widest such mean, its sign included."""

    def nearest(self, means: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        scale = float(1 << self.fraction_bits)
        rounded: npt.NDArray[np.float64] = np.rint(means * scale) / scale + 0.0  # no zero is negative
        return rounded


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
    ring_bits: int
    noise_bound: float = 0.0
    """How much noise one party may add to a real entry. The encoding leaves room for it."""

    def __post_init__(self) -> None:
        if self.real_entries < 0 or self.count_entries < 0 or self.max_count < 0:
            raise EncodingOverflow("a sum with a negative number of entries")
        if self.parties * self.max_count >= 1 << (self.ring_bits - 1):
            raise EncodingOverflow(f"{self.parties} counts up to {self.max_count} could overflow {self.ring_bits} bits")
        if self.real_entries:
            self.codec  # noqa: B018  refuses what does not fit

    @property
    def group(self) -> Ring:
        return Ring(self.ring_bits)

    @property
    def codec(self) -> FixedPoint:
        return FixedPoint.widest(self.group, self.bound, self.parties, self.noise_bound)

    @property
    def largest_noise(self) -> float:
        """No sum has more noise in a real entry."""
        return self.parties * self.noise_bound

    @property
    def grid(self) -> MeanGrid | None:
        """What means of contributions are rounded to. None: to single precision, as of all but narrow rings."""
        if self.ring_bits > WIDEST_GRID or not self.real_entries:
            return None
        codec = self.codec
        largest = math.ceil((codec.largest_value + self.largest_noise) * codec.scale)
        bits = largest.bit_length() + 1
        return MeanGrid(codec.fraction_bits, bits) if bits <= WIDEST_GRID else None

    @property
    def entries(self) -> int:
        return self.real_entries + self.count_entries

    def encode(self, contribution: "Contribution", into: GroupVector | None = None) -> Encoded:
        """One ring vector: the real part, clipped and in fixed point, then the counts. Without noise (`pipeline`).

        `into`: a vector that is no longer needed. Fresh memory costs as much as the encoding itself.
        """
        contribution.check(self)
        vector: GroupVector = np.empty(self.entries, dtype=self.group.dtype) if into is None else into
        self.group.require_room(vector, self.entries)
        vector[self.real_entries :] = contribution.counts.astype(self.group.dtype)
        if not self.real_entries:
            return Encoded(vector=vector, clipped=0, max_error=0.0)
        real = self.codec.encode_into(contribution.real, vector[: self.real_entries])
        return Encoded(vector, real.clipped, real.max_error)

    def decode(self, total: GroupVector) -> "Total":
        """The sum of encoded contributions as numbers. `SumAbandoned` for a vector that is no such sum."""
        real = np.zeros(0) if not self.real_entries else self.codec.decode(total[: self.real_entries])
        counts = total[self.real_entries :]
        # Noise, as masks leave that did not cancel, hardly ever looks like small counts.
        if self.count_entries and int(counts.max()) > self.parties * self.max_count:
            raise SumAbandoned("the sum is larger than its contributions can be: some were masked under other terms")
        return Total(real, counts.astype(np.int64), self.grid)


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one party adds. Private: kept out of reprs."""

    real: npt.NDArray[np.floating] = field(repr=False)
    counts: npt.NDArray[np.integer] = field(repr=False)
    noise: Noise = field(default=NO_NOISE, repr=False)
    """Added to the real part once it is encoded (`protocols.sums.noise`)."""

    def check(self, layout: SumLayout) -> None:
        if self.real.shape != (layout.real_entries,) or self.counts.shape != (layout.count_entries,):
            raise EncodingOverflow("a contribution does not have the shape of its sum")
        if layout.count_entries and not (int(self.counts.min()) >= 0 and int(self.counts.max()) <= layout.max_count):
            raise EncodingOverflow(f"a count lies outside 0..{layout.max_count}")
        if self.noise.bound > layout.noise_bound:
            raise EncodingOverflow(f"noise up to {self.noise.bound:g} in a sum with room for {layout.noise_bound:g}")


@dataclass(frozen=True, slots=True)
class Total:
    """The sum over the contributors."""

    real: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]
    grid: MeanGrid | None = None
    """To what means of it are rounded."""


@dataclass(frozen=True, slots=True)
class Collected:
    """A sum, and the clients whose contributions are in it."""

    total: Total
    contributors: frozenset[PartyId]


@dataclass(frozen=True, slots=True)
class ContributionReport:
    """What a contribution cost and lost on the way; known to its own client only."""

    clipped: int = 0
    max_error: float = 0.0
    encoding: Spent = field(default_factory=Spent)
    masking: Spent = field(default_factory=Spent)
    """Everything cryptographic: keys, shares, masks."""

    @property
    def encode_seconds(self) -> float:
        return self.encoding.seconds

    @property
    def mask_seconds(self) -> float:
        return self.masking.seconds


MayOpen: TypeAlias = Callable[[frozenset[PartyId]], None]
"""Called before a client helps to open a sum, with those that it knows to be missing from it, in a sparse graph those
of its neighbours. Raises `SumAbandoned` if the client must not."""


@dataclass(frozen=True, slots=True)
class NotedOpening:
    """A `MayOpen` with something to be written down, once nobody else's word speaks against the opening either."""

    may: MayOpen
    note: MayOpen
    """May refuse as well: another session may have written something in between."""

    def __call__(self, missing: frozenset[PartyId]) -> None:
        self.may(missing)


class SumClient(ABC):
    """A client's part in the sums of one session."""

    @abstractmethod
    def setup(self, session: ClientSession) -> None:
        """Agree on whatever the sums of this session need. Called once."""

    @abstractmethod
    def prepare(self, session: ClientSession, terms: SumTerms[SumLayout]) -> None:
        """Agree on whatever this sum needs, before the values are known. At most once per round and purpose."""

    @abstractmethod
    def contribute(
        self,
        session: ClientSession,
        terms: SumTerms[SumLayout],
        contribution: Contribution,
        may_open: MayOpen | None = None,
    ) -> ContributionReport:
        """Send the contribution to a sum that is prepared, and help to finish it."""


class SumServer(ABC, Generic[R]):
    """The server's part in the sums of one session. R: what it gets to know, usually `Collected`."""

    @property
    @abstractmethod
    def unmasking(self) -> Spent:
        """Time spent adding up and reading the sums, so far."""

    @property
    def unmask_seconds(self) -> float:
        return self.unmasking.seconds

    @abstractmethod
    def setup(self, session: ServerSession) -> None:
        """The counterpart of `SumClient.setup`."""

    @abstractmethod
    def prepare(self, session: ServerSession, terms: SumTerms[SumLayout]) -> None:
        """The counterpart of `SumClient.prepare`, with those of the participants that are present."""

    @abstractmethod
    def collect(self, session: ServerSession, terms: SumTerms[SumLayout]) -> R:
        """Add up the contributions of those who are still present; `SumAbandoned` if they are too few."""
