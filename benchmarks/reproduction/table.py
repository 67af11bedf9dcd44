"""What a table of a paper is: its data, its settings, what it claims, and what it printed."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from benchmarks.reproduction.settings import QuerySettings, TableSettings

TITLES: Final = {
    **{"local": "Local", "entire": "Entire", "fede": "FedE", "fedr": "FedR", "fused": "FedE+fusion"},
    **{"central": "Central", "fedcqa": "FedCQA"},
}
ALL: Final = "all"
"""The part of a result that is about all clients together; `client K` is the other kind."""
BOTH_SIDES: Final = "both "
"""Before the name of a metric over tails and heads together; without it, metrics are of tails."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """Where a data set lies below the data root."""

    path: str
    """`{clients}` stands for their number: a published split is a file of its own for each."""
    by: str = "triples"
    """How the seed divides a data set that is given whole."""
    leaky: bool = False
    """Whether held-out triples were trained on: a run refuses such a split unless it is told that this is meant."""

    @property
    def published(self) -> bool:
        """Whether the split is a given file. Otherwise the run's seed draws it."""
        return self.path.endswith(".npz")

    def where(self, clients: int) -> str:
        return self.path.format(clients=clients)


@dataclass(frozen=True, slots=True)
class Claim:
    """Whether `first` is at least as good as `second`. What the paper answers, in each cell, its figures tell."""

    first: str
    second: str
    metric: str | None = None
    """None: the table's first."""

    def __str__(self) -> str:
        about = "" if self.metric is None else f" ({self.metric})"
        return f"{TITLES[self.first]} ≥ {TITLES[self.second]}{about}"


Paper = Callable[[str, int, str, str, str, str], float | None]
"""The printed figure for data set, clients, model, strategy, part and metric; None where the paper has none."""


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a paper."""

    title: str
    datasets: dict[str, Dataset]
    usual_datasets: tuple[str, ...]
    clients: tuple[int, ...]
    models: tuple[str, ...]
    usual_models: tuple[str, ...]
    strategies: tuple[str, ...]
    metrics: tuple[str, ...]
    """Those that are measured here, first the one that claims are about."""
    per_client: bool
    settings: TableSettings
    drawn: int | None
    """How many clients FedE draws in a round; None: all."""
    claims: tuple[Claim, ...]
    paper: Paper
    notes: tuple[str, ...]
    shown: int = 1
    """How many of the metrics a terminal has room for."""
    aggregation: str = "secagg"

    @property
    def of_queries(self) -> bool:
        """Whether runs train on logical queries."""
        return isinstance(self.settings, QuerySettings)

    def parts(self, clients: int) -> list[str]:
        """What the table has figures of."""
        return [*(f"client {number}" for number in range(1, clients + 1) if self.per_client), ALL]

    def client_fraction(self, strategy: str, clients: int) -> float:
        if strategy != "fede" or self.drawn is None:
            return 1.0
        return min(1.0, self.drawn / clients)
