"""One audit of a score session: its transcript goes by once, and everybody who has a question looks on.

Checks of masked sums are those of a training run. Where they look at the uploads of a sum, encrypted scores stand for
masked ones, so that who was in a sum is judged alike; whether values are uniform is asked of masked vectors only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from protocols.foundation.identifiers import PartyId
from protocols.scores.batches import ATTEMPTS
from secure_kg.attacks.result import AttackResult
from secure_kg.audit.audit import VERSION
from secure_kg.audit.checks.integrity import Integrity
from secure_kg.audit.checks.keys import Keys
from secure_kg.audit.checks.openings import BothShares, LateVectors
from secure_kg.audit.checks.relays import Relays
from secure_kg.audit.checks.repeated_sums import RepeatedSums
from secure_kg.audit.checks.reuse import Reuse
from secure_kg.audit.checks.secrets import Seeds
from secure_kg.audit.checks.survivors import OneStory
from secure_kg.audit.checks.uniformity import Uniformity
from secure_kg.audit.records.parts import AuditedBatches, AuditedScores, Verdict
from secure_kg.audit.records.report import ScoreReport
from secure_kg.audit.scores.askings import Askings
from secure_kg.audit.scores.checks import not_asked
from secure_kg.audit.scores.declarations import ScoreLedger, may_learn
from secure_kg.audit.scores.extracting import Extracting
from secure_kg.audit.scores.opening import ScoreOpening, ScorePlan, as_masked
from secure_kg.audit.scores.selections import DealtRandomness, SelectionRelays
from secure_kg.audit.scores.session import ScoredSession
from secure_kg.audit.scores.totals import ScoreTotals
from secure_kg.audit.sums_seen import SumsSeen
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import CheckResult, Evidence, Finding, worst_first
from secure_kg.audit.view.flow import Flow
from secure_kg.audit.view.notes import STANDING_NOTES
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import AuditedRun
from secure_kg.foundation.words import counted


@dataclass(frozen=True, slots=True)
class ScoreAudit:
    """What the audit of a score session has to say."""

    session: ScoredSession
    findings: tuple[Finding, ...]
    checks: tuple[CheckResult, ...]
    ledger: ScoreLedger
    sums: SumsSeen
    flow: Flow
    attacks: tuple[AttackResult, ...] = ()
    not_attacked: str = ""

    @property
    def high(self) -> int:
        return sum(finding.severity == "high" for finding in self.findings)

    @property
    def exit_code(self) -> int:
        return 3 if self.high else 0

    def record(self) -> ScoreReport:
        """`audit.json`."""
        record = self.session.record
        return ScoreReport(
            version=VERSION,
            run=self.session.path.resolve().name,
            settings=AuditedScores(
                backends=[one.name for one in self.session.backends],
                adversary=record.adversary,
                clients=len(record.parties),
                allow_extraction=record.allow_extraction,
                batches=[
                    AuditedBatches(
                        backend=one.backend,
                        round=one.round,
                        asker=one.asker,
                        positions=one.positions,
                        queries=one.queries,
                        top=one.top,
                        least=one.least,
                    )
                    for one in record.batches
                ],
            ),
            verdict=Verdict(high=self.high, exit_code=self.exit_code),
            may_learn=may_learn(self.session),
            findings=list(self.findings),
            checks=[check.record() for check in self.checks],
            ledger=[entry.record() for entry in self.ledger.entries],
            attacks=list(self.attacks),
            attacks_not_tried=self.not_attacked,
            sums=self.sums.record(),
            traffic=self.flow.record(),
            notes=list(STANDING_NOTES),
        )


class _Keys(Keys):
    """A session of score queries has no greeting that names it."""

    def __init__(self, session: ScoredSession, directory: Mapping[PartyId, bytes] | None) -> None:
        super().__init__(session.config, len(session.record.parties), directory)
        self._number = session.number

    def begin_session(self) -> None:
        super().begin_session()
        self._session = self._number


class _Watching:
    """All checks of a session. `of_values` see uploads as they came, `of_sums` as the masked sums took them."""

    def __init__(self, session: ScoredSession, directory: Mapping[PartyId, bytes] | None) -> None:
        config, clients = session.config, len(session.record.parties)
        self.sums = SumsSeen(config, clients)
        self.of_values: list[Check] = [
            Uniformity(config, clients),
            Reuse(config, clients),
            Seeds(config, clients),
            Relays(config, clients),
            _Keys(session, directory),
            RepeatedSums(config, clients),
            Askings(session),
            ScoreTotals(session),
            SelectionRelays(session),
            DealtRandomness(session),
        ]
        self.of_sums: list[Check] = [
            self.sums,
            BothShares(config, clients),
            LateVectors(config, clients),
            OneStory(config, clients),
        ]

    @property
    def all(self) -> list[Check]:
        return [*self.of_sums, *self.of_values]


def audit_scores(
    session: ScoredSession,
    directory: Mapping[PartyId, bytes] | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> ScoreAudit:
    """`directory`: the parties' pinned identities. `progress` is told how many messages have gone by."""
    ledger, flow, plan = ScoreLedger(session), Flow(), ScorePlan(session)
    watching, extracting = _Watching(session, directory), Extracting(session)
    run = AuditedRun(session.path, session.config, (session.recording,), None)
    integrity, opening = Integrity(run, None), ScoreOpening(session, directory)

    def tell(total: OpenedSum) -> None:
        ledger.opened(total)
        for check in watching.all:
            check.opened(total)

    for check in watching.all:
        check.begin_session()
    for observation in session.recording:
        for look in (integrity.observe, flow.observe, ledger.observe, extracting.observe):
            look(observation)
        in_sums = as_masked(observation, plan)
        for total in opening.observe(in_sums):
            tell(total)
        for check in watching.of_sums:
            check.observe(in_sums)
        for check in watching.of_values:
            check.observe(observation)
        progress(flow.messages)
    for total in opening.end():
        tell(total)
    integrity.end_session(session.recording, last=True)
    integrity.end_run()
    results = [integrity.result(), _whole(session, flow), *(check.result() for check in watching.all)]
    findings = [*ledger.findings(), *(finding for result in results for finding in result.findings)]
    attacks = extracting.results()
    return ScoreAudit(
        session,
        tuple(worst_first(findings)),
        (*results, *not_asked()),
        ledger,
        watching.sums,
        flow,
        tuple(attacks),
        "" if attacks else extracting.why_not(),
    )


