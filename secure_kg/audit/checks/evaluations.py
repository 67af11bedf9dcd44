"""Clients are evaluated when that is due, once, and after training.

Results hardly change from one evaluation to the next. A server that has them added up at will, over sets of clients of
its choice, subtracts the sums from each other and reads the results of single clients. Test results of a run are those
of one copy of the model, or nearly so: they are opened over one set of clients, in whatever session.
"""

import dataclasses

from protocols.session.conversation import Back, LeaveOut
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.messages import Evaluate, Finish, SaveCheckpoint, TrainRound, Welcome
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted, named_clients

METRICS = ("valid", "test")


class UntrainedSums:
    """Sums of results that were opened more than once without a round of training in between."""

    def __init__(self) -> None:
        self._since: dict[str, frozenset[int]] = {}
        self._trained = 0
        """The round of the last training."""

    def observe(self, observation: Observation) -> None:
        if isinstance(observation.message, TrainRound):
            self._since, self._trained = {}, observation.round

    def opened(self, total: OpenedSum) -> frozenset[int]:
        """In which clients this sum differs from the one before it on the same part of their data."""
        if total.purpose not in METRICS or total.vector is None or not total.threshold:
            return frozenset()
        if total.round < self._trained:  # an answer that came late opens a sum from before it
            return frozenset()
        before = self._since.get(total.purpose, total.contributors)
        self._since[total.purpose] = total.contributors
        return before ^ total.contributors


@dataclasses.dataclass(slots=True)
class _Client:
    evaluated: int
    """The round of its last evaluation, or of the checkpoint that the session goes on from."""
    trained: bool = False
    """Since then."""
    heard: int = 0
    """The round of its last message."""
    excused: set[int] = dataclasses.field(default_factory=set)
    """Rounds in which it was left out."""
    left_out: bool = False
    finished: bool = False
    saved: int = 0
    """The round of its last checkpoint."""


class Evaluations(Check):
    id = "one-evaluation-per-round"
    question = "Were clients evaluated when that was not due, repeatedly, or without training in between?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._plan = RunPlan(config, clients)
        self._session = self._asked = self._begun = self._done = 0
        self._digest = b""
        self._clients: dict[int, _Client] = {}
        self._untrained = UntrainedSums()
        self._tested: tuple[int, frozenset[int]] | None = None
        """The first session with test results, and over whom they were opened."""
        self._on_demand = Evidence()

    def begin_session(self) -> None:
        self._session += 1
        self._begun = self._done = 0
        self._digest, self._clients = b"", {}

    def observe(self, observation: Observation) -> None:
        self._untrained.observe(observation)
        client, number = self._client(observation.peer), observation.round
        if observation.direction == "received":
            if isinstance(observation.message, Back):
                self._back(client)
            elif not client.left_out:
                client.heard = max(client.heard, number)
            return
        match observation.message:
            case Welcome(digest=digest, rounds_done=done):
                self._digest, self._begun = digest, max(self._begun, done)
                client.evaluated = client.heard = self._done = done
            case LeaveOut():
                client.left_out = True
            case TrainRound():
                self._begun = max(self._begun, min(number, self.config.rounds))
                client.trained = True
            case SaveCheckpoint():
                client.saved = max(client.saved, number)
            case Evaluate():
                self._evaluate(client, observation)
            case Finish():
                self._asked += 1
                if client.finished:
                    self._add(observation, "asked for its test results a second time")
                client.finished = True

    def _client(self, party: int) -> _Client:
        return self._clients.setdefault(party, _Client(self._done, heard=self._done))

    def _back(self, client: _Client) -> None:
        """Rounds that had begun before it said that it is back went on without it."""
        if client.left_out:
            client.excused.update(range(max(client.heard, client.evaluated) + 1, self._begun + 1))
        client.left_out = False

    def _evaluate(self, client: _Client, observation: Observation) -> None:
        self._asked += 1
        number, since = observation.round, client.evaluated
        if not self._due(number):
            self._add(observation, "asked for results that were not due")
        if client.finished:
            self._add(observation, "asked for results after the end")
        if client.saved >= number:  # resumed from there, it would not know of these results
            self._add(observation, f"asked for results after its checkpoint of round {client.saved}")
        if number <= since:
            self._add(observation, f"asked for results, though those of round {since} were there already")
        elif not client.trained and (missed := self._drawn(observation.peer, since, number) - client.excused):
            self._add(observation, f"asked for results without training since round {since}, due in {min(missed)}")
        client.evaluated, client.trained, client.excused = max(number, since), False, set()

    def _due(self, number: int) -> bool:
        """By the settings. A session that was resumed for more rounds had fewer before, and its last one was due."""
        if self._plan.evaluation_due(number):
            return True
        return number > 0 and dataclasses.replace(self.config, rounds=number).digest() == self._digest

    def _drawn(self, party: int, since: int, until: int) -> set[int]:
        rounds = range(since + 1, min(until, self.config.rounds) + 1)
        return {number for number in rounds if party in self._plan.participants(number)}

    def _add(self, observation: Observation, what: str) -> None:
        self._on_demand.add(f"session {self._session}, round {observation.round}, client {observation.peer}: {what}")

    def opened(self, total: OpenedSum) -> None:
        if odd := self._untrained.opened(total):
            self._on_demand.add(
                f"session {self._session}, round {total.round}: results ({total.purpose}) were added up again without "
                f"training in between, this time with or without {named_clients(odd)}"
            )
        if total.purpose == "test" and total.vector is not None and total.threshold:
            session, contributors = self._tested = self._tested or (self._session, total.contributors)
            if odd := contributors ^ total.contributors:
                self._on_demand.add(
                    f"session {self._session}, round {total.round}: test results were opened, as in session {session}, "
                    f"this time with or without {named_clients(odd)}"
                )

    def findings(self) -> list[Finding]:
        if not self._on_demand:
            return []
        return [
            Finding(
                "evaluated-on-demand",
                "high",
                "The server had clients evaluated when it liked",
                self._on_demand.told(),
                "This is the server's doing and no dropout's: it asked for results that no honest server asks for. "
                "Two sums of the same results over different clients leave, when subtracted, the results of those who "
                "are in one of them only.",
            )
        ]

    @property
    def seen(self) -> int:
        return self._asked

    def looked_at(self) -> str:
        return f"{counted(self._asked, 'request')} for results"
