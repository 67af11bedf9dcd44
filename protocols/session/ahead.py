"""Messages that came before they were awaited (`wire.Message.AHEAD`), each kept until its own sum asks for it.

A peer chooses when it sends and what. So only a few are kept of each, one of a kind for each sum, and none of an
earlier round.
"""

from collections.abc import Collection
from typing import Final, TypeAlias, TypeVar

from protocols.foundation import wire
from protocols.foundation.identifiers import SERVER, PartyId, RoundId

MOST_AHEAD: Final = 16
"""Of one party: more than there are sums in a round and in the next one."""
M = TypeVar("M", bound=wire.Message)
_Sum: TypeAlias = tuple[RoundId, str]
"""Round and purpose."""


class Ahead:
    """What each party has sent ahead to `party`."""

    def __init__(self, party: PartyId) -> None:
        self._side = "server" if party == SERVER else "client"
        self._kept: dict[PartyId, dict[tuple[_Sum, type[wire.Message]], wire.Message]] = {}

    def keeps(self, kind: type[wire.Message]) -> bool:
        """Nobody is made to keep what only others have a use for: a relayed message may be as large as a frame."""
        return self._side == kind.AHEAD

    def keep(self, sender: PartyId, envelope: wire.Envelope, round_id: RoundId) -> bool:
        """False if there is one already, or if there are too many. What is of rounds before `round_id` is forgotten."""
        key = envelope.round, str(getattr(envelope.message, "purpose", ""))
        kept = {one: message for one, message in self._kept.get(sender, {}).items() if one[0][0] >= round_id}
        place = key, type(envelope.message)
        if place in kept or len(kept) >= MOST_AHEAD:
            return False
        self._kept[sender] = kept | {place: envelope.message}
        return True

    def take(self, senders: Collection[PartyId], kind: type[M], of: _Sum) -> tuple[PartyId, M] | None:
        """What one of `senders` has sent for this sum."""
        for sender in sorted(self._kept.keys() & senders):
            message = self._kept[sender].pop((of, kind), None)
            if isinstance(message, kind):
                return sender, message
        return None

    def forget(self, sender: PartyId) -> None:
        """Drop all that `sender` has sent ahead."""
        self._kept.pop(sender, None)
