"""Shares of noise: every client adds a part, and the sum has all the noise that its privacy needs.

Parties:     n clients, of which c may be corrupt and d may drop out of a sum; the server; whoever reads totals.
Adversary:   the server and the corrupt clients, who know or leave out their own noise. A client that is curious about
             the others is one of them, so c is at least 1 unless nobody but the server is feared.
Guarantee:   each client adds N_Z(0, sigma^2 / (n - c - d)) to every entry, so the n - c - d honest shares that are in
             every opened sum have a variance of sigma^2 or more. A sum with more dropouts is not opened
             (`require_enough`).
Assumes:     masks hide single contributions (`protocols.sums.secagg`), contributions are clipped as is said below.
Not covered: a sum in clear, where a contribution stands beside its own small share. Dropouts that a client does not
             see, in a sparse graph. Counts and results, which have no noise.

**Shares against one Gaussian.** All widths in units of the ring. Let e(r) = 2 sum_{j>=1} exp(-2 pi^2 r^2 j^2). By
Poisson's summation, sum over integers z of exp(-(z - y)^2 / 2 r^2) is r (2 pi)^1/2 within a factor of 1 +- e(r), for
every real y.

1. The sum of m independent N_Z(0, s^2) has the probabilities of N_Z(0, m s^2) within a factor of exp(+-tau), with
   tau = 10 sum_{k=1..m-1} exp(-2 pi^2 s^2 k / (k + 1)) (Kairouz, Liu, Steinke: The Distributed Discrete Gaussian
   Mechanism, ICML 2021). For s >= 10, the least that is allowed here, tau is below 10^-427 for every share: nothing.
2. N_Z(x, S^2) around an integer x is what comes of a continuous N(x, S^2 - r^2) if one rounds its value y to the
   integer z with probability ~ exp(-(z - y)^2 / 2 r^2), within a factor of (1 + e(r)) / (1 - e(r)). To see it, multiply
   the two densities and integrate over y; their product is that of N(x, S^2) at z, and both normalisations are within
   1 +- e(r) (Peikert: An Efficient and Parallel Gaussian Sampler for Lattices, CRYPTO 2010, has the same for lattices).
   Rounding does not look at data. So a release with N_Z(0, S^2) is as private as one with the continuous Gaussian of
   variance S^2 - r^2, under composition, sampling and filters alike, but for 2 log((1 + e) / (1 - e)) of epsilon for
   each entry. With r = 2 that is 10^-33.

**Sensitivity in integers.** Clipping to the bound of the sum is 1-Lipschitz in every entry. Rounding to the ring adds
less than a unit to the difference of two values, and nothing where there is none. If a triple moves k entries by at
most D in L2, it moves the integers by at most D / unit + k^1/2 (`integer_sensitivity`). Sums never wrap: the layout has
room for all contributions with `bound` (`SumLayout.noise_bound`).

**Noise that falls.** Where contributions are scaled by a step size that falls linearly from round to round, so is the
sensitivity, and the deviation falls with it: from `deviation` in `first_round` to `last` times as much in `last_round`.
What must be known before the first sum, the room in the ring, is that of the largest.

**Draws that repeat.** With `key_of` the key of a contribution's draws is a pseudorandom function of all that they are
added to: the encoded contribution itself, round, purpose, unit and this noise. The same contribution made again gets
the same noise and tells nothing new. Any other one gets noise of its own, so no two contributions can be subtracted.

**Cut tails.** Draws beyond 12 deviations are cut off, so that `bound` is finite. A draw is cut with probability at most
2 exp(-72); `cut_error` adds up. With the sampler's error (`sampler_error`) it is the distance in total variation
between the draws and their ideal, and costs (1 + e^epsilon) times as much of delta.
"""

import dataclasses
import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.foundation.digests import digest
from protocols.foundation.errors import EncodingOverflow, ProtocolError, SumAbandoned, UnknownProtocol
from protocols.primitives.discrete_gaussian import LARGEST, discrete_gaussian, sampling_error
from protocols.primitives.fixed_point import FixedPoint
from protocols.primitives.group import RingVector
from protocols.sums.noise import KeyOf, Noise
from protocols.sums.terms import Layout, SumTerms

