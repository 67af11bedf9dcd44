"""Words of the wrong party, rounds that go back, and what an honest server drops.

Every other check judges the server by what it said and by what it went by (`view.attending`). Here is the rest. A
client may send anything at any time, and an honest server drops it: that is counted and no fault of the server. But an
honest server says nothing that only clients say, and never goes back to an earlier round: it could make answers look
late that it reads all the same. Nor does it go on after an answer of a round that is to come: either the client
misbehaves, and an honest server ends the session, or the record has another order than what passed.
"""

from collections import Counter

from protocols.session.conversation import Abort, Back, Failed
from secure_kg.audit.view.directions import misdirected
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted


class SaidInOrder(Check):
    id = "said-in-order"
    question = "Did the server say what only clients say, or go back to an earlier round?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._session = self._said = self._round = 0
        self._to_come = ""
        """What was heard of a later round: an honest server ends the session then."""
        self._wrong = Evidence()
        self._dropped: Counter[tuple[int, str, bool]] = Counter()
        """Client, kind, and whether only a server says this."""

    def begin_session(self) -> None:
        self._session += 1
        self._round, self._to_come = 0, ""

    def observe(self, observation: Observation) -> None:
        message, number = observation.message, observation.round
        if observation.direction == "received":
            if number > self._round and not isinstance(message, Back | Failed):
                self._to_come = f"{observation.kind} of round {number} from client {observation.peer}"
            return
        self._said += 1
        if number < self._round:
            self._add(observation, f"after a message of round {self._round}")
        if self._to_come and not isinstance(message, Abort):
            self._add(observation, f"after it had read {self._to_come}")
        self._round, self._to_come = max(self._round, number), ""

    def ignored(self, observation: Observation) -> None:
        if observation.direction == "sent":
            self._add(observation, "which only clients say")
            return
        wrong = misdirected(type(observation.message), observation.direction)
        self._dropped[observation.peer, observation.kind, wrong] += 1

    def _add(self, observation: Observation, what: str) -> None:
        where = f"session {self._session}, round {observation.round}"
        self._wrong.add(f"{where}: client {observation.peer} was told {observation.kind}, {what}")

    def findings(self) -> list[Finding]:
        found = []
        if self._wrong:
            found.append(
                Finding(
                    "out-of-order",
                    "high",
                    "The server said what no honest server says at that time",
                    self._wrong.told(),
                    "An honest server goes from round to round, and says nothing that only clients say. Out of order, "
                    "its words can make answers look late that it has read, or a key look like a client's own.",
                )
            )
        if self._dropped:
            evidence = Evidence()
            for (party, kind, wrong), count in sorted(self._dropped.items()):
                evidence.add(f"client {party}: {count:,} {kind}" + (", which only a server says" if wrong else ""))
            found.append(
                Finding(
                    "frames-ignored",
                    "info",
                    "Clients sent messages that an honest server drops",
                    evidence.told(),
                    "They were late, came from a dropout that was not back, were about a sum that was over, or are no "
                    "words of a client. No check judges the server by them. A client that sends many is slow, or not "
                    "what it should be.",
                )
            )
        return found

    @property
    def seen(self) -> int:
        return self._said

    def looked_at(self) -> str:
        return f"{counted(self._said, 'message')} of the server, {self._dropped.total():,} of clients that it dropped"
