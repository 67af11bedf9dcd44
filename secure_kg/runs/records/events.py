"""Records of what happened in a run: dropouts, abandoned sums, the set-up, the end of the transcript."""

from typing import ClassVar

from secure_kg.runs.records.record import Record


class Dropout(Record, frozen=True):
    """One absence of a client."""

    kind: ClassVar[str] = "dropout"
    absent: ClassVar[frozenset[str]] = frozenset({"returned"})

    client: int
    round: int
    """0: during set-up."""
    step: str
    returned: int | None = None
    """The round from which the client took part again."""

    def back(self, round_id: int) -> "Dropout":
        """The same of a client that has come back."""
        return Dropout(self.client, self.round, self.step, round_id)


class AbandonedSum(Record, frozen=True):
    """A sum that ended without a result."""

    kind: ClassVar[str] = "sum that was abandoned"

    round: int
    purpose: str
    reason: str


class SetupCosts(Record, kw_only=True, frozen=True):
    """Seconds and bytes before the first round, of all sessions of a run."""

    kind: ClassVar[str] = "record of a set-up"

    seconds: float = 0.0
    bytes_up: int = 0
    bytes_down: int = 0


class TranscriptEnd(Record, kw_only=True, frozen=True):
    """The end of the server's transcript: by this one that was written anew is told from the one of the run."""

    kind: ClassVar[str] = "record of a transcript"

    file: str | None = None
    frames: int | None = None
    last_link: str | None = None
