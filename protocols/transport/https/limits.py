"""Limits of a link: how much memory a peer may take, and how long one waits for it."""

from dataclasses import dataclass
from typing import Final

PIECE_BYTES: Final = 1 << 18
"""Bytes of a frame in one message: so much is repeated at most when a connection breaks. Both ends must agree on it."""
PIECE_OVERHEAD: Final = 128
"""Added to each piece when bytes are counted against a limit, so that empty frames are not free."""


@dataclass(frozen=True, slots=True)
class LinkLimits:
    """Both ends may have limits of their own, except that a heartbeat must be shorter than the other's `silence`."""

    unread_bytes: int = 4 << 20
    """A peer may send so much that nobody has asked for yet."""
    window_bytes: int = 32 << 20
    """Sending waits as long as so much is on its way without being acknowledged; one more frame may be."""
    window_frames: int = 256
    heartbeat_seconds: float = 10.0
    """Something is sent at least so often; as often a server asks whether the peer is still a member."""
    silence_seconds: float = 30.0
    """A connection on which nothing has arrived for so long is given up for another one."""
    handshake_seconds: float = 10.0
    """From the first byte of a connection until both ends know each other."""
    handshakes: int = 64
    """Connections of strangers at once. One more ends the oldest of the address that has most."""
    connections_per_member: int = 8
    send_seconds: float = 600.0
    """How long sending waits for room before the peer counts as lost."""
    linger_seconds: float = 3.0
    """How long closing waits for what was sent last to arrive."""
    absent_seconds: float = 5.0
    """A client that waits for an epoch and has been without a connection for so long is not counted on."""
    first_retry_seconds: float = 0.2
    longest_retry_seconds: float = 15.0

    def __post_init__(self) -> None:
        if self.unread_bytes < PIECE_BYTES + PIECE_OVERHEAD:
            raise ValueError(f"unread_bytes must have room for one piece of {PIECE_BYTES + PIECE_OVERHEAD} bytes")
        if self.heartbeat_seconds >= self.silence_seconds:
            raise ValueError("heartbeat_seconds must be less than silence_seconds")
        if min(self.window_bytes, self.window_frames, self.handshakes, self.connections_per_member) < 1:
            raise ValueError("a window and numbers of connections must be at least 1")
