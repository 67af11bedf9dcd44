"""Frames that arrive from a peer in numbered pieces. Pure: no connection, clock or lock.

Memory. A peer may send as many bytes as it was granted, counted with an overhead for each piece, and is granted

- `LinkLimits.unread_bytes` beyond what this party has taken, and
- while this party waits for the peer's next frame, all of that frame if it is no larger than that call of `receive`
  allows.

So a peer occupies at most the larger of `unread_bytes` and the largest limit of a call that waited for it, and an
eighth more while a frame grows. A frame is given memory as its bytes arrive, never for its announcement; one that is
announced larger than the call under way allows is refused, and its bytes are discarded as they come in.
"""

from collections import deque

from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.wire import MAX_FRAME_BYTES
from protocols.transport.https.limits import PIECE_BYTES, PIECE_OVERHEAD, LinkLimits


class Inbox:
    """One direction of a link, at its receiver: every piece once and in order, or the peer misbehaves."""

    def __init__(self, limits: LinkLimits) -> None:
        self._limits = limits
        self._ready = deque[tuple[bytearray, int]]()
        self._partial: bytearray | None = None
        """The frame that is arriving; None in the middle of one that is discarded."""
        self._due, self._cost = 0, 0
        """Bytes of the frame that is arriving, and what is counted of it so far."""
        self._missing = 0
        self.arrived, self._taken = 0, 0
        """Bytes counted so far, of all that has come and of all that was taken or discarded."""
        self.received = 0
        self.granted = limits.unread_bytes

    @property
    def held(self) -> int:
        """Bytes that the peer occupies."""
        return sum(len(frame) for frame, _ in self._ready) + len(self._partial or b"")

    @property
    def arriving(self) -> int | None:
        """Announced bytes of the frame that comes next, if it has begun and is not complete."""
        return None if self._ready or self._partial is None else self._due

    @property
    def readable(self) -> bool:
        return bool(self._ready)

    @property
    def wanting(self) -> bool:
        """Whether the frame that is arriving needs more room than was granted."""
        return self._missing > 0 and self.arrived + _cost_of(self._missing) > self.granted

    def take(self, number: int, total: int | None, payload: memoryview) -> bool:
        """A piece has arrived; whether a frame is complete with it. `PeerMisbehaved` if it is not the one due."""
        if number != self.received + 1:
            raise PeerMisbehaved(f"sent piece {number} where {self.received + 1} was due")
        if (total is None) != (self._missing > 0):
            raise PeerMisbehaved("began a frame within another" if self._missing else "went on with no frame")
        if total is not None and total > MAX_FRAME_BYTES:
            raise PeerMisbehaved(f"announced a frame of {total:,} bytes")
        missing = self._missing if total is None else total
        if len(payload) != min(missing, PIECE_BYTES):
            raise PeerMisbehaved("sent a piece of a wrong length")
        cost = PIECE_OVERHEAD + len(payload)
        if self.arrived + cost > self.granted:
            raise PeerMisbehaved("sent more than it had room for")
        if total is not None:
            self._partial, self._due, self._cost = bytearray(), total, 0
        self.received, self.arrived, self._missing = number, self.arrived + cost, missing - len(payload)
        if self._partial is None:  # discarded
            self._taken += cost
        else:
            self._partial += payload
            self._cost += cost
        if self._missing or self._partial is None:
            self._grant(self._taken + self._limits.unread_bytes)
            return False
        self._ready.append((self._partial, self._cost))
        self._partial = None
        return True

    def pop(self) -> bytearray | None:
        """The next frame, if it is complete."""
        if not self._ready:
            return None
        frame, cost = self._ready.popleft()
        self._taken += cost
        self._grant(self._taken + self._limits.unread_bytes)
        return frame

    def allow(self, limit: int) -> bool:
        """Somebody waits for a frame of up to `limit` bytes; whether the peer is granted more for it."""
        if self.arriving is None or self._due > limit:
            return False
        return self._grant(self.arrived + _cost_of(self._missing))

    def discard(self) -> None:
        """The frame that is arriving is too large: its bytes are given no memory any more."""
        if self._partial is None:
            return
        self._partial = None
        self._taken += self._cost
        self._grant(self._taken + self._limits.unread_bytes)

    def clear(self) -> None:
        """Forget what has come: nobody will read it."""
        self._ready.clear()
        self._partial = None

    def _grant(self, bytes_in_all: int) -> bool:
        more = bytes_in_all > self.granted
        self.granted = max(self.granted, bytes_in_all)
        return more


def _cost_of(size: int) -> int:
    """What so many bytes are counted as, with the pieces in which they come."""
    return size + PIECE_OVERHEAD * -(-size // PIECE_BYTES)
