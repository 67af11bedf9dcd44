"""Refusals: what a client does about peers whose words for a sum contradict its own record.

Shares that do not open, and signatures that are none, look the same whoever is to blame: the sender, somebody on the
way, or the client itself, which may have applied other rows. So a client concludes nothing about its peers. It refuses
that one sum, says whose words it does not take, and goes on with the next one: it has given no input where it could not
open, and no share of anybody's where it could not check. Nobody is left out of a later sum by a client's decision.

A server that spoils sums on purpose would have clients train in vain without end, and learn each time whether two of
them go by the same. So a client ends its part after a few such sums (`Refusals`), in a line that names the peers. Where
names are aligned there is no next sum: a client that refuses there ends its part at once.
"""

from collections import Counter
from collections.abc import Callable, Collection
from typing import Final

from protocols.foundation.errors import PeerMisbehaved, PeersRefused
from protocols.foundation.identifiers import SETUP, PartyId, RoundId
from protocols.session.client_session import ClientSession
from protocols.session.control import MAX_REASON, RefuseShares
from protocols.transport.base import party_names

MOST_IN_A_ROW: Final = 5
"""Of one purpose."""
MOST: Final = 20
"""In one session."""


def require_fit(peers: Collection[PartyId], check: Callable[[PartyId], None]) -> None:
    """`PeersRefused`, which names them, if `check` raises `PeerMisbehaved` for any of `peers`."""
    problems: dict[PartyId, str] = {}
    for peer in sorted(peers):
        try:
            check(peer)
        except PeerMisbehaved as problem:
            problems[peer] = str(problem)
    if problems:
        first, *others = problems
        likewise = f"; likewise {party_names(others)}" if others else ""
        raise PeersRefused(problems[first] + likewise, *problems)


def not_opened(peer: PartyId) -> PeerMisbehaved:
    """What a client says of shares that do not open."""
    return PeerMisbehaved(
        f"the shares of client {peer} cannot be opened: forged, or it was told other keys, terms or rows"
    )


class Refusals:
    """Sums that one client has refused in a session because of what peers have sent."""

    def __init__(self) -> None:
        self._in_a_row: Counter[str] = Counter()
        """By purpose."""
        self._all = 0

    def say(self, session: ClientSession, round_id: RoundId, purpose: str, refused: PeersRefused) -> None:
        """Tell the server that this client takes no part in a sum. `PeerMisbehaved` if that was one too many."""
        if round_id == SETUP:
            raise PeerMisbehaved(str(refused), *refused.parties)
        of = [int(party) for party in refused.parties]
        session.send(RefuseShares(purpose, str(refused)[:MAX_REASON], of), round_id)
        self._in_a_row[purpose] += 1
        self._all += 1
        if self._in_a_row[purpose] >= MOST_IN_A_ROW or self._all >= MOST:
            often = f"{self._in_a_row[purpose]} in a row" if self._all < MOST else f"{self._all} in this session"
            raise PeerMisbehaved(f"sums were refused too often ({often}), the last one because {refused}")

    def helped(self, purpose: str) -> None:
        """This client has helped to open a sum."""
        self._in_a_row[purpose] = 0
