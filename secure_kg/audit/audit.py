"""One audit: every transcript of a run goes by once, and everybody who has a question looks on."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from protocols.foundation.identifiers import PartyId
from secure_kg.attacks.result import AttackResult
from secure_kg.audit.checks.abandoned_sums import AbandonedSums
from secure_kg.audit.checks.as_programmed import AsProgrammed
from secure_kg.audit.checks.completeness import Completeness
from secure_kg.audit.checks.disputed import Disputed
from secure_kg.audit.checks.evaluations import Evaluations
from secure_kg.audit.checks.few_holders import FewHolders
from secure_kg.audit.checks.honest_totals import HonestTotals
from secure_kg.audit.checks.integrity import Integrity
from secure_kg.audit.checks.keys import Keys
from secure_kg.audit.checks.openings import BothShares, LateVectors
from secure_kg.audit.checks.participation import Differences
from secure_kg.audit.checks.passed_over import PassedOver
from secure_kg.audit.checks.refusals import Refusals
from secure_kg.audit.checks.relays import Relays
from secure_kg.audit.checks.repeated_sums import RepeatedSums
from secure_kg.audit.checks.resuming import Resuming
from secure_kg.audit.checks.reuse import Reuse
from secure_kg.audit.checks.said_in_order import SaidInOrder
from secure_kg.audit.checks.same_for_all import SameForAll
from secure_kg.audit.checks.secrets import Seeds, Weights
from secure_kg.audit.checks.side_channels import Sizes, Times
from secure_kg.audit.checks.survivors import OneStory
from secure_kg.audit.checks.tables_brought import TablesBrought
from secure_kg.audit.checks.uniformity import Uniformity
from secure_kg.audit.checks.union_answers import UnionAnswers
from secure_kg.audit.checks.verdicts import Verdicts
from secure_kg.audit.guard import Guard
from secure_kg.audit.ledger import Ledger
from secure_kg.audit.records.parts import AuditedSettings, Verdict
from secure_kg.audit.records.report import AuditReport
from secure_kg.audit.replay.again import SessionAgain, run_again
from secure_kg.audit.sums_seen import SumsSeen
from secure_kg.audit.view.attending import Attending
from secure_kg.audit.view.declarations import may_learn
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import CheckResult, Finding, worst_first
from secure_kg.audit.view.flow import Flow
from secure_kg.audit.view.in_turn import InTurn
from secure_kg.audit.view.notes import STANDING_NOTES
from secure_kg.audit.view.opening import OpenedSum, Opening
from secure_kg.audit.view.read import AuditedRun, Observation
from secure_kg.audit.view.receipts import load_receipts
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import FORMAT
from secure_kg.runs.alignment_files import load_aligned

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit has to say."""

    run: AuditedRun
    findings: tuple[Finding, ...]
    checks: tuple[CheckResult, ...]
    ledger: Ledger
    sums: SumsSeen
    flow: Flow
    attacks: tuple[AttackResult, ...] = field(default=())
    not_attacked: str = ""
    """Why attacks were not tried, if they were not."""

    @property
    def high(self) -> int:
        return sum(finding.severity == "high" for finding in self.findings)

    @property
    def exit_code(self) -> int:
        return 3 if self.high else 0

    def record(self) -> AuditReport:
        """`audit.json`."""
        config = self.run.config
        return AuditReport(
            version=VERSION,
            run=self.run.path.resolve().name,
            settings=AuditedSettings(
                strategy=config.strategy,
                alignment=config.alignment,
                aggregation=config.aggregation,
                adversary=config.adversary,
                clients=self.run.clients,
                min_holders=config.least_holders,
                client_fraction=config.client_fraction,
                reveal_names=config.reveal_names,
            ),
            verdict=Verdict(high=self.high, exit_code=self.exit_code),
            may_learn=may_learn(config),
            findings=list(self.findings),
            checks=[check.record() for check in self.checks],
            ledger=[entry.record() for entry in self.ledger.entries],
            attacks=list(self.attacks),
            attacks_not_tried=self.not_attacked,
            sums=self.sums.record(),
            traffic=self.flow.record(),
            notes=list(STANDING_NOTES),
        )


def checks_for(
    run: AuditedRun, directory: Mapping[PartyId, bytes] | None, again: Sequence[SessionAgain]
) -> list[Check]:
    config, clients = run.config, run.clients
    return [
        AsProgrammed(config, clients, again),
        Completeness(config, clients, run.summary, bool(again) and not any(one.difference for one in again)),
        SaidInOrder(config, clients),
        Uniformity(config, clients),
        Reuse(config, clients),
        Seeds(config, clients),
        Weights(config, clients),
        BothShares(config, clients),
        LateVectors(config, clients),
        OneStory(config, clients),
        AbandonedSums(config, clients),
        Relays(config, clients),
        Keys(config, clients, directory),
        SameForAll(config, clients),
        HonestTotals(config, clients),
        TablesBrought(config, clients),
        Resuming(config, clients),
        Evaluations(config, clients),
        PassedOver(config, clients),
        RepeatedSums(config, clients),
        Refusals(config, clients),
        Disputed(config, clients),
        Verdicts(config, clients),
        UnionAnswers(config, clients),
        FewHolders(config, clients),
        Differences(config, clients),
        Sizes(config, clients),
        Times(config, clients),
    ]


