"""Errors of a conversation. No bare `KeyError` or `struct.error` leaves this package."""

from collections.abc import Sequence


class ProtocolError(Exception):
    """Base of everything a protocol raises."""


class DecodeError(ProtocolError):
    """Bytes that are not a well-formed message of the expected kind. Nothing of the message has been applied."""


class UnexpectedMessage(ProtocolError):
    """A well-formed message that has no place in the receiver's current state."""


class PeerMisbehaved(ProtocolError):
    """A peer contradicts this party's own record or configuration; `parties` has its number where that is certain."""

    def __init__(self, problem: str, *parties: int) -> None:
        super().__init__(problem)
        self.parties = parties


class DeadlineExpired(ProtocolError):
    """A peer missed a deadline past the deadline."""


class PeerLost(ProtocolError):
    """The transport reports that a peer can no longer be reached; `parties` has its number."""

    def __init__(self, problem: str, *parties: int) -> None:
        super().__init__(problem)
        self.parties = parties


class OutOfReach(PeerLost):
    """There has been no connection to a peer for so long that nobody waits any more; it may still be there."""


class TransportError(ProtocolError):
    """A transport cannot begin, e.g. because its address is taken."""


class LinkRefused(TransportError):
    """The other end refuses this party's connection, or this party the other's: trying again does not mend it."""


class PeerFailed(ProtocolError):
    """A peer said that it cannot go on. The text is its own one-line reason."""


class Aborted(ProtocolError):
    """The server ended the session. The text is its reason."""


class Regrouped(Aborted):
    """The server ended the session to begin the next one with a client that has come again. The text says why."""


class SumAbandoned(ProtocolError):
    """One sum ended without a result, e.g. with too few survivors. The session goes on."""


class SumRefused(SumAbandoned):
    """A client has said that it does not help to open this sum. The session goes on; asking again changes nothing.

    `by`: the client; 0: this one. `of`: the clients whose words for this sum it does not take, if that is why.
    """

    def __init__(self, problem: str, by: int = 0, of: Sequence[int] = ()) -> None:
        super().__init__(problem)
        self.by, self.of = by, tuple(of)


class PeersRefused(SumRefused, PeerMisbehaved):
    """What `parties` have sent for a sum contradicts this client's record. It refuses that sum, and goes on."""

    def __init__(self, problem: str, *parties: int) -> None:
        super().__init__(problem, of=parties)
        self.parties = parties


class LeftOut(ProtocolError):
    """The server has gone on without this party, which was too slow. The session goes on; the party may come back."""


class EncodingOverflow(ProtocolError):
    """Values that cannot be carried without risking a wrong sum (not finite, or parameters that could wrap)."""


class UnknownProtocol(ProtocolError):
    """A name under which no protocol is registered."""
