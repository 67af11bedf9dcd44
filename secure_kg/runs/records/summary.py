"""`summary.json`: the result of a run as its server tells it."""

from typing import Any, ClassVar, Final

import msgspec

from secure_kg.evaluation.metric_names import METRICS
from secure_kg.federation.plan.recorded import RecordedSettings
from secure_kg.privacy.statement import Statement
from secure_kg.runs.records.client_result import ClientLine
from secure_kg.runs.records.events import AbandonedSum, Dropout, SetupCosts, TranscriptEnd
from secure_kg.runs.records.record import Figures, Record


class PeakMemory(Record, kw_only=True, frozen=True):
    """Megabytes; None where no client's result lies on this machine, or the run is private."""

    kind: ClassVar[str] = "record of memory"

    server: float | None = None
    client_mean: float | None = None
    client_max: float | None = None


class Summary(Record, kw_only=True, frozen=True):
    """The result of a run."""

    kind: ClassVar[str] = "summary of a run"
    opened: ClassVar[tuple[str, ...]] = ("figures", "more")
    nested: ClassVar[dict[str, type[Record]]] = {"clients": ClientLine}
    absent: ClassVar[frozenset[str]] = frozenset({"test_queries", "privacy"})

    leaky_split: dict[str, int] | msgspec.UnsetType | None = msgspec.UNSET
    """Counts of damage; None if the split is known to be sound. First: whoever reads on must have read it.

    Summaries of earlier versions do not say.
    """
    metrics: Figures = msgspec.field(default_factory=dict)
    """The figures under names that say what they are."""
    figures: Figures = msgspec.field(default_factory=dict)
    """The learner's test results over all clients (`Metrics.figures`); null where only clients can read them."""
    test_triples: int | None
    """Null in a run of queries, as far as it was not written by an earlier version."""
    test_queries: int | None = None
    """In a run of queries."""
    test_clients: int
    valid_mrr: float | None = None
    rows_kept_local: int | None
    split_blemishes: dict[str, int] | None = None
    rounds: int
    best_round: int
    clients: list[ClientLine]
    """Of the clients whose results lie on the server's machine."""
    number_of_clients: int
    shared_rows: int
    dropouts: list[Dropout]
    abandoned_sums: list[AbandonedSum]
    seconds: dict[str, float]
    """By phase: the mean over clients, except `unmask`, which is the server's work. Where no client's are known, or the
    run is private, all are the server's."""
    seconds_total: float
    seconds_server: dict[str, float] = msgspec.field(default_factory=dict)
    cpu_seconds: dict[str, float] = msgspec.field(default_factory=dict)
    cpu_seconds_server: dict[str, float] = msgspec.field(default_factory=dict)
    peak_memory_mb: PeakMemory | float | None = None
    """One number in summaries of earlier versions."""
    setup: SetupCosts = SetupCosts()
    bytes_up: int
    bytes_down: int
    bytes_up_per_client: dict[str, int] = msgspec.field(default_factory=dict)
    bytes_down_per_client: dict[str, int] = msgspec.field(default_factory=dict)
    max_fixed_point_error: float | None
    clipped_values: int | None
    """Both are None in a private run: they depend on triples."""
    transcript: TranscriptEnd | None = None
    corrupt_clients: int = 0
    privacy: dict[str, Any] | None = None
    """The privacy statement of a private run."""
    config: dict[str, Any]
    """All settings, by their names in config.toml, with the least number of holders filled in."""
    more: Figures = msgspec.field(default_factory=dict)
    """What another version has added."""

    @property
    def leaks(self) -> dict[str, int] | None:
        """Counts of damage in the split, as far as the summary tells."""
        return None if self.leaky_split is msgspec.UNSET else self.leaky_split

    @property
    def statement(self) -> Statement | None:
        """What may be said of a private run. `UserError` if the record is no such statement."""
        return None if self.privacy is None else Statement.from_json(self.privacy, "the summary")

    @property
    def settings(self) -> RecordedSettings:
        """The settings that tables and reports tell of."""
        return RecordedSettings.of(self.config)

    @property
    def scores(self) -> tuple[str, ...]:
        """Names of the figures that a terminal has room for: those of rankings, or whatever the learner names."""
        return shown(self.figures)

    @property
    def all_scores(self) -> tuple[str, ...]:
        """Names of all figures that a page shows. Summaries of earlier versions lack Hits@5 and the mean rank."""
        if _RANKING[0] not in self.figures:
            return self.scores
        return tuple(name for name in METRICS if name in self.figures)

    @property
    def examples(self) -> str:
        """What the figures are means over, in a word."""
        if "types" in self.figures:
            return "queries"
        return "triples" if not self.figures or _RANKING[0] in self.figures else "examples"

    @property
    def number_of_examples(self) -> int | None:
        """How many there are; earlier versions counted queries as triples."""
        return self.test_triples if self.test_queries is None else self.test_queries

    @property
    def told(self) -> bool:
        """Whether the results of the federation are known here."""
        return None not in self.figures.values()

    @property
    def untold(self) -> str:
        """Why nobody here has test results, where that is so (`told`)."""
        private = self.settings.privacy
        return NO_FIGURES if private is not None and not private.public_evaluation else SEALED

    @property
    def times_of_clients(self) -> bool:
        """Whether `seconds` are means over clients; else they are the server's own."""
        return any(one.seconds for one in self.clients)

    @property
    def tested(self) -> str:
        """Of how many clients the results are: figures over different clients are not comparable."""
        tested, all_clients = self.test_clients, self.number_of_clients
        return str(all_clients) if tested == all_clients else f"{tested} of {all_clients}"


NO_FIGURES: Final = "no test figures: evaluation triples are private"
SEALED: Final = "the results are in the clients' own folders"
_RANKING: Final = ("mrr", "hits@1", "hits@3", "hits@10")
TITLES: Final = {
    "mrr": "MRR",
    "hits@1": "Hits@1",
    "hits@3": "Hits@3",
    "hits@5": "Hits@5",
    "hits@10": "Hits@10",
    "mean_rank": "mean rank",
}
"""Of figures in tables; others stand under their own names."""


def shown(figures: Figures) -> tuple[str, ...]:
    """Names of the figures that tables show."""
    if not figures or _RANKING[0] in figures:
        return _RANKING
    return tuple(name for name, value in figures.items() if value is None or isinstance(value, int | float))


def written(name: str, value: float) -> str:
    """A figure as tables write it: shares with four digits, ranks with two."""
    return f"{value:.2f}" if name == "mean_rank" else f"{value:.4f}"
