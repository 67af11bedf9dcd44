"""Whoever is there is asked: those drawn for a round to train, and everybody who has trained for results.

Results carry numbers that hardly change, such as how many triples a client ranks. A server that does not ask a client
reads these numbers in the difference of two sums, without calling that client a dropout.

An honest server asks all who are present at once. One that it has lost it tells so before anything else (`LeaveOut`),
perhaps only much later. So the next message to a client that was not asked says whether it was there. A client that
was lost is asked for results only after it has trained again.
"""

from protocols.foundation import wire
from protocols.session.conversation import Abort, Back, LeaveOut
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.messages import Evaluate, Goodbye, TrainRound
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted

_Request = tuple[type[wire.Message], int]
"""Kind and round."""
_LAST_WORDS = LeaveOut | Abort | Goodbye
"""What a server says also to clients that it has lost."""


class PassedOver(Check):
    id = "everybody-asked"
    question = "Was a client that was there not asked to train, or for results, when others were?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._plan = RunPlan(config, clients)
        self._session = self._asked = 0
        self._seen: set[_Request] = set()
        self._unasked: dict[int, set[_Request]] = {}
        """By client: what others were asked for and it was not, since it was last told anything."""
        self._away: set[int] = set()
        """Clients that were told that the others go on, until they say that they are back."""
        self._idle: set[int] = set()
        """Clients that were lost in this session, and were not asked to train since."""
        self._over = Evidence()

    def begin_session(self) -> None:
        self._session += 1
        self._seen, self._unasked, self._away, self._idle = set(), {}, set(), set()

    def observe(self, observation: Observation) -> None:
        message, peer = observation.message, observation.peer
        if isinstance(message, Back):
            self._away.discard(peer)
        if observation.direction != "sent":
            return
        if isinstance(message, TrainRound | Evaluate):
            self._asked += 1
            self._ask((type(message), observation.round), peer)
        unasked = self._unasked.pop(peer, set())
        if isinstance(message, LeaveOut):
            self._away.add(peer)
            self._idle.add(peer)
        if isinstance(message, _LAST_WORDS):
            return
        for kind, number in sorted(unasked, key=lambda one: (one[1], one[0].__name__)):
            self._over.add(
                f"session {self._session}, round {number}: client {peer} was not told {kind.__name__}, and was there: "
                f"the next it was told is {observation.kind}"
            )

    def _ask(self, request: _Request, peer: int) -> None:
        if request not in self._seen:
            self._seen.add(request)
            for party in self._due(request) - self._away:
                self._unasked.setdefault(party, set()).add(request)
        self._unasked.get(peer, set()).discard(request)
        if request[0] is TrainRound:
            self._idle.discard(peer)

    def _due(self, request: _Request) -> set[int]:
        kind, number = request
        if kind is TrainRound:
            return {int(party) for party in self._plan.participants(number)}
        return set(range(1, self.clients + 1)) - self._idle

    def findings(self) -> list[Finding]:
        if not self._over:
            return []
        return [
            Finding(
                "passed-over",
                "high",
                "Clients that were there were not asked when others were",
                self._over.told(),
                "These are no dropouts: the server went on talking with them. A sum without a client, next to one with "
                "it, shows what changes little from one to the other, such as how many validation triples it has.",
            )
        ]

    @property
    def seen(self) -> int:
        return self._asked

    def looked_at(self) -> str:
        return f"{counted(self._asked, 'request')} to train or for results"
