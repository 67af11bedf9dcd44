"""Records in the parts of a checkpoint, beside the arrays. Those of earlier versions lack what has a default."""

from typing import ClassVar

import msgspec

from secure_kg.runs.records.record import Figures, Record


class BestEvaluation(Record, frozen=True):
    """The best evaluation so far, as a client has read it."""

    kind: ClassVar[str] = "record of the best evaluation"

    mrr: float
    round: int
    checks_since: int


class JudgeRecord(Record, frozen=True):
    """What a client has read of the federation's results."""

    kind: ClassVar[str] = "record of evaluations"

    best: BestEvaluation
    evaluations: int


class CountRecord(Record, kw_only=True, frozen=True):
    """What a client has done: the last rounds it trained in, evaluated and took a verdict on."""

    kind: ClassVar[str] = "record of counts"

    trained: int = 0
    evaluated: int = 0
    judged: int = 0
    refused: int = 0
    added: int | None = None
    """The last round of which it has added up rows; None: the last one that it trained in."""
    opening: int = 0
    """The last round of which it was about to open a sum of rows."""


class ClientCheckpoint(Record, kw_only=True, frozen=True):
    """A client's part."""

    kind: ClassVar[str] = "record of a client's checkpoint"

    seconds: dict[str, float]
    cpu_seconds: dict[str, float] | None = None
    clipped: int
    max_error: float
    loss: tuple[float, int, int]
    """Loss, triples and steps of the last training whose rows were added up."""
    judge: JudgeRecord
    count: CountRecord = CountRecord()
    best_round: int = 0
    trained: str | None = None
    """Commitment to the state after the last training, in hex. Without it the parameters are committed to."""


class ServerCheckpoint(Record, frozen=True):
    """The server's part."""

    kind: ClassVar[str] = "record of a server's checkpoint"
    opened: ClassVar[tuple[str, ...]] = ("ledger",)

    best_mrr: float
    best_round: int
    checks_since_best: int
    best_with: list[int] | None = None
    """The clients that have the best model; None: all of them."""
    ledger: Figures = msgspec.field(default_factory=dict)
    """Costs, dropouts and abandoned sums so far."""

    @property
    def so_far(self) -> tuple[float, int, int]:
        """As `EarlyStopping.so_far`."""
        return self.best_mrr, self.best_round, self.checks_since_best