def audit(
    run: AuditedRun,
    receipts: Path | None = None,
    directory: Mapping[PartyId, bytes] | None = None,
    progress: Callable[[int], None] = lambda _: None,
    when_opened: Callable[[OpenedSum], None] = lambda _: None,
) -> Audit:
    """Everything but the attacks.

    `receipts`: the folder with the clients' folders, if the auditor has them; `directory`: their pinned identities.
    `progress` is told how many messages have gone by, `when_opened` of every sum, as the server could read it.
    """
    ledger, flow, sums, guard = Ledger(run.config), Flow(), SumsSeen(run.config, run.clients), Guard()
    again = _again(run, guard, progress)
    gone_through = sum(one.explained for one in again)
    checks: list[Check] = [sums, *checks_for(run, directory, again)]
    integrity = Integrity(run, load_receipts(run, receipts, directory) if receipts is not None else None)
    plan, aligned = RunPlan(run.config, run.clients), load_aligned(run.path / "server")
    union = aligned.union if aligned is not None else None
    looking = _Looking(checks, ledger, when_opened, guard)
    for number, recording in enumerate(run.recordings, start=1):
        known = again[number - 1] if number <= len(again) else None
        opening = Opening(run.config, run.clients, union, directory, known=known)
        attending = Attending(plan, known)
        looking.begin_session(f"sums of session {number}")
        in_turn = InTurn()
        for recorded in recording:
            integrity.observe(recorded)
            flow.observe(recorded)
            for observation in in_turn.turn(recorded):
                if known is None or observation.index != known.refused:  # which is for the ledger alone
                    looking.observe(observation, opening, heard=attending.takes(observation))
                else:
                    looking.refuse(observation)
                attending.observe(observation)
            progress(gone_through + flow.messages)
        for observation in in_turn.unasked():
            looking.unasked(observation)
        looking.end_session(opening)
        union = opening.union or union
        integrity.end_session(recording, number == len(run.recordings), known)
        for check in checks:
            if isinstance(check, RepeatedSums):
                check.not_recorded(integrity.unread, integrity.untold)
    integrity.end_run()
    results = [integrity.result(), *looking.results()]
    found = [*ledger.findings(), *looking.guard.findings()]
    findings = [*found, *(finding for result in results for finding in result.findings)]
    return Audit(run, tuple(worst_first(findings)), tuple(results), ledger, sums, flow)


def _again(run: AuditedRun, guard: Guard, progress: Callable[[int], None]) -> list[SessionAgain]:
    """What the server's program does with the record. Of earlier versions there is no program here."""
    if run.config.format != FORMAT:
        return []
    return guard.ask(AsProgrammed.id, partial(run_again, run, progress), list[SessionAgain]())


class _Looking:
    """All checks, each by itself: one that fails takes no other along."""

    def __init__(
        self, checks: list[Check], ledger: Ledger, when_opened: Callable[[OpenedSum], None], guard: Guard
    ) -> None:
        self._checks, self._ledger, self._when_opened = checks, ledger, when_opened
        self._sums = ""
        self.guard = guard

    def begin_session(self, sums: str) -> None:
        """`sums`: what those of the session are called."""
        self._sums = sums
        for check in self._checks:
            self.guard.ask(check.id, check.begin_session, None)

    def observe(self, observation: Observation, opening: Opening, *, heard: bool) -> None:
        """`heard`: whether an honest server says this, or goes by it."""
        ask = self.guard.ask
        ask("ledger", partial(self._ledger.observe, observation, heard=heard), None)
        # What the server sends is judged by the sums that it had by then.
        for total in ask(self._sums, partial(opening.observe, observation), list[OpenedSum]()):
            self._tell(total)
        for check in self._checks:
            ask(check.id, partial(check.observe if heard else check.ignored, observation), None)

    def unasked(self, observation: Observation) -> None:
        """A key that was advertised ahead of a sum that did not come. It is in nothing that was summed or sent."""
        self.guard.ask("ledger", partial(self._ledger.observe, observation, heard=True), None)
        for check in self._checks:
            self.guard.ask(check.id, partial(check.unasked, observation), None)

    def refuse(self, observation: Observation) -> None:
        """A message for which the server has ended the session. It is in nothing that was summed or sent."""
        self.guard.ask("ledger", partial(self._ledger.observe, observation, heard=False), None)

    def end_session(self, opening: Opening) -> None:
        for total in self.guard.ask(self._sums, opening.end, list[OpenedSum]()):
            self._tell(total)

    def _tell(self, total: OpenedSum) -> None:
        self.guard.ask("ledger", partial(self._ledger.opened, total), None)
        self._when_opened(total)
        for check in self._checks:
            self.guard.ask(check.id, partial(check.opened, total), None)

    def results(self) -> list[CheckResult]:
        return [self.guard.ask(one.id, one.result, one.unanswered()) for one in self._checks]
