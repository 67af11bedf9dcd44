"""Messages to and from the clients that are present. Dropouts are excluded until they send `Back`."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final, TypeVar

from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import NO_SESSION, SETUP, PartyId, RoundId, SessionId
from protocols.session.control import Regroup
from protocols.session.conversation import Abort, Conversation
from protocols.session.patience import Patience
from protocols.session.server_session import ServerSession
from protocols.transport.base import Transport
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.server.attendance import Attendance
from secure_kg.federation.server.disputes import Disputes
from secure_kg.federation.server.regrouping import Regrouping
from secure_kg.foundation.errors import StorageError, UserError

M = TypeVar("M", bound=wire.Message)
IN_DISPUTE: Final = "in dispute about a sum"
"""The step in which clients drop out that are left out (`disputes`)."""


class Gathering:
    """All clients of a run, those that are present, and the conversation with them."""

    def __init__(
        self,
        plan: RunPlan,
        transport: Transport,
        report: Callable[[str], None],
        regrouping: Regrouping | None = None,
    ) -> None:
        self.clients = tuple(transport.peers)
        self.transport = transport
        self.regrouping = regrouping if regrouping is not None else Regrouping(lambda: transport.newcomers)
        self._report = report
        self.open_session(NO_SESSION, b"")
        self.round = SETUP
        """The round under way, for messages and for the record of dropouts."""
        # Where nothing is shared, nobody waits for a client until the next evaluation, which may be rounds away.
        config = plan.settings
        self._longest = config.deadline * (1 if plan.strategy.shared else config.eval_every)
        self._plan, self._config = plan, config
        self.patience = self.fresh_patience()
        self.attendance = Attendance(self.clients, self.patience, report)
        self.disputes = Disputes()
        self.on_dropout: Callable[[Collection[PartyId]], None] = lambda _: None
        """Called with new dropouts."""

    def fresh_patience(self) -> Patience:
        """The run's limits, without memory of how long anybody took."""
        return Patience(self._longest, self._config.grace)

    def open_session(self, session: bytes, greeting: bytes) -> None:
        """`greeting`: digest of what everybody was told."""
        self.conversation = Conversation(self.transport, SessionId(session), greeting)
        if self.regrouping.lasting:
            self.conversation.outlives = self._report

    @property
    def aligns(self) -> bool:
        """Whether the run aligns names."""
        return self._plan.aligned_block is not None

    @property
    def present(self) -> set[PartyId]:
        """The clients that are present now. The set is live: dropouts leave it, and may come back."""
        return self.attendance.present

    @property
    def session(self) -> ServerSession:
        """The session under way, with the run's patience."""
        opening = self.regrouping.opening
        return ServerSession(self.conversation, self.present, self.patience, self.dropout, on_opening=opening)

    def dropout(self, parties: Collection[PartyId], step: str) -> None:
        """Record `parties` as dropouts of `step`, and go on without them; or begin a new session with them."""
        self.regrouping.instead_of_dropping(parties, self.present, int(self.round))
        self.regrouping.unsteady()
        self.on_dropout(parties)
        self.attendance.drop(self.conversation, parties, self.round, step)

    def begin_without(self, absent: Mapping[PartyId, str]) -> None:
        """Clients that are not there when the session begins; the words say why. Nothing is sent to them."""
        for party, why in sorted(absent.items()):
            self.attendance.missing(party, why)

    def gather(
        self, expected: type[M], step: str, patience: Patience | None = None, among: Collection[PartyId] | None = None
    ) -> dict[PartyId, M]:
        """One message from every client that is present (and `among` these)."""
        session = self.session if patience is None else self.session.with_patience(patience)
        return (session if among is None else session.among(among)).gather(expected, self.round, step)

    def tell(self, parties: Collection[PartyId], message: wire.Message) -> None:
        """The same message to those of `parties` that are present."""
        self.session.broadcast(parties, message, self.round, type(message).__name__)

    def assemble(self, run: Path) -> None:
        """Take in clients that have come back. If too few are present for any sum, wait for more. `run`: its folder."""
        may_come = self.present | self.attendance.kept_out
        out = self.attendance.kept_out = self.disputes.left_out(int(self.round), may_come, self._plan.least_present)
        if self.attendance.look_for_returned(self.conversation, self.round):
            self.regrouping.unsteady()
        if disputed := out & self.present:
            self.dropout(disputed, IN_DISPUTE)
        clients, needed = len(self.clients), self._plan.least_present
        if len(self.present) >= needed:
            return
        here = len(self.present)
        self._report(f"{here} of {clients} clients are here, {needed} are needed: waiting for some to come back")
        if not self._wait_for(needed):
            again = "the same command" if self.regrouping.lasting else f"--resume {run}"
            raise UserError(
                f"{len(self.present)} of {clients} clients are left in round {self.round}, {needed} are needed; "
                f"{again} continues from the last checkpoint"
            )

    def _wait_for(self, needed: int) -> bool:
        """Until so many are here; False if they do not come. `RegroupNeeded` if some have come for a new session."""
        deadline = Deadline.after(self._config.deadline)
        while len(self.present) < needed:
            self.regrouping.instead_of_waiting()
            if not self.transport.pause(deadline):
                return False
            self.attendance.look_for_returned(self.conversation, self.round)
        return True

    def end(self, reason: str, kind: type[Abort] = Abort) -> None:
        """Tell all clients that know of the session that it is over."""
        self.conversation.abort(self.attendance.greeted, reason, self.round, kind)

    def end_for(self, problem: Exception, run: Path) -> None:
        """The same for an error of the server. Where it keeps its files is its own affair. Where one session follows
        another, clients wait for a server that cannot write as for one that has died."""
        if isinstance(problem, StorageError) and self.regrouping.lasting:
            self.end("the server cannot write its files; it goes on once it can", Regroup)
        else:
            self.end(str(problem).replace(str(run), "the run's folder at the server"))

    def dismiss(self, message: wire.Message, round_id: RoundId) -> None:
        """A last message to all clients that can be sent one without waiting."""
        self.conversation.broadcast(self.attendance.reachable(self.conversation), message, round_id)
