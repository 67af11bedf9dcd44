"""All who look at a score session, each by itself: one that fails on a record takes no other along."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar

from protocols.foundation.identifiers import PartyId
from protocols.lookup_registry import NAMES
from protocols.scores.messages import PURPOSE
from protocols.session.conversation import Abort
from secure_kg.audit.checks.as_programmed import AsProgrammed
from secure_kg.audit.checks.keys import Keys
from secure_kg.audit.checks.openings import BothShares, LateVectors
from secure_kg.audit.checks.relays import Relays
from secure_kg.audit.checks.repeated_sums import RepeatedSums
from secure_kg.audit.checks.reuse import Reuse
from secure_kg.audit.checks.said_in_order import SaidInOrder
from secure_kg.audit.checks.secrets import Seeds
from secure_kg.audit.checks.survivors import OneStory
from secure_kg.audit.checks.uniformity import Uniformity, in_field
from secure_kg.audit.guard import Guard
from secure_kg.audit.scores.again import ScoresAgain, run_no_further
from secure_kg.audit.scores.announced import AnnouncedBatches
from secure_kg.audit.scores.askings import Askings
from secure_kg.audit.scores.declarations import ScoreLedger
from secure_kg.audit.scores.extracting import Extracting
from secure_kg.audit.scores.opening import ScoreOpening, ScorePlan, as_masked
from secure_kg.audit.scores.selections import DealtRandomness, SelectionRelays
from secure_kg.audit.scores.session import ScoredSession
from secure_kg.audit.scores.totals import ScoreTotals
from secure_kg.audit.sums_seen import SumsSeen
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import CheckResult, Finding
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation

_SUMS = "sums of the session"


class ScoresAsProgrammed(AsProgrammed):
    """`again`: None if the program could not be run over the record."""

    id: ClassVar[str] = AsProgrammed.id

    def __init__(self, session: ScoredSession, again: ScoresAgain | None) -> None:
        super().__init__(session.config, len(session.record.parties), [again.session] if again is not None else [])
        self._no_further = run_no_further(session)
        self._cut = again.cut if again is not None else ""

    def findings(self) -> list[Finding]:
        if not self._cut:
            return super().findings()
        return [
            *super().findings(),
            Finding(
                "program-not-followed",
                "medium",
                "The server's program was not run to the end of the record",
                (self._cut,),
                "What the record says of this batch does not fit the messages that there are, and from there on nobody "
                "has compared what the server sent with what its program sends.",
            ),
        ]

    def looked_at(self) -> str:
        if not self._again:
            return "nothing: packages that a backend needs are not installed here"
        return ", ".join(filter(None, (super().looked_at(), self._no_further)))


class _Keys(Keys):
    """A session of score queries has no greeting that names it."""

    def __init__(self, session: ScoredSession, directory: Mapping[PartyId, bytes] | None) -> None:
        super().__init__(session.config, len(session.record.parties), directory)
        self._number = session.number

    def begin_session(self) -> None:
        super().begin_session()
        self._session = self._number


class _Uniformity(Uniformity):
    def __init__(self, session: ScoredSession) -> None:
        super().__init__(session.config, len(session.record.parties))
        self._plan = ScorePlan(session)

    def _in_field(self, observation: Observation) -> bool:
        return _of_field(observation, self._plan)


class _Reuse(Reuse):
    def __init__(self, session: ScoredSession) -> None:
        super().__init__(session.config, len(session.record.parties))
        self._plan = ScorePlan(session)

    def _in_field(self, observation: Observation) -> bool:
        return _of_field(observation, self._plan)


def _of_field(observation: Observation, plan: ScorePlan) -> bool:
    """Names are looked up in a field, under the purpose of scores."""
    batch = plan.session.batches.get(observation.round)
    names = batch is not None and batch.backend.name == NAMES and observation.purpose == PURPOSE
    return names or in_field(observation.purpose)


class _SaidInOrder(SaidInOrder):
    """It is the asker who begins a round, not the server. The last word of a server is of no round."""

    def observe(self, observation: Observation) -> None:
        if observation.direction == "sent" and not isinstance(observation.message, Abort):
            super().observe(observation)


class Looking:
    """Ledger, sums and all checks. `of_values` see uploads as they came, `of_sums` as the masked sums took them."""

    def __init__(
        self,
        session: ScoredSession,
        directory: Mapping[PartyId, bytes] | None,
        again: ScoresAgain | None,
        guard: Guard,
    ) -> None:
        config, clients = session.config, len(session.record.parties)
        self.guard, self._plan = guard, ScorePlan(session)
        self.ledger, self.extracting = ScoreLedger(session), Extracting(session)
        self.sums = SumsSeen(config, clients)
        self._opening = ScoreOpening(session, directory, again.session if again is not None else None)
        self._of_values: list[Check] = [
            ScoresAsProgrammed(session, again),
            _SaidInOrder(config, clients),
            _Uniformity(session),
            _Reuse(session),
            Seeds(config, clients),
            Relays(config, clients),
            _Keys(session, directory),
            RepeatedSums(config, clients),
            AnnouncedBatches(session),
            Askings(session),
            ScoreTotals(session),
            SelectionRelays(session),
            DealtRandomness(session),
        ]
        self._of_sums: list[Check] = [
            self.sums,
            BothShares(config, clients),
            LateVectors(config, clients),
            OneStory(config, clients),
        ]
        for check in self._checks:
            guard.ask(check.id, check.begin_session, None)

    @property
    def _checks(self) -> list[Check]:
        return [*self._of_sums, *self._of_values]

    def observe(self, observation: Observation, *, heard: bool) -> None:
        """`heard`: whether an honest server says this, or goes by it."""
        ask = self.guard.ask
        ask("ledger", partial(self.ledger.observe, observation, heard=heard), None)
        if heard:
            ask("attacks", partial(self.extracting.observe, observation), None)
        in_sums = ask(_SUMS, partial(as_masked, observation, self._plan), observation)
        for total in ask(_SUMS, partial(self._opening.observe, in_sums), list[OpenedSum]()):
            self._tell(total)
        for check in self._of_sums:
            ask(check.id, _look(check, in_sums, heard), None)
        for check in self._of_values:
            ask(check.id, _look(check, observation, heard), None)

    def refuse(self, observation: Observation) -> None:
        """A message for which the server has ended the session. It is in nothing that was summed or sent."""
        self.guard.ask("ledger", partial(self.ledger.observe, observation, heard=False), None)

    def end(self) -> None:
        for total in self.guard.ask(_SUMS, self._opening.end, list[OpenedSum]()):
            self._tell(total)

    def results(self) -> list[CheckResult]:
        return [self.guard.ask(one.id, one.result, one.unanswered()) for one in self._checks]

    def _tell(self, total: OpenedSum) -> None:
        self.guard.ask("ledger", partial(self.ledger.opened, total), None)
        for check in self._checks:
            self.guard.ask(check.id, partial(check.opened, total), None)


def _look(check: Check, observation: Observation, heard: bool) -> Callable[[], None]:
    return partial(check.observe if heard else check.ignored, observation)
