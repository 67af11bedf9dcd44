"""A session that goes on with a run must go on from its last checkpoint.

A server that goes back further has clients do rounds again, from states that it chooses; one that goes on from a round
of which there is no checkpoint was at work where no record shows it.
"""

from secure_kg.audit.checks.base import Check
from secure_kg.audit.findings import Evidence, Finding
from secure_kg.audit.read import Observation
from secure_kg.audit.snapshots import Snapshots
from secure_kg.federation.config import RunConfig
from secure_kg.federation.messages import Finish, SaveCheckpoint, Saved, TrainRound, Welcome


class Resuming(Check):
    id = "goes-on-from-checkpoint"
    question = "Does a session go on from anything but the last checkpoint?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._session = 0
        self._greeted = False
        self._saved_by = Snapshots[set[int]](set())
        self._newest: tuple[int, set[int]] | None = None
        """The checkpoint under way: its round, and who has written its part of it."""
        self._complete = 0
        """The round of the last checkpoint after which the server went on."""
        self._wrong = Evidence()

    def begin_session(self) -> None:
        self._session += 1
        self._greeted, self._newest = False, None

    def observe(self, observation: Observation) -> None:
        match observation.message:
            case Welcome() as welcome if not self._greeted:
                self._greeted = True
                self._go_on(welcome)
            case SaveCheckpoint() if self._newest is None or self._newest[0] != observation.round:
                self._newest = observation.round, set()
                self._saved_by.save(*self._newest)
            case Saved() if self._newest is not None and self._newest[0] == observation.round:
                self._newest[1].add(observation.peer)
            case TrainRound() | Finish() if self._newest is not None:
                self._complete, self._newest = self._newest[0], None

    def _go_on(self, welcome: Welcome) -> None:
        number, where = welcome.rounds_done, f"session {self._session} goes on after round {welcome.rounds_done}"
        if number < self._complete:
            self._wrong.add(f"{where}, though the checkpoint of round {self._complete} was complete")
        saved_by = self._saved_by.go_on_from(number)
        self._complete = number
        if saved_by is None:
            self._wrong.add(f"{where}, of which the record has no checkpoint")
        elif strangers := set(welcome.saved_by) - saved_by:
            named = ", ".join(str(party) for party in sorted(strangers))
            self._wrong.add(f"{where}, of which client {named} has not written its part")

    def findings(self) -> list[Finding]:
        if not self._wrong:
            return []
        return [
            Finding(
                "resumed-from-nowhere",
                "high",
                "A session does not go on from the last checkpoint in the record",
                self._wrong.told(),
                "Rounds that are done again from a state of the server's choice give it more sums of the same data. If "
                "the checkpoint is not in the record, neither is what the server saw before it.",
            )
        ]

    @property
    def seen(self) -> int:
        return self._session

    def looked_at(self) -> str:
        return f"{self._session:,} sessions"