Draw: TypeAlias = Callable[[float, int], npt.NDArray[np.int64]]
"""Deviation in units and number of entries to integers."""

CUT: Final = 12.0
"""In deviations of a share."""
NARROWEST: Final = 10.0
"""A share is at least so many units wide. Narrower ones would not add up to a Gaussian in silence."""
SMOOTHING: Final = 2.0
"""r of the analysis, in units."""
KIND: Final = "gaussian-shares"
_DOMAIN: Final = b"secure-kg/noise of a contribution/1"


@dataclass(frozen=True, slots=True)
class NoiseShares(Noise):
    """One client's share. Public, but for the draws."""

    deviation: float
    """Standard deviation of all noise that a sum needs, sigma, as a real number."""
    clients: int
    corrupt: int = 0
    dropouts: int = 0
    first_round: int = 0
    """Contributions of earlier rounds depend on no data, and get no noise."""
    last_round: int = 0
    """When the deviation has fallen to `last` times its first value; 0: it does not fall."""
    last: float = 1.0
    draw: Draw = field(default=discrete_gaussian, repr=False, compare=False)
    key_of: KeyOf | None = field(default=None, repr=False, compare=False)
    """Of a client that must be able to repeat its draws; then `draw` is not asked."""

    def __post_init__(self) -> None:
        if not 0 < self.deviation < math.inf:
            raise UnknownProtocol(f"noise has a finite deviation above 0, not {self.deviation:g}")
        if min(self.corrupt, self.dropouts, self.first_round) < 0 or self.needed < 1:
            raise UnknownProtocol(
                f"no shares of noise for {self.clients} clients, {self.corrupt} of them corrupt and {self.dropouts} "
                "that may drop out"
            )
        falls = self.last_round != 0
        if not 0 < self.last <= 1 or (falls and self.last_round < self.first_round) or (not falls and self.last != 1):
            raise UnknownProtocol(f"noise that falls to {self.last:g} of its deviation in round {self.last_round}")

    @property
    def needed(self) -> int:
        """How many honest shares every opened sum has at least, n - c - d."""
        return self.clients - self.corrupt - self.dropouts

    @property
    def share(self) -> float:
        """Standard deviation of one client's noise, as a real number: the largest of all rounds."""
        return self.deviation / math.sqrt(self.needed)

    def left_in(self, round_id: int) -> float:
        """The part of the deviation that is left in a round."""
        if not self.last_round or round_id <= self.first_round:
            return 1.0
        if round_id >= self.last_round:
            return self.last
        return 1.0 - (1.0 - self.last) * (round_id - self.first_round) / (self.last_round - self.first_round)

    def share_in(self, round_id: int) -> float:
        """The same in one round."""
        return self.share * self.left_in(round_id)

    @property
    def bound(self) -> float:
        return CUT * self.share

    def bound_in(self, round_id: int) -> float:
        return self.bound * self.left_in(round_id) if round_id >= self.first_round else 0.0

    def require_room(self, codec: FixedPoint) -> None:
        for share in (self.share, self.share * self.last):
            units = share / codec.unit
            if not NARROWEST <= units <= LARGEST:
                limits = f"between {NARROWEST:g} and 2^52 can be"
                raise EncodingOverflow(f"a share of noise is {units:.3g} units wide: {limits}")

    def require_enough(self, participants: int, missing: int) -> None:
        if participants < self.clients:
            raise ProtocolError(f"noise of {self.clients} clients in a sum over {participants}")
        if missing > self.dropouts:
            raise SumAbandoned(f"{missing} clients are missing from a sum whose noise allows for {self.dropouts}")

    def add_to(self, vector: RingVector, codec: FixedPoint, terms: SumTerms[Layout]) -> None:
        if terms.round < self.first_round:
            return
        self.require_enough(len(terms.participants), 0)
        self.require_room(codec)
        share = self.share_in(terms.round)
        limit = math.floor(CUT * share / codec.unit)
        if self.key_of is None:
            drawn = self.draw(share / codec.unit, len(vector))
        else:
            drawn = discrete_gaussian(share / codec.unit, len(vector), self._key(vector, codec, terms, self.key_of))
        np.clip(drawn, -limit, limit, out=drawn)
        added: RingVector = drawn.astype(codec.ring.dtype)  # modulo the ring, negative numbers included
        codec.ring.add_into(vector, added)

    def _key(self, vector: RingVector, codec: FixedPoint, terms: SumTerms[Layout], key_of: KeyOf) -> bytes:
        """Bound to the contribution and to all that decides what is drawn for it."""
        about = f"{self.text} ring={codec.ring.bits} unit={codec.unit!r} entries={len(vector)}"
        bound = hashlib.sha256(digest(_DOMAIN, about.encode()))
        bound.update(np.ascontiguousarray(vector).data)
        return key_of(int(terms.round), terms.purpose, bound.digest())

    def keyed(self, key_of: KeyOf) -> "NoiseShares":
        return dataclasses.replace(self, key_of=key_of)

    def units(self, honest: int, unit: float) -> float:
        """The continuous Gaussian that `honest` shares are worth at first, its deviation in units of the ring."""
        if honest < self.needed:
            raise SumAbandoned(f"{honest} honest shares of noise, of which a sum needs {self.needed}")
        if self.share / unit < NARROWEST:
            raise EncodingOverflow(f"a share of noise is {self.share / unit:.3g} units wide: {NARROWEST:g} at least")
        return math.sqrt(honest * (self.share / unit) ** 2 - SMOOTHING**2)

    @property
    def text(self) -> str:
        """As settings and blocks have it; `read_shares` reads it."""
        text = (
            f"{KIND} deviation={self.deviation!r} clients={self.clients} corrupt={self.corrupt} "
            f"dropouts={self.dropouts} first_round={self.first_round}"
        )
        return f"{text} last_round={self.last_round} last={self.last!r}" if self.last_round else text


