"""A link: what one pair of incarnations has sent each other, over any number of connections. Pure: no input or output.

An incarnation is one transport object of a client, or one server. Between two of them every frame arrives exactly once
and in order, or not at all once the link has ended.
"""

from typing import Final

from protocols.foundation.errors import ProtocolError
from protocols.foundation.wire import Frame
from protocols.transport.https import pieces
from protocols.transport.https.inbox import Inbox
from protocols.transport.https.limits import PIECE_BYTES, PIECE_OVERHEAD, LinkLimits
from protocols.transport.https.outbox import Outbox

_ACK_SECONDS: Final = 0.02
_ACK_PIECES: Final = 16
"""Acknowledged after so many pieces, or so long after the first of them: small messages are answered anyway."""


class Link:
    """Both directions. All methods are called under one lock of the caller."""

    def __init__(self, limits: LinkLimits) -> None:
        self._limits = limits
        self.outbox, self.inbox = Outbox(limits), Inbox(limits)
        self.attempt = -1
        """Number of the newest connection that the client has begun."""
        self.ended: ProtocolError | None = None
        """What is raised once nothing more is left to read."""
        self.closing = False
        self.told_end = False
        """On this connection."""
        self._acked, self._told_granted = 0, 0
        self._ack_at: float | None = None

    def post(self, frame: Frame) -> None:
        self.outbox.append(frame)

    def pop(self) -> bytearray | None:
        return self.inbox.pop()

    def end(self, problem: ProtocolError) -> None:
        """Nothing more is sent or taken; frames that have arrived can still be read."""
        if self.ended is None:
            self.ended = problem
        self.outbox.clear()

    @property
    def drained(self) -> bool:
        """Whether everything was acknowledged, and the end was told if there is one to tell."""
        return self.outbox.empty and (self.told_end or not self.closing)

    def greet(self) -> tuple[int, int]:
        """What a new connection begins with: the number of the last piece that has come, and the bytes granted.

        Room that is granted after this is told by acknowledgements: a frame may be taken while the peer is greeted.
        """
        self._acked, self._told_granted, self._ack_at = self.inbox.received, self.inbox.granted, None
        return self._acked, self._told_granted

    def resume(self, received: int, granted: int) -> None:
        """On a new connection, whose other end has said what it has."""
        self.outbox.resume(received, granted)
        self.told_end = False

    def take(self, piece: pieces.Data | pieces.Ack, now: float) -> bool:
        """A piece has arrived; whether somebody who waits for frames or for room should look again."""
        if isinstance(piece, pieces.Ack):
            was_full = self.outbox.full
            self.outbox.acknowledge(piece.received, piece.granted)
            return was_full or self.outbox.empty
        complete = self.inbox.take(piece.number, piece.total, piece.payload)
        if self._ack_at is None:
            self._ack_at = now + _ACK_SECONDS
        return complete or self.inbox.wanting

    def next_piece(self, now: float) -> bytes | None:
        """What is to be sent now, if anything."""
        if self._ack_is_due(now):
            self._acked, self._told_granted, self._ack_at = self.inbox.received, self.inbox.granted, None
            return pieces.ack(self._acked, self._told_granted)
        piece = self.outbox.next_piece()
        if piece is None and self.closing and not self.told_end and self.outbox.sent:
            self.told_end = True
            return pieces.END
        return piece

    def last_ack(self) -> bytes:
        """The peer has said all: now it may forget it."""
        return pieces.ack(self.inbox.received, self.inbox.granted)

    def next_ack(self, now: float) -> float | None:
        """Seconds until there is something to acknowledge."""
        return None if self._ack_at is None else max(0.0, self._ack_at - now)

    @property
    def credit_is_due(self) -> bool:
        """Whether the peer has so much more room that it should hear of it at once, or may be waiting for room."""
        more = self.inbox.granted - self._told_granted
        waiting = self._told_granted - self.inbox.arrived < PIECE_BYTES + PIECE_OVERHEAD
        return more >= self._limits.unread_bytes // 4 or (more > 0 and waiting)

    def _ack_is_due(self, now: float) -> bool:
        if self.credit_is_due:
            return True
        return self._ack_at is not None and (now >= self._ack_at or self.inbox.received - self._acked >= _ACK_PIECES)
