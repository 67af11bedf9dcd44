"""Outcome of a run as the server knows it: the part of the summary that the protocols let it see."""

from dataclasses import dataclass

from secure_kg.evaluation.metrics import Metrics
from secure_kg.runs.records.events import AbandonedSum, Dropout, SetupCosts, TranscriptEnd


@dataclass(frozen=True, slots=True)
class ServerOutcome:
    """What the server knows when the run is over."""

    rounds: int
    best_round: int
    valid_mrr: float | None
    """None where only clients can read sums, as is `test`, and `rows_kept_local`."""
    test: Metrics | None
    test_clients: int
    """How many clients' results are in the test sum; 0 if clients did not help to open it, because it would show the
    difference to one they opened before."""
    union_size: int
    rows_kept_local: int | None
    """Rows of the union that were averaged in no round, because too few clients hold them."""
    dropouts: list[Dropout]
    abandoned_sums: list[AbandonedSum]
    elapsed: float
    setup: SetupCosts
    seconds: dict[str, float]
    cpu_seconds: dict[str, float]
    bytes_up: dict[int, int]
    bytes_down: dict[int, int]
    transcript: TranscriptEnd | None = None
    """The end of the server's record, where one was kept."""
