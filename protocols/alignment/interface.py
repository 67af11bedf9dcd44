"""Results of aligning names: positions at a client, the union at the server, whichever protocol aligned them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from protocols.foundation.errors import PeerMisbehaved


@dataclass(frozen=True, slots=True)
class Union:
    """What the server knows of an alignment."""

    size: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Positions:
    """The size of the union and the places of the client's own names in it.

    A client finds its places itself, in what every client is sent alike: a list of opaque tags, or numbers to add up.
    `digest` fingerprints that and enters the keys of all sums over the union: clients that were sent different things
    cannot add up. A server that gave everyone places of his own could otherwise make every row the row of one client.
    """

    union_size: int
    own: npt.NDArray[np.int64] = field(repr=False)
    digest: bytes = b""

    @classmethod
    def fixed(cls, union: Union) -> "Positions":
        """Of rows that every client holds in the same order, so that nothing has to be aligned."""
        return cls(union.size, np.arange(union.size, dtype=np.int64), union.digest)

    @classmethod
    def in_list(cls, tags: npt.NDArray[np.uint8], own: Sequence[bytes]) -> "Positions":
        """The places of the tags `own` in the list `tags` [union, tag bytes]; `PeerMisbehaved` unless each is there."""
        place = {row.tobytes(): index for index, row in enumerate(tags)}
        if len(place) != len(tags):
            raise PeerMisbehaved("the server's list names a tag twice")
        if not all(tag in place for tag in own):
            raise PeerMisbehaved("the server's list lacks a name of this client")
        if len(set(own)) != len(own):
            raise PeerMisbehaved("two names of this client have the same tag")
        return cls(len(tags), np.array([place[tag] for tag in own], dtype=np.int64), list_digest(tags))


def list_digest(tags: npt.NDArray[np.uint8]) -> bytes:
    """A fingerprint of a list of tags, its order and length included."""
    return hashlib.sha256(np.ascontiguousarray(tags).tobytes()).digest()
