"""Public parameters of one batch of queries; each party derives them from its own configuration."""

import math
import struct
from dataclasses import dataclass
from typing import Final

from protocols.foundation.digests import digest, encode_parties
from protocols.foundation.errors import EncodingOverflow
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.primitives.fixed_point import FixedPoint
from protocols.primitives.group import Ring

RING: Final = Ring(32)
"""The ring of all sums of scores."""
_HEADROOM: Final = 2
"""Sums of scores stay below a quarter of the ring: a plain modulus slightly below 2^32 holds them as well."""
FEWEST_CLIENTS: Final = 2
MOST_CLIENTS: Final = 12
"""lcm(1..12) = 27720 still leaves room for positions beside a mean in 64 bits."""
_MOST_PARTIES: Final = 1 << 32
MOST_POSITIONS: Final = 1 << 20
MOST_QUERIES: Final = 1024
MOST_ANSWERS: Final = 1000
"""Per query: whole rankings of many queries would give away much of what scores do."""
_PURPOSE: Final = "scores"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTerms:
    """One batch. Parameters under which a sum of scores could overflow are refused."""

    round: RoundId
    """One per batch; no session has two batches of one round."""
    clients: tuple[PartyId, ...]
    """Who holds positions; the asker among them, unless it is a party outside."""
    asker: PartyId
    positions: int
    """Size N of the union."""
    queries: int = 1
    """Size Q of the batch."""
    top: int = 10
    """How many answers per query: k."""
    bound: float = 16.0
    """Scores are clipped to ±bound; clipped ones are counted."""
    least: int = 1
    """How many scorers must hold a position before any of them gives its score of it."""
    table: bytes = b""
    """Digest of what all clients score with: the union and the trained table. Clients with others cannot add up."""

    def __post_init__(self) -> None:
        if any(not 1 <= party < _MOST_PARTIES for party in (*self.clients, self.asker)):
            raise ValueError(f"parties of a batch have numbers in 1..{_MOST_PARTIES - 1}: the server does not ask")
        if len(set(self.clients)) != len(self.clients):
            raise ValueError("the clients of a batch are distinct")
        if not len(self.scorers) >= FEWEST_CLIENTS or len(self.clients) > MOST_CLIENTS:
            raise ValueError(
                f"{len(self.clients)} clients: a batch has {MOST_CLIENTS} at most, {FEWEST_CLIENTS} of them scorers"
            )
        for name, value, most in (
            ("positions", self.positions, MOST_POSITIONS),
            ("queries", self.queries, MOST_QUERIES),
            ("top", self.top, MOST_ANSWERS),
            ("least", self.least, len(self.scorers)),
        ):
            if not 1 <= value <= most:
                raise ValueError(f"{name} of a batch: {value}, not in 1..{most}")
        self.codec  # noqa: B018  refuses what does not fit

    @property
    def scorers(self) -> tuple[PartyId, ...]:
        """All clients but the asker."""
        return tuple(party for party in self.clients if party != self.asker)

    @property
    def asker_is_client(self) -> bool:
        return self.asker in self.clients

    @property
    def codec(self) -> FixedPoint:
        """The one encoding that all backends share."""
        widest = FixedPoint.widest(RING, self.bound, len(self.clients))
        if widest.fraction_bits < _HEADROOM:
            raise EncodingOverflow(f"{len(self.clients)} scores of ±{self.bound:g} do not fit {RING.bits} bits")
        return FixedPoint(RING, self.bound, len(self.clients), widest.fraction_bits - _HEADROOM)

    @property
    def largest_sum(self) -> int:
        """No sum of encoded scores is larger."""
        return len(self.clients) * round(self.codec.largest_value * self.codec.scale)

    @property
    def common_multiple(self) -> int:
        """L = lcm(1..n): a mean times L is a whole number of units."""
        return math.lcm(*range(1, len(self.clients) + 1))

    @property
    def cells(self) -> int:
        """How many scores a batch has per client."""
        return self.queries * self.positions

    @property
    def digest(self) -> bytes:
        """Everything that clients must agree on before they can add up."""
        numbers = struct.pack(
            "<6Qd", self.round, self.asker, self.positions, self.queries, self.top, self.least, self.bound
        )
        return digest(_PURPOSE.encode(), numbers, encode_parties(self.clients), self.table)
