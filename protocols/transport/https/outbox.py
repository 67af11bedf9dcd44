"""Frames on their way to a peer, kept until it has acknowledged them. Pure: no connection, clock or lock."""

from collections import deque
from dataclasses import dataclass, field

from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.wire import Frame
from protocols.transport.https import pieces
from protocols.transport.https.limits import PIECE_BYTES, PIECE_OVERHEAD, LinkLimits

_PER_PIECE = PIECE_BYTES + PIECE_OVERHEAD


@dataclass(frozen=True, slots=True)
class _Outgoing:
    frame: memoryview = field(repr=False)
    first: int
    """Number of its first piece."""
    start: int
    """Bytes counted before it, over the whole life of the link."""

    @property
    def last(self) -> int:
        return self.first + max(1, -(-len(self.frame) // PIECE_BYTES)) - 1

    @property
    def end(self) -> int:
        return self.start + len(self.frame) + PIECE_OVERHEAD * (self.last - self.first + 1)


class Outbox:
    """One direction of a link, at its sender. The peer's numbers are checked: nobody acknowledges what was not sent."""

    def __init__(self, limits: LinkLimits) -> None:
        self._limits = limits
        self._frames = deque[_Outgoing]()
        self._at = 0
        """Index of the frame whose piece is next."""
        self._next = 1
        self._granted = 0
        self._count, self._spent = 0, 0
        self.acknowledged = 0
        self.bytes = 0
        """Of frames that are kept."""

    @property
    def full(self) -> bool:
        """Whether another frame has to wait."""
        return self.bytes >= self._limits.window_bytes or len(self._frames) >= self._limits.window_frames

    @property
    def empty(self) -> bool:
        """Whether everything was acknowledged."""
        return not self._frames

    @property
    def sent(self) -> bool:
        """Whether every piece has been sent on this connection or acknowledged."""
        return self._at == len(self._frames)

    def append(self, frame: Frame) -> None:
        outgoing = _Outgoing(memoryview(frame), self._count + 1, self._spent)
        self._frames.append(outgoing)
        self._count, self._spent = outgoing.last, outgoing.end
        self.bytes += len(outgoing.frame)

    def next_piece(self) -> bytes | None:
        """The next piece, if there is one that the peer has room for."""
        if self.sent:
            return None
        outgoing = self._frames[self._at]
        index = self._next - outgoing.first
        payload = outgoing.frame[index * PIECE_BYTES : (index + 1) * PIECE_BYTES]
        if outgoing.start + index * _PER_PIECE + PIECE_OVERHEAD + len(payload) > self._granted:
            return None
        piece = pieces.data(self._next, len(outgoing.frame) if index == 0 else None, payload)
        if self._next == outgoing.last:
            self._at += 1
        self._next += 1
        return piece

    def acknowledge(self, received: int, granted: int) -> None:
        """The peer has everything up to `received`, and room for `granted` bytes in all."""
        if received >= self._next:
            raise PeerMisbehaved("acknowledged what was not sent")
        if received < self.acknowledged or granted < self._granted:
            raise PeerMisbehaved("took back what it had acknowledged or granted")
        self.acknowledged, self._granted = received, granted
        while self._frames and self._frames[0].last <= received:
            self.bytes -= len(self._frames.popleft().frame)
            self._at -= 1

    def resume(self, received: int, granted: int) -> None:
        """On another connection: go on after what the peer has."""
        self.acknowledge(received, granted)
        self._next = received + 1
        self._at = next((at for at, one in enumerate(self._frames) if one.last > received), len(self._frames))

    def clear(self) -> None:
        """Forget all frames: nobody will read them."""
        self._frames.clear()
        self._at, self.bytes = 0, 0
