"""Messages by which either side of a conversation steers it: it cannot go on, somebody is too slow, a sum ends."""

from protocols.foundation import wire
from protocols.foundation.errors import SumRefused
from protocols.foundation.identifiers import PartyId

MAX_REASON = 500
MAX_PURPOSE = 64
MAX_REFUSAL_BYTES = 1 << 14
"""Of a refusal that names more clients than one has neighbours in any sum."""


def printable(reason: str) -> str:
    """What a peer says, with nothing in it that steers a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in reason)


@wire.message(0x0001)
class Failed(wire.Message, frozen=True):
    """Client to server: I cannot go on. The reason names places, never contents."""

    reason: str

    def __post_init__(self) -> None:
        wire.require(len(self.reason) <= MAX_REASON, "reason too long")


@wire.message(0x0002)
class Abort(wire.Message, frozen=True):
    """Server to client: the session is over."""

    reason: str

    def __post_init__(self) -> None:
        wire.require(len(self.reason) <= MAX_REASON, "reason too long")


@wire.message(0x0003)
class LeaveOut(wire.Message, frozen=True):
    """Server to client: you missed a deadline, and the others go on. Send `Back` when you can take part again."""


@wire.message(0x0004)
class Back(wire.Message, frozen=True):
    """Client to server: I know that I was excluded, and can take part again."""


@wire.message(0x0005)
class Abandon(wire.Message, frozen=True):
    """Either way: this round's sum for `purpose` ends without a result. A client says so if it must not open it."""

    purpose: str
    reason: str

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        wire.require(len(self.reason) <= MAX_REASON, "reason too long")


@wire.message(0x0008, MAX_REFUSAL_BYTES)
class RefuseShares(Abandon, frozen=True):
    """Client to server: it takes no part in this round's sum, for what these clients have sent it does not fit.

    Shares that do not open, or signatures that are none: the same whether they were sent so or changed on the way.
    """

    of: list[int]

    def __post_init__(self) -> None:
        super().__post_init__()
        wire.require(bool(self.of) and len(set(self.of)) == len(self.of), "nobody, or a client twice")
        wire.require(all(party > 0 for party in self.of), "a party that is no client")


@wire.message(0x0007)
class Regroup(Abort, frozen=True):
    """Server to client: this session is over, and the next one begins at once. Come again with what you have kept."""


def refusal(by: PartyId, name: str, message: Abandon) -> SumRefused:
    """What the server makes of a client's `Abandon`."""
    of = message.of if isinstance(message, RefuseShares) else ()
    return SumRefused(f"{name}: {printable(message.reason)}", by, of)
