"""Masking graph of one sum: everyone with everyone, or a circulant graph on a random ring order.

Parties:     the participants of one sum. Each computes the graph from its own reckoning of the participants, so that
             nobody has to believe the server who is whose neighbour.
Adversary:   a semi-honest server with some of the participants.
Reveals:     nothing: the graph is a function of public values.
Assumes:     SHA-256 as a random oracle, and a label that was not chosen in view of who is corrupt or drops out. Then
             the ring order is a uniform one and `params` says how many neighbours are enough.
Not covered: a server that tries labels until the order suits it; it is met by the complete graph, which has no order.
Reference:   Bell et al., CCS 2020, section 3 (the randomly relabelled Harary graph of even degree).
Deviations:  the order comes from hashing a public label instead of the server's random choice.
"""

import struct
from collections.abc import Collection
from hashlib import sha256
from typing import Final

from protocols.foundation.identifiers import PartyId

_DOMAIN: Final = b"secure-kg/secagg/masking-graph/1"


class MaskingGraph:
    """The graph of one sum. `label` names the sum: it must differ between sums and be the same for all participants.

    Participants stand on a ring in the order of their hashes, and the `degree`/2 next on either side are neighbours.
    """

    def __init__(self, participants: Collection[PartyId], degree: int, label: bytes) -> None:
        count = len(participants)
        if len(set(participants)) != count:
            raise ValueError("a participant is named twice")
        if not 1 <= degree < count:
            raise ValueError(f"{count} participants cannot have {degree} neighbours each")
        if degree % 2 and degree != count - 1:
            raise ValueError(f"a degree of {degree} is neither even nor that of the complete graph")
        self.degree = degree
        if degree == count - 1:  # whatever the order is, the complete graph is the same
            self._ring = sorted(participants)
        else:
            # Fixed length, except for the label with its length in front: no two sums and parties are encoded alike.
            prefix = _DOMAIN + struct.pack("<Q", len(label)) + label
            self._ring = sorted(participants, key=lambda party: (_digest(prefix, party), party))
        self._place = {party: place for place, party in enumerate(self._ring)}

    def neighbours(self, party: PartyId) -> tuple[PartyId, ...]:
        """In ascending order, without `party`. Costs O(k log k)."""
        place = self._place.get(party)
        if place is None:
            raise ValueError(f"client {party} is no participant")
        ring, count = self._ring, len(self._ring)
        if self.degree == count - 1:
            return (*ring[:place], *ring[place + 1 :])
        half = self.degree // 2
        return tuple(sorted(ring[(place + step) % count] for step in range(-half, half + 1) if step))


def _digest(prefix: bytes, party: PartyId) -> bytes:
    return sha256(prefix + struct.pack("<Q", party)).digest()
