"""Disputes: pairs of clients of which one says that what the other has sent for a sum does not fit.

The server passes ciphertexts on and cannot look into them: the sender may have sealed nonsense, and the recipient may
accuse falsely. So a dispute says that one of the two is wrong, and not which. Each has cost its sum. So that the next
ones come to something, the server goes on without a set of clients that has one of each pair in dispute:

- the client that is in dispute with the most others, for whoever cheats several is in dispute with all of them;
- of a pair that is in dispute with nobody else, the one that has ever been in dispute with more others;
- else the two in turn, whoever has refused first, so that neither can drive the other out for good.

That lasts for `AWAY` rounds, and twice as long each time that the same two are in dispute again: a pair that never
agrees costs as many sums as its rounds can be doubled. Nobody is left out if too few would be left for any sum. Then
sum after sum is abandoned, until the job ends in a line that names the pair.

This is a matter of losing no rounds, and the server's alone. Clients go by nothing of it: who is left out is a dropout
to them, and which sums they help to open their own records decide.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from protocols.foundation.identifiers import PartyId

AWAY: Final = 10
"""Rounds for which a client is left out the first time."""
_MOST_DOUBLED: Final = 20


@dataclass(slots=True)
class _Dispute:
    """Of one pair. `by`: who has refused last."""

    by: PartyId
    of: PartyId
    times: int = 0
    until: int = 0
    """The last round in which one of them is left out."""

    def note(self, round_id: int, by: PartyId, of: PartyId) -> None:
        self.by, self.of = (by, of) if not self.times else (self.by, self.of)
        self.until = round_id + (AWAY << min(self.times, _MOST_DOUBLED))
        self.times += 1

    @property
    def turn(self) -> PartyId:
        """Who of the two is left out if nothing else speaks against either."""
        return self.by if self.times % 2 else self.of


class Disputes:
    """Of one session."""

    def __init__(self) -> None:
        self._pairs: dict[frozenset[PartyId], _Dispute] = {}

    def note(self, round_id: int, by: PartyId, of: Collection[PartyId]) -> None:
        """In a round, `by` has refused a sum because of what `of` have sent."""
        for party in sorted(frozenset(of) - {by}):
            self._pairs.setdefault(frozenset({by, party}), _Dispute(by, party)).note(round_id, by, party)

    def left_out(self, round_id: int, present: Collection[PartyId], least: int) -> frozenset[PartyId]:
        """Without whom a round goes on. So many of those who are `present` stay at least."""
        out = set[PartyId]()
        ever = Counter(party for pair in self._pairs for party in pair)
        while open_pairs := {
            pair: one for pair, one in self._pairs.items() if one.until >= round_id and pair.isdisjoint(out)
        }:
            now = Counter(party for pair in open_pairs for party in pair)
            turns = {one.turn for one in open_pairs.values()}
            chosen = max(now, key=lambda party: (now[party], ever[party], party in turns, -party))
            if chosen in present and len(frozenset(present) - out) <= least:
                break
            out.add(chosen)
        return frozenset(out)
