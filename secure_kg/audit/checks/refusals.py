"""A client that refuses a sum because of an earlier opening names an opening that the record of the run has.

Clients keep their own record of the sums that they have helped to open. A server that cheats, cuts its transcript and
the clients' receipts at the same place and goes on as if nothing had been meets that record in the next session: what
it repeats there has other inputs or other survivors than what it has hidden, and clients refuse it by name.

A client writes an opening down when it has been sent the survivors, and so after its own input. A server records every
frame that it has read, and every frame that it has sent but the last one before it was killed. So one client may know
of survivors that an honest record lacks, if its input is there; two may not.
"""

from dataclasses import dataclass

from protocols.foundation.identifiers import SETUP
from protocols.session.conversation import Abandon
from protocols.sums.secagg.messages import MaskedInput, Survivors, UnmaskShares
from protocols.sums.secagg.openings import opened_before
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted

Key = tuple[int, str]
"""Round and purpose."""
_Part = tuple[int, Key]
"""A client and a sum that it takes part in."""


@dataclass(frozen=True, slots=True)
class _Unknown:
    """A refusal whose earlier opening no transcript has. `begun`: one has the client's input to it."""

    told: str
    begun: bool


class Refusals(Check):
    id = "refusals-explained"
    question = "Did a client refuse a sum as opened before, and no transcript has that opening?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._session = self._lists = 0
        self.refusals = 0
        """Of sums that were opened before."""
        self._told, self._given = set[_Part](), set[_Part]()
        """Who was sent the survivors of a sum, and who has given an input to it, in the sessions so far."""
        self._told_now, self._given_now = set[_Part](), set[_Part]()
        """The same of the session under way."""
        self._helped = set[_Part]()
        """Who has helped to open a sum of the session under way: a refusal after it changes nothing."""
        self._unknown: dict[Key, dict[int, _Unknown]] = {}

    def begin_session(self) -> None:
        self._session += 1
        self._told, self._told_now = self._told | self._told_now, set()
        self._given, self._given_now = self._given | self._given_now, set()
        self._helped = set()

    def observe(self, observation: Observation) -> None:
        part = observation.peer, (observation.round, observation.purpose)
        match observation.message:
            case MaskedInput():
                self._given_now.add(part)
            case UnmaskShares():
                self._helped.add(part)
            case Survivors():
                self._lists += 1
                self._told_now.add(part)
            case Abandon() as said if observation.direction == "received":
                # Survivors that it has refused are no opening that it could have written down.
                if part not in self._helped:
                    self._told_now.discard(part)
                    self._given_now.discard(part)
                if (named := opened_before(said.reason)) is not None and named[0] != SETUP:
                    self._look_for(observation, named)

    def ignored(self, observation: Observation) -> None:
        """The first refusal ends a sum. The others come when the server has dropped it, and are as good."""
        if observation.direction == "received" and isinstance(observation.message, MaskedInput | Abandon):
            self.observe(observation)

    def _look_for(self, observation: Observation, named: Key) -> None:
        """The opening that a client has `named` in a refusal."""
        self.refusals += 1
        part = observation.peer, named
        if part in self._told | self._told_now:
            return
        line = (
            f"session {self._session}, round {observation.round}, {observation.purpose}: client {observation.peer} "
            f"has helped to open {named[1]} of round {named[0]}"
        )
        unknown = _Unknown(line, part in self._given | self._given_now)
        self._unknown.setdefault(named, {}).setdefault(observation.peer, unknown)

    def findings(self) -> list[Finding]:
        missing = Evidence()
        for _, clients in sorted(self._unknown.items()):
            if len(clients) == 1 and all(one.begun for one in clients.values()):
                continue  # the server was killed between sending the survivors and recording it
            for _, one in sorted(clients.items()):
                missing.add(one.told)
        if not missing:
            return []
        return [
            Finding(
                "opening-not-recorded",
                "high",
                "Clients have helped to open sums that no transcript has",
                missing.told(),
                "These clients refuse a sum because their own record has another one of the same inputs, and the "
                "server's record does not. What the server saw then was taken out, receipts included: ask these "
                "clients for their receipts and for the openings.jsonl of the run. A client that lies can say so, too.",
            )
        ]

    @property
    def seen(self) -> int:
        return self._lists

    def looked_at(self) -> str:
        return f"{counted(self.refusals, 'refusal')} of sums opened before, {counted(self._lists, 'list')} of survivors"
