"""A cork: short frames are kept for a moment, so that those to one peer leave together. Pure: nothing is sent here."""

from collections.abc import Collection

from protocols.foundation.identifiers import PartyId
from protocols.foundation.wire import Frame
from protocols.transport.packets import FRAME_BYTES, MOST_FRAMES


class Cork:
    """What is kept for each peer, in the order in which it was sent."""

    def __init__(self) -> None:
        self._kept: dict[PartyId, list[Frame]] = {}
        self._bytes: dict[PartyId, int] = {}
        self.depth = 0
        """Blocks under way in which frames are kept."""
        self.stuck = set[PartyId]()
        """Those that have not taken what was kept for them."""

    def keep(self, to: PartyId, frame: Frame) -> bool:
        """False if this frame does not go with those that are kept: then all of them leave, and this one after them."""
        size = self._bytes.get(to, 0) + len(frame)
        if not self.depth or not len(frame) or size > FRAME_BYTES or len(self._kept.get(to, ())) >= MOST_FRAMES:
            return False
        self._kept.setdefault(to, []).append(frame)
        self._bytes[to] = size
        return True

    @property
    def peers(self) -> list[PartyId]:
        """Those for whom something is kept."""
        return sorted(self._kept)

    def draw(self, to: PartyId) -> list[Frame]:
        """What was kept for a peer, which is then no longer kept."""
        self._bytes.pop(to, None)
        self.stuck.discard(to)
        return self._kept.pop(to, [])

    def put_back(self, to: PartyId, frames: list[Frame]) -> None:
        """Keep what could not leave, for the next time that anything is sent there."""
        if frames:
            self._kept[to], self._bytes[to] = frames, sum(map(len, frames))
            self.stuck.add(to)

    def forget(self, parties: Collection[PartyId]) -> None:
        """What was kept for peers whose processes have ended."""
        for party in parties:
            self.draw(party)
