"""One audit: every transcript of a run goes by once, and everybody who has a question looks on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from protocols.foundation.identifiers import PartyId
from secure_kg.attacks.result import AttackResult
from secure_kg.audit.checks.abandoned_sums import AbandonedSums
from secure_kg.audit.checks.completeness import Completeness
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
from secure_kg.audit.checks.same_for_all import SameForAll
from secure_kg.audit.checks.secrets import Seeds, Weights
from secure_kg.audit.checks.side_channels import Sizes, Times
from secure_kg.audit.checks.survivors import OneStory
from secure_kg.audit.checks.tables_brought import TablesBrought
from secure_kg.audit.checks.uniformity import Uniformity
from secure_kg.audit.checks.union_answers import UnionAnswers
from secure_kg.audit.checks.verdicts import Verdicts
from secure_kg.audit.ledger import Ledger
from secure_kg.audit.records.parts import AuditedSettings, Verdict
from secure_kg.audit.records.report import AuditReport
from secure_kg.audit.sums_seen import SumsSeen
from secure_kg.audit.view.declarations import may_learn
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import CheckResult, Finding, worst_first
from secure_kg.audit.view.flow import Flow
from secure_kg.audit.view.notes import STANDING_NOTES
from secure_kg.audit.view.opening import OpenedSum, Opening
from secure_kg.audit.view.read import AuditedRun
from secure_kg.audit.view.receipts import load_receipts
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


def checks_for(run: AuditedRun, directory: Mapping[PartyId, bytes] | None) -> list[Check]:
    config, clients = run.config, run.clients
    return [
        Completeness(config, clients, run.summary),
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
    ledger, flow, sums = Ledger(run.config), Flow(), SumsSeen(run.config, run.clients)
    checks: list[Check] = [sums, *checks_for(run, directory)]
    integrity = Integrity(run, load_receipts(run, receipts, directory) if receipts is not None else None)
    aligned = load_aligned(run.path / "server")
    union = aligned.union if aligned is not None else None
    for number, recording in enumerate(run.recordings, start=1):
        opening = Opening(run.config, run.clients, union, directory)
        for check in checks:
            check.begin_session()
        for observation in recording:
            integrity.observe(observation)
            flow.observe(observation)
            ledger.observe(observation)
            # What the server sends is judged by the sums that it had by then.
            for total in opening.observe(observation):
                _tell(total, checks, ledger, when_opened)
            for check in checks:
                check.observe(observation)
            progress(flow.messages)
        for total in opening.end():
            _tell(total, checks, ledger, when_opened)
        union = opening.union or union
        integrity.end_session(recording, last=number == len(run.recordings))
    integrity.end_run()
    results = [integrity.result(), *(check.result() for check in checks)]
    findings = [*ledger.findings(), *(finding for result in results for finding in result.findings)]
    return Audit(run, tuple(worst_first(findings)), tuple(results), ledger, sums, flow)


def _tell(total: OpenedSum, checks: list[Check], ledger: Ledger, when_opened: Callable[[OpenedSum], None]) -> None:
    ledger.opened(total)
    when_opened(total)
    for check in checks:
        check.opened(total)
