"""`audit.json`: the report of an audit, for machines and for the page (`secure_kg.report.audit_page`)."""

from typing import ClassVar, TypeAlias

from secure_kg.audit.records.parts import (
    AttackResult,
    AuditedScores,
    AuditedSettings,
    CheckRecord,
    Finding,
    LedgerLine,
    Note,
    SumLine,
    Traffic,
    Verdict,
)
from secure_kg.runs.records.record import Record


class AuditReport(Record, kw_only=True, frozen=True):
    """All that an audit has to say."""

    kind: ClassVar[str] = "report of an audit"

    version: int
    run: str
    settings: AuditedSettings
    verdict: Verdict
    may_learn: list[str]
    findings: list[Finding]
    checks: list[CheckRecord]
    ledger: list[LedgerLine]
    attacks: list[AttackResult]
    attacks_not_tried: str
    """Why attacks were not tried, if they were not."""
    sums: list[SumLine]
    traffic: Traffic
    notes: list[Note]


class ScoreReport(Record, kw_only=True, frozen=True):
    """All that the audit of a session of score queries has to say: other settings, and the same parts."""

    kind: ClassVar[str] = "report of an audit of score queries"

    version: int
    run: str
    settings: AuditedScores
    verdict: Verdict
    may_learn: list[str]
    findings: list[Finding]
    checks: list[CheckRecord]
    ledger: list[LedgerLine]
    attacks: list[AttackResult]
    attacks_not_tried: str
    """Why attacks were not tried, if they were not."""
    sums: list[SumLine]
    traffic: Traffic
    notes: list[Note]


Reported: TypeAlias = AuditReport | ScoreReport
"""What a page can be made of."""
