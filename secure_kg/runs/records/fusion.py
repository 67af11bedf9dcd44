"""`fusion.json`: the clients' federated models joined with the ones they trained alone."""

from typing import ClassVar

import msgspec

from secure_kg.runs.records.record import Figures, Record


class FusedRun(Record, kw_only=True, frozen=True):
    """One of the two runs that were joined."""

    kind: ClassVar[str] = "run of a fusion"
    absent: ClassVar[frozenset[str]] = frozenset({"strategy"})

    run: str
    strategy: str | None = None


class FusionOptions(Record, kw_only=True, frozen=True):
    """Settings of the fit."""

    kind: ClassVar[str] = "record of settings"

    fit: str
    beta: float
    epochs: int
    negatives: int


class FusedClient(Record, kw_only=True, frozen=True):
    """The fusion of one client: test figures of both models and of the fused one."""

    kind: ClassVar[str] = "fusion of a client"

    client: int
    test_triples: int | None = None
    weights: dict[str, float] = msgspec.field(default_factory=dict)
    chosen: str = ""
    valid_mrr: dict[str, float] = msgspec.field(default_factory=dict)
    losses: list[float] = msgspec.field(default_factory=list)
    single: Figures
    federated: Figures
    fused: Figures


class FusedTotal(Record, kw_only=True, frozen=True):
    """The same over all clients, every test triple alike."""

    kind: ClassVar[str] = "sum of fusions"

    test_triples: int | None = None
    single: Figures
    federated: Figures
    fused: Figures


class FusionRecord(Record, kw_only=True, frozen=True):
    """The whole file."""

    kind: ClassVar[str] = "record of a fusion"

    federated: FusedRun
    single: FusedRun
    model: str
    settings: FusionOptions | None = None
    clients: list[FusedClient]
    all: FusedTotal
