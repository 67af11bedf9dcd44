"""`result.json`: a client's own result. A summary has a line for each client whose result lies on its machine."""

from typing import Any, ClassVar

import msgspec

from secure_kg.runs.records.record import Figures, Record


class ClientResult(Record, kw_only=True, frozen=True):
    """A client's results on its own test part, and what its part in the run has cost it."""

    kind: ClassVar[str] = "result of a client"
    opened: ClassVar[tuple[str, ...]] = ("figures", "about")
    absent: ClassVar[frozenset[str]] = frozenset({"metrics", "refused_evaluations", "cpu_seconds", "peak_memory_mb"})

    client: int
    figures: Figures = msgspec.field(default_factory=dict)
    """The learner's test results (`Metrics.figures`)."""
    metrics: Figures | None = None
    """The same under names that say what they are."""
    about: Figures = msgspec.field(default_factory=dict)
    """The learner's account of its data (`Learner.about`)."""
    rows_averaged: int = 0
    rows_kept_local: int = 0
    refused_evaluations: int | None = None
    clipped_values: int = 0
    max_fixed_point_error: float = 0.0
    seconds: dict[str, float] = msgspec.field(default_factory=dict)
    cpu_seconds: dict[str, float] | None = None
    peak_memory_mb: float | None = None
    late_messages: int = 0
    messages_sent: int = 0
    messages_received: int = 0

    @property
    def test_triples(self) -> int:
        found: int = self._told("test_triples") or 0
        return found

    @property
    def examples(self) -> int:
        """Of what its figures are: test queries, or else test triples."""
        found: int = self._told("test_queries") or self.test_triples
        return found

    @property
    def split_faults(self) -> dict[str, int] | None:
        """Counts of the faults of its split (`secure_kg.data.soundness`); None if the learner does not tell."""
        faults: dict[str, int] | None = self._told("split_faults")
        return faults

    def _told(self, name: str) -> Any:
        # Files of earlier versions have no `metrics` between figures and account.
        return self.about.get(name, self.figures.get(name))

    def outside_its_folder(self) -> "ClientResult":
        """What may be told of a client in a private run: nothing that depends on its triples and has no noise.

        Time and memory grow with the number of triples. Its own ranks leave out its train triples, so that results tell
        of those even if evaluation triples are public; what is told then comes with the sums of all clients.
        """
        return msgspec.structs.replace(
            self,
            figures={},
            metrics=None,
            about={},
            clipped_values=0,
            max_fixed_point_error=0.0,
            seconds={},
            cpu_seconds=None,
            peak_memory_mb=None,
        )

    def with_traffic(self, bytes_up: int, bytes_down: int) -> "ClientLine":
        """The same as a line of a summary."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return ClientLine(**values, bytes_up=bytes_up, bytes_down=bytes_down)


class ClientLine(ClientResult, kw_only=True, frozen=True):
    """A client's result in a summary, with its traffic as the server has counted it."""

    kind: ClassVar[str] = "line of a client"

    bytes_up: int
    bytes_down: int


class FederationResult(Record, kw_only=True, frozen=True):
    """`federation.json`: the result of the federation as a client has read it, where only clients can."""

    kind: ClassVar[str] = "result of a federation"
    opened: ClassVar[tuple[str, ...]] = ("figures",)
    absent: ClassVar[frozenset[str]] = frozenset({"test_queries"})

    figures: Figures = msgspec.field(default_factory=dict)
    test_triples: int | None
    test_queries: int | None = None
    """In a run of queries, which has no `test_triples`."""
    test_clients: int
    valid_mrr: float
    rows_averaged: int
    evaluations: int
    """How many this client has seen; one that was away may have missed the best."""

    @property
    def number_of_examples(self) -> int | None:
        """How many there are; earlier versions counted queries as triples."""
        return self.test_triples if self.test_queries is None else self.test_queries


class Evaluation(Record, kw_only=True, frozen=True):
    """A line of `metrics.jsonl`, or of `federation.jsonl`, which has the round and the figures only."""

    kind: ClassVar[str] = "line of an evaluation"
    opened: ClassVar[tuple[str, ...]] = ("figures",)
    absent: ClassVar[frozenset[str]] = frozenset({"seconds", "clients", "bytes_up", "bytes_down"})

    round: int
    seconds: float | None = None
    """Since the run began."""
    figures: Figures = msgspec.field(default_factory=dict)
    """The learner's validation results (`Metrics.evaluation`); none where the server cannot read them."""
    clients: int | None = None
    """Whose results are in it."""
    bytes_up: int | None = None
    """Since the run began, of all clients."""
    bytes_down: int | None = None

    def read_as(self, by_client: "Evaluation") -> "Evaluation":
        """The same with the figures that a client has read."""
        return msgspec.structs.replace(self, figures=self.figures | by_client.figures)
