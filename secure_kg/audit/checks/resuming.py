"""A session that goes on with a run must go on from its last checkpoint.

A server that goes back further has clients do rounds again, from states that it chooses; one that goes on from a round
of which there is no checkpoint was at work where no record shows it. One that says of clients that they have written no
part of it makes them begin elsewhere. And a run that has trained is aligned: its server has written that down before.
"""

from protocols.alignment.plain import ClearNames, ClearUnion
from protocols.session.conversation import Back, LeaveOut
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.read import Observation
from secure_kg.audit.view.snapshots import Snapshots
from secure_kg.federation.plan.messages import Finish, SaveCheckpoint, Saved, TrainRound, Welcome
from secure_kg.federation.plan.run_plan import UNION, RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted


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
        self._last_round = 0
        """The last round in which clients were asked to train: of the session before, and then of this one."""
        self._absent: set[int] = set()
        self._aligned = False
        """Whether this session goes on with an alignment that the run has."""
        self._trained_in = 0
        """The first session with a round of training in it."""
        self._accused = 0
        """The last session that was found to align again."""
        self._wrong, self._again = Evidence(), Evidence()

    def begin_session(self) -> None:
        self._session += 1
        self._greeted, self._newest, self._absent = False, None, set()

    def observe(self, observation: Observation) -> None:
        self._look_for_union(observation)
        match observation.message:
            case LeaveOut():
                self._absent.add(observation.peer)
            case Back():
                self._absent.discard(observation.peer)
            case Welcome() as welcome if not self._greeted:
                self._greeted, self._aligned = True, bool(welcome.aligned)
                self._go_on(welcome)
            case SaveCheckpoint() if self._newest is None or self._newest[0] != observation.round:
                self._newest = observation.round, set()
                self._saved_by.save(*self._newest)
            case Saved() if self._newest is not None and self._newest[0] == observation.round:
                if observation.peer not in self._absent:  # else it came too late to count
                    self._newest[1].add(observation.peer)
            case TrainRound() | Finish() if self._newest is not None:
                self._complete, self._newest = self._newest[0], None
        if isinstance(observation.message, TrainRound) and observation.direction == "sent":
            self._last_round = max(self._last_round, observation.round)

    def _look_for_union(self, observation: Observation) -> None:
        if isinstance(observation.message, TrainRound):
            self._trained_in = self._trained_in or self._session
        union = observation.purpose.startswith(UNION) or isinstance(observation.message, ClearNames | ClearUnion)
        before = 0 < self._trained_in < self._session
        if union and before and not self._aligned and self._accused != self._session:
            self._accused = self._session
            self._again.add(f"session {self._session} aligns names, though session {self._trained_in} had trained")

    def _go_on(self, welcome: Welcome) -> None:
        number, where = welcome.rounds_done, f"session {self._session} goes on after round {welcome.rounds_done}"
        if number and not welcome.aligned and RunPlan(self.config, self.clients).aligned_block is not None:
            self._accused = self._session
            self._again.add(f"{where}, and is said to have no alignment")
        if number < self._complete:
            self._wrong.add(f"{where}, though the checkpoint of round {self._complete} was complete")
        saved_by, deserted = self._saved_by.go_on_from(number), self._could_be_deserted(welcome)
        self._complete = self._last_round = number
        if saved_by is None and deserted:
            self._saved_by.save(number, set())
        elif saved_by is None:
            self._wrong.add(f"{where}, of which the record has no checkpoint")
        elif strangers := set(welcome.saved_by) - saved_by:
            self._wrong.add(f"{where}, of which client {_names(strangers)} has not written its part")
        elif denied := saved_by - set(welcome.saved_by):
            self._wrong.add(f"{where}, of which client {_names(denied)} has written its part, and is said not to have")

    def _could_be_deserted(self, welcome: Welcome) -> bool:
        """Whether everybody may have dropped out in a round, so that nobody was asked for the checkpoint after it. It
        gives a server no more than one for whose checkpoint all are too late; and if clients were there, the server's
        program would have asked them (`as_programmed`)."""
        number, plan = welcome.rounds_done, RunPlan(self.config, self.clients)
        due = plan.checkpoint_due(number, over=number == self._last_round)
        return not welcome.saved_by and self._complete <= number <= self._last_round and due

    def findings(self) -> list[Finding]:
        found = []
        if self._wrong:
            found.append(
                Finding(
                    "resumed-from-nowhere",
                    "high",
                    "A session does not go on from the last checkpoint in the record",
                    self._wrong.told(),
                    "Rounds that are done again from a state of the server's choice give it more sums of the same "
                    "data. If the checkpoint is not in the record, neither is what the server saw before it.",
                )
            )
        if self._again:
            found.append(
                Finding(
                    "aligned-again",
                    "high",
                    "Names were aligned again, though the run had its alignment",
                    self._again.told(),
                    "A server writes the alignment down before the first round, and a resumed job goes on with it. A "
                    "second union over other clients tells how many names only those missing hold. Under private "
                    "alignment clients refuse to open it.",
                )
            )
        return found

    @property
    def seen(self) -> int:
        return self._session

    def looked_at(self) -> str:
        return counted(self._session, "session")


def _names(parties: set[int]) -> str:
    return ", ".join(str(party) for party in sorted(parties))