def _whole(session: ScoredSession, flow: Flow) -> CheckResult:
    """Whether the transcript is the one that the session's own record speaks of, and holds its batches."""
    said, seal, found = session.record.transcript, session.recording.seal, list[Finding]()
    differs, missing = Evidence(), Evidence()
    if said is not None and (seal is None or seal.link.hex() != said.last_link or seal.records != said.frames):
        differs.add(f"{session.recording.path.name} does not end as the record of the session says it did")
    if said is not None:
        for batch in session.record.batches:
            if not any(batch.round + attempt in flow.by_round for attempt in range(ATTEMPTS)):
                missing.add(f"round {batch.round}, {batch.backend}: no message of this batch")
    if differs:
        found.append(
            Finding(
                "score-transcript-differs",
                "high",
                "The transcript is not the one of this session",
                differs.told(),
                "The session's own record was written with the last link of its transcript, and this one ends with "
                "another: it was changed, cut, or written anew.",
            )
        )
    if missing:
        found.append(
            Finding(
                "batches-missing",
                "high",
                "The transcript lacks batches that the session had",
                missing.told(),
                "The session came to its end by its own record. What the server saw in these batches is not known.",
            )
        )
    if said is None:
        found.append(
            Finding(
                "score-session-unfinished",
                "medium",
                "The session did not come to its end",
                (),
                "Its record lacks the end of the transcript, so that batches may be missing from it.",
            )
        )
    rounds = counted(len(flow.by_round), "round")
    looked = f"{len(session.record.batches)} batches, {rounds}, {'ended' if said is not None else 'not ended'}"
    question = "Does the transcript lack batches, or differ from what the record of the session says?"
    return CheckResult("whole-score-session", question, flow.messages, looked, tuple(found))
