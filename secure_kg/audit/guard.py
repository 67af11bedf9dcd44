"""Errors in the audit of a hostile record: each becomes a finding, and the rest of the audit goes on."""

from collections.abc import Callable
from typing import TypeVar

from secure_kg.audit.view.findings import Finding

T = TypeVar("T")


class Guard:
    """Asks whoever looks at a record. One that fails is not asked again: what it would say rests on half a record."""

    def __init__(self) -> None:
        self._failed: dict[str, str] = {}

    def ask(self, name: str, question: Callable[[], T], otherwise: T) -> T:
        """The answer of `name`, or `otherwise` if it has failed."""
        if name in self._failed:
            return otherwise
        try:
            return question()
        except Exception as problem:  # whatever a record can bring about must not end the audit
            self._failed[name] = f"{name}: {type(problem).__name__}: {problem}"
            return otherwise

    def findings(self) -> list[Finding]:
        if not self._failed:
            return []
        return [
            Finding(
                "check-failed",
                "high",
                "Checks failed on this record",
                tuple(self._failed.values()),
                "What these checks look for was not looked for to the end. A party has sent what they cannot read, or "
                "there is a fault in them. The other checks are not affected.",
            )
        ]
