"""One audit of a score session: its transcript goes by once, and everybody who has a question looks on.

Checks of masked sums are those of a training run. Where they look at the uploads of a sum, encrypted scores stand for
masked ones, so that who was in a sum is judged alike; whether values are uniform is asked of masked vectors only.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from protocols.foundation.identifiers import PartyId
from protocols.scores.batches import ATTEMPTS
from protocols.session.conversation import Abort, Failed
from secure_kg.attacks.result import AttackResult
from secure_kg.audit.audit import VERSION
from secure_kg.audit.checks.integrity import Integrity
from secure_kg.audit.guard import Guard
from secure_kg.audit.records.parts import AuditedBatches, AuditedScores, Verdict
from secure_kg.audit.records.report import ScoreReport
from secure_kg.audit.scores.again import ScoresAgain, run_again
from secure_kg.audit.scores.checks import not_asked
from secure_kg.audit.scores.declarations import ScoreLedger, may_learn
from secure_kg.audit.scores.looking import Looking, ScoresAsProgrammed
from secure_kg.audit.scores.opening import ScorePlan
from secure_kg.audit.scores.session import ScoredSession
from secure_kg.audit.scores.together import answers_together
from secure_kg.audit.sums_seen import SumsSeen
from secure_kg.audit.view.attending import Attending
from secure_kg.audit.view.findings import CheckResult, Evidence, Finding, worst_first
from secure_kg.audit.view.flow import Flow
from secure_kg.audit.view.notes import STANDING_NOTES
from secure_kg.audit.view.read import AuditedRun
from secure_kg.foundation.words import counted

_LAST_WORDS = Abort | Failed
"""With which a session ends early."""


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
            notes=[*answers_together(record), *STANDING_NOTES],
        )


def audit_scores(
    session: ScoredSession,
    directory: Mapping[PartyId, bytes] | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> ScoreAudit:
    """`directory`: the parties' pinned identities. `progress` is told how many messages have gone by."""
    guard, flow = Guard(), Flow()
    again = _again(session, guard)
    known = again.session if again is not None else None
    looking, attending = Looking(session, directory, again, guard), Attending(ScorePlan(session), known)
    run = AuditedRun(session.path, session.config, (session.recording,), None)
    integrity, stopped = Integrity(run, None), False
    explained = again is not None and not again.session.difference and (again.ended or _passes_no_wire(session))
    for observation in session.recording:
        integrity.observe(observation)
        flow.observe(observation)
        if known is None or observation.index != known.refused:  # which is for the ledger alone
            looking.observe(observation, heard=attending.takes(observation))
        else:
            looking.refuse(observation)
        attending.observe(observation)
        stopped = stopped or isinstance(observation.message, _LAST_WORDS)
        progress(flow.messages)
    looking.end()
    integrity.end_session(session.recording, True, known)
    integrity.end_run()
    results = [integrity.result(), _whole(session, flow, stopped, explained), *looking.results()]
    found = [*guard.ask("ledger", looking.ledger.findings, list[Finding]()), *guard.findings()]
    findings = [*found, *(finding for result in results for finding in result.findings)]
    attacks = guard.ask("attacks", looking.extracting.results, list[AttackResult]())
    return ScoreAudit(
        session,
        tuple(worst_first(findings)),
        (*results, *not_asked()),
        looking.ledger,
        looking.sums,
        flow,
        tuple(attacks),
        "" if attacks else looking.extracting.why_not(),
    )


def _again(session: ScoredSession, guard: Guard) -> ScoresAgain | None:
    """What the server's program does with the record; None if it cannot be run here."""
    return guard.ask(ScoresAsProgrammed.id, partial(run_again, session), None)


def _passes_no_wire(session: ScoredSession) -> bool:
    """Whether the program cannot be followed to the end of any such session."""
    return any(one.server_again is None for one in session.backends)


def _whole(session: ScoredSession, flow: Flow, stopped: bool, explained: bool) -> CheckResult:
    """Whether the transcript is the one that the session's own record speaks of, and holds its batches.

    `stopped`: whether a party has ended the session before its end, so that batches never came. `explained`: whether
    the server's program leaves such a record if nobody is left.
    """
    said, seal, found = session.record.transcript, session.recording.seal, list[Finding]()
    differs, missing = Evidence(), Evidence()
    if said is not None and (seal is None or seal.link.hex() != said.last_link or seal.records != said.frames):
        differs.add(f"{session.recording.path.name} does not end as the record of the session says it did")
    if said is not None and not stopped:
        there = [
            any(batch.round + attempt in flow.by_round for attempt in range(ATTEMPTS))
            for batch in session.record.batches
        ]
        for batch, came in zip(session.record.batches, there, strict=True):
            if not came:
                missing.add(f"round {batch.round}, {batch.backend}: no message of this batch")
        explained = explained and there == sorted(there, reverse=True)  # nobody comes back
    explained = explained and not differs
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
                "medium" if explained else "high",
                "The transcript lacks batches that the session had",
                missing.told(),
                "The session came to its end by its own record. "
                + (
                    "If everybody had dropped out by then, there was nothing to record. If not, the record was cut."
                    if explained
                    else "What the server saw in these batches is not known."
                ),
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
