"""The server of the pairwise-masked sum: it relays keys and adds vectors. It holds no secret."""

from collections.abc import Collection, Mapping

from protocols.errors import PeerMisbehaved, UnexpectedMessage
from protocols.identifiers import PartyId
from protocols.primitives.group import Ring, RingVector
from protocols.secagg.messages import AdvertiseKeys, KeyDirectory, MaskedInput


def directory_of(adverts: Mapping[PartyId, AdvertiseKeys]) -> KeyDirectory:
    """What every client is told after all have advertised."""
    return KeyDirectory({int(party): advert.mask_key for party, advert in sorted(adverts.items())})


class MaskedSum:
    """One sum under way: inputs are added as they arrive and not kept. The masks cancel when the last one is in."""

    def __init__(self, ring: Ring, entries: int, purpose: str, participants: Collection[PartyId]) -> None:
        self._ring = ring
        self._entries = entries
        self._purpose = purpose
        self._missing = set(participants)
        self._total = ring.zeros(entries)

    def add(self, party: PartyId, masked: MaskedInput) -> None:
        if party not in self._missing:
            raise UnexpectedMessage(f"client {party} is no participant or has contributed already")
        if masked.purpose != self._purpose:
            raise PeerMisbehaved(f"client {party} contributed to another sum")
        try:
            self._ring.require(masked.vector, self._entries)
        except ValueError:
            raise PeerMisbehaved(f"client {party} contributed a vector of another length or ring") from None
        self._ring.add_into(self._total, masked.vector)
        self._missing.discard(party)

    def total(self) -> RingVector:
        """The sum of the inputs; before the last input it would be noise, so it is refused."""
        if self._missing:
            raise UnexpectedMessage(f"{len(self._missing)} participants have not contributed")
        return self._total
