"""Findings of an audit: one statement each, with evidence and an explanation for people outside cryptography."""

from dataclasses import dataclass, field
from typing import Final, Literal

from secure_kg.audit.records.parts import CheckRecord, Severity
from secure_kg.audit.records.parts import Finding as Finding

SEVERITIES: Final[tuple[Severity, ...]] = ("high", "medium", "low", "info")
"""high: the server got to know something that the protocols promise to hide, or the record cannot be trusted.
medium: something that takes effort, luck or time to exploit, or that could not be checked.
low: a side channel that every deployment has. info: a property of the run that a reader should know."""
_MOST_EVIDENCE: Final = 20
Status = Literal["passed", "failed", "nothing to check"]


@dataclass(slots=True)
class Evidence:
    """Single observations of one kind: the first few in words, all of them counted."""

    lines: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, line: str) -> None:
        self.count += 1
        if len(self.lines) < _MOST_EVIDENCE:
            self.lines.append(line)

    def __bool__(self) -> bool:
        return self.count > 0

    def told(self) -> tuple[str, ...]:
        more = self.count - len(self.lines)
        return (*self.lines, *((f"and {more} more",) if more else ()))


@dataclass(slots=True)
class GradedEvidence(Evidence):
    """Evidence from uploads, with what the server dropped. That is its sender's own doing, and in no sum."""

    went_by: int = 0
    """How much of it is about what the server went by."""

    def add(self, line: str, heard: bool = True) -> None:
        """`heard`: whether the server went by all of it."""
        self.went_by += heard
        Evidence.add(self, line if heard else f"{line}; the server dropped it")

    @property
    def severity(self) -> Severity:
        return "high" if self.went_by else "medium"

    @property
    def explained(self) -> str:
        """What a reader should know of it besides."""
        return "" if self.went_by else "Here the server dropped what was wrong: only its sender is at fault."


def worst_first(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: (SEVERITIES.index(finding.severity), finding.id))


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check: what it looked at, and whether it found anything. Checks that pass are part of a report, too."""

    id: str
    question: str
    seen: int
    """How many things it looked at."""
    looked_at: str
    findings: tuple[Finding, ...]

    @property
    def status(self) -> Status:
        if any(finding.severity in ("high", "medium") for finding in self.findings):
            return "failed"
        return "passed" if self.seen else "nothing to check"

    def record(self) -> CheckRecord:
        return CheckRecord(
            id=self.id,
            question=self.question,
            looked_at=self.looked_at,
            status=self.status,
            findings=[finding.id for finding in self.findings],
        )
