"""What a check has found, and what to do about it."""

from dataclasses import dataclass
from typing import Final, Literal

Status = Literal["ok", "note", "problem"]
STATUSES: Final[tuple[Status, ...]] = ("ok", "note", "problem")


@dataclass(frozen=True, slots=True)
class Finding:
    """`problem`: a default run cannot do with it. `note`: it can, and something else may not."""

    about: str
    status: Status
    found: str
    next_step: str = ""

    def to_json(self) -> dict[str, str]:
        return {"about": self.about, "status": self.status, "found": self.found, "next_step": self.next_step}


def graded(about: str, found: str, *, problem: bool = False, note: bool = False, next_step: str = "") -> Finding:
    """The worse of both; the next step is told only where there is something to do."""
    status: Status = "problem" if problem else "note" if note else "ok"
    return Finding(about, status, found, next_step if status != "ok" else "")
