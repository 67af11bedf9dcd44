"""Attendance: clients that miss a deadline are excluded until they send `Back`; the others go on."""

from collections.abc import Callable, Collection

from protocols.foundation.errors import PeerLost
from protocols.foundation.identifiers import SETUP, PartyId, RoundId
from protocols.session.conversation import Conversation, LeaveOut
from protocols.session.patience import Patience
from secure_kg.runs.records.events import Dropout


class Attendance:
    """The clients of a run: those present, and the dropouts."""

    def __init__(self, clients: Collection[PartyId], patience: Patience, report: Callable[[str], None]) -> None:
        self.present: set[PartyId] = set(clients)
        self.dropouts: list[Dropout] = []
        self._clients = tuple(sorted(clients))
        self._patience, self._report = patience, report
        self._absent: dict[PartyId, int] = {}
        """By dropout that has not come back: its index in `dropouts`."""
        self._untold: set[PartyId] = set()
        """Dropouts that have not taken an earlier message yet, so that they could not be told."""
        self._never_here: set[PartyId] = set()
        self.kept_out: frozenset[PartyId] = frozenset()
        """Dropouts that are not taken in again for now (`disputes`)."""

    @property
    def complete(self) -> bool:
        """Whether nobody was ever missing, or all have come back."""
        return len(self.present) == len(self._clients)

    @property
    def seconds_in_vain(self) -> float:
        """Time in which only dropouts were waited for."""
        return self._patience.seconds_in_vain

    def drop(self, conversation: Conversation, parties: Collection[PartyId], round_id: RoundId, step: str) -> None:
        """Go on without `parties`. They are told once; after that nothing is sent until they answer."""
        for party in sorted(set(parties) & self.present):
            self._note(party, round_id, step)
            self._untold.add(party)
        self._tell(conversation, round_id)

    def missing(self, party: PartyId, why: str) -> None:
        """Go on without a client that is in no session yet, so that nothing can be told to it."""
        if party in self.present:
            self._never_here.add(party)
            self._note(party, SETUP, why)

    def _note(self, party: PartyId, round_id: RoundId, step: str) -> None:
        self.present.discard(party)
        self._absent[party] = len(self.dropouts)
        self.dropouts.append(Dropout(int(party), int(round_id), step))
        when = f"in round {round_id}" if round_id else "during set-up"
        self._report(f"client {party} dropped out {when} ({step}): going on with {len(self.present)} clients")

    def look_for_returned(self, conversation: Conversation, round_id: RoundId) -> set[PartyId]:
        """Take in clients that have sent `Back`, except those that dropped out during set-up: they lack keys.

        One that is kept out is told again that the others go on without it: it then waits for another while.
        """
        self._tell(conversation, round_id)
        returned = {
            party
            for party, place in sorted(self._absent.items())
            if party not in self._untold and self.dropouts[place].round and conversation.came_back(party)
        }
        self._untold |= returned & self.kept_out
        self._tell(conversation, round_id)
        returned -= self.kept_out
        for party in sorted(returned):
            place = self._absent.pop(party)
            self.dropouts[place] = self.dropouts[place].back(int(round_id))
            self.present.add(party)
            self._patience.returned(party)
            self._report(f"client {party} is back in round {round_id}")
        return returned

    def reachable(self, conversation: Conversation) -> list[PartyId]:
        """The clients that can be sent a last message without waiting."""
        return [party for party in self.greeted if not conversation.transport.busy(party)]

    @property
    def greeted(self) -> list[PartyId]:
        """The clients that know of this session."""
        return [party for party in self._clients if party not in self._never_here]

    def _tell(self, conversation: Conversation, round_id: RoundId) -> None:
        for party in sorted(self._untold):
            if conversation.transport.busy(party):
                continue  # a second message would wait behind the first
            try:
                conversation.send(party, LeaveOut(), round_id)
            except PeerLost:
                continue
            self._untold.discard(party)