def read_shares(text: str) -> NoiseShares:
    """The noise of this text. There is one text for every noise; any other raises."""
    try:
        values = dict(part.split("=") for part in text.split(" ")[1:])
        deviation, last = float(values.pop("deviation")), float(values.pop("last", "1.0"))
        whole = {name: int(value) for name, value in values.items()}
        found = NoiseShares(deviation, last=last, **whole)  # type: ignore[arg-type]
    except (ValueError, TypeError, KeyError):
        raise UnknownProtocol(f"'{text}' is no noise in shares") from None
    if found.text != text:
        raise UnknownProtocol(f"'{text}' is no noise in shares: '{found.text}' is how to write it")
    return found


def integer_sensitivity(real: float, unit: float, coordinates: int) -> float:
    """L2 sensitivity in units of the ring, of contributions with L2 sensitivity `real`.

    `coordinates`: how many entries a triple may change.
    """
    return real / unit + math.sqrt(coordinates)


def smoothing_loss(entries: int, honest: int, units: float) -> float:
    """How far, in log probability, so many entries of a sum of shares are from a rounded Gaussian.

    `units`: the deviation of a share, in units of the ring.
    """
    tau = 10 * math.fsum(math.exp(-2 * (math.pi * units) ** 2 * k / (k + 1)) for k in range(1, honest))
    smooth = 2 * math.exp(-2 * (math.pi * SMOOTHING) ** 2) * 1.001  # the terms after the first are nothing
    return entries * (tau + 2 * math.atanh(smooth))


def cut_error(draws: int) -> float:
    """The probability that any of so many draws is cut off, at most."""
    return draws * 2 * math.exp(-(CUT**2) / 2)


def sampler_error(draws: int) -> float:
    """How far so many draws are from ideal ones, in total variation (`protocols.primitives.discrete_gaussian`)."""
    return sampling_error(draws)
