"""One attempt at a union: what every party reckons for itself, and what is sent to all clients in the end.

The table of an attempt has room for a bound on the union. If peeling fails, because the bound was too low or by bad
luck (one case in 1000), there is another attempt with four times the bound. Everything is fresh in every attempt: the
cells, the key of the tags, the weights, the masks. So the server cannot match what it has read from a table that failed
with the tags of a later one.

Whether a table could be read is the server's word: what would prove it to a client are tags. And a client that sends
noise in place of a table makes every attempt fail. So each client counts for itself and stops after `MAX_ATTEMPTS`,
with tables for the bound, four times and sixteen times as many names.
"""

import struct
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from protocols.alignment.interface import Positions
from protocols.alignment.psu.layout import TableLayout
from protocols.alignment.psu.places import MAX_UNION, PlaceNumbers, positions_in
from protocols.foundation import wire
from protocols.foundation.digests import digest
from protocols.foundation.errors import PeerMisbehaved, ProtocolError
from protocols.foundation.frame_sizes import LONGEST_NUMBER, array_bytes, frame_bytes, text_bytes
from protocols.foundation.identifiers import SETUP, PartyId, SessionId
from protocols.primitives.group import FieldArray, PrimeField
from protocols.session.conversation import MAX_PURPOSE
from protocols.session.group_key import GroupKey
from protocols.sums.terms import SumTerms, VectorLayout

GROWTH: Final = 4
MAX_ATTEMPTS: Final = 3
MAX_BOUND: Final = 1 << 24
"""A table for so many names has 659 MB; one for twice as many would not fit a frame."""
_DOMAIN: Final = b"secure-kg/psu/attempt/1"
_FIELD: Final = PrimeField()


@wire.message(0x0301, wire.MAX_FRAME_BYTES)
class UnionPlaces(wire.Message, frozen=True):
    """Server to client, the same for all: the size of the union and the numbers that give positions (`places`).

    Size zero and no numbers: the table could not be peeled, so there is another attempt.
    """

    purpose: str
    size: int
    places: np.ndarray[Any, Any]

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        wire.require(0 <= self.size < MAX_UNION, "a size out of range")
        wire.require_array(self.places, "<u4", ndim=1)
        wire.require((self.size == 0) == (len(self.places) == 0), "a size without places, or places without a size")
        wire.require(int(self.places.max(initial=0)) < max(1, self.size), "a place beyond the union")


@dataclass(frozen=True, slots=True)
class UnionTerms:
    """Public parameters of one alignment; each party has them in its own configuration."""

    participants: tuple[PartyId, ...]
    """All that may take part."""
    bound: int
    """How many names the union may have in the first attempt."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """Number `number` (from zero) for a union of at most `bound` names; the sum it needs, its salt and its keys."""

    number: int
    layout: TableLayout
    commitment: bytes
    """To the key from which the tags' key is derived: clients with different keys cannot add up."""

    @classmethod
    def of(cls, number: int, bound: int, session: SessionId, commitment: bytes) -> "Attempt":
        """`bound`: of the first attempt. `ProtocolError` if there were enough, or no table for this one can be sent."""
        if bound < 1:
            raise ValueError(f"a union of at most {bound} names")
        room = bound * GROWTH**number
        if number >= MAX_ATTEMPTS or (number and room > MAX_BOUND):
            failed = f"{number} tables" if number > 1 else "a table"
            raise ProtocolError(
                f"no union: {failed} could not be read, the last one for {room // GROWTH:,} names; a client may have "
                "sent what is no table, or there are more names than that: then raise --union-bound"
            )
        if room > MAX_BOUND:
            raise ProtocolError(f"no union: a table for {room:,} names is too large, {MAX_BOUND:,} fit")
        salt = digest(_DOMAIN, b"salt", session, struct.pack("<Q", number), commitment)
        return cls(number, TableLayout.for_bound(room, salt), commitment)

    @property
    def purpose(self) -> str:
        return f"union/{self.number}"

    @property
    def model(self) -> bytes:
        """A digest of all that clients must agree on before their tables may be added."""
        return digest(_DOMAIN, b"terms", struct.pack("<Q", self.layout.third), self.layout.salt, self.commitment)

    def terms(self, clients: tuple[PartyId, ...], state: bytes = b"") -> SumTerms[VectorLayout]:
        """Of the sum of tables. `state`: a client's commitment to its names."""
        return SumTerms(SETUP, self.purpose, clients, VectorLayout(_FIELD, self.layout.entries), self.model, state)

    def tag_key(self, key: GroupKey) -> bytes:
        """For the tags of this attempt and of no other."""
        return key.derive(f"union tags/{self.number}", SETUP, binding=self.model)

    def again(self) -> UnionPlaces:
        return UnionPlaces(self.purpose, 0, np.zeros(0, dtype=np.uint32))

    def digest(self, answer: UnionPlaces) -> bytes:
        """A fingerprint of what all clients were sent; later sums over the union are bound to it."""
        numbers = np.ascontiguousarray(answer.places, dtype="<u4")
        return digest(_DOMAIN, b"places", self.model, struct.pack("<Q", answer.size), numbers.tobytes())

    def look_up(self, answer: UnionPlaces, tags: FieldArray) -> "LookedUp":
        """The positions of the tags [n, 2], all different, and what is wrong with them.

        `PeerMisbehaved` for what every client sees in the answer, whatever names it holds.
        """
        places: PlaceNumbers = answer.places
        if len(places) != self.layout.cells:
            raise PeerMisbehaved(f"the server sent {len(places)} places for a table of {self.layout.cells} cells")
        if not 1 <= answer.size <= self.layout.cells:
            raise PeerMisbehaved(f"the server claims a union of {answer.size}, which cannot be its size")
        own: npt.NDArray[np.int64] = positions_in(places, answer.size, tags, self.layout)
        found = Positions(answer.size, own, self.digest(answer))
        if len(tags) > answer.size:
            return LookedUp(found, f"a union of {answer.size} names, of which this client alone has {len(tags)}")
        taken = np.zeros(answer.size, dtype=np.bool_)
        taken[own] = True
        if np.count_nonzero(taken) != len(own):
            return LookedUp(found, "two names of this client have the same position")
        return LookedUp(found)


@dataclass(frozen=True, slots=True)
class LookedUp:
    """What a client finds in an answer."""

    positions: Positions
    objection: str = field(default="", repr=False)
    """Why the positions cannot be right, by the names that this client holds: for its own log alone (`vote`)."""


def union_places_bytes(purpose: str, cells: int) -> int:
    """The largest size of a `UnionPlaces` frame, for a table of so many cells."""
    return frame_bytes(text_bytes(purpose), LONGEST_NUMBER, array_bytes(cells, 4))
