"""Results of a finished run, in one form for training runs and fusions."""

from dataclasses import dataclass, field
from typing import ClassVar

import msgspec

from benchmarks.judging.judged_by import JudgedBy
from benchmarks.reproduction.cells import Cell, Job
from benchmarks.reproduction.jobs import Outcome, Spent, spent
from benchmarks.reproduction.query_tables import CROSS
from benchmarks.reproduction.table import ALL, BOTH_SIDES
from secure_kg.runs.records.events import Dropout
from secure_kg.runs.records.fusion import FusionOptions, FusionRecord
from secure_kg.runs.records.record import Figures, Record
from secure_kg.runs.run_folder import read_json, read_record, write_json

_METRICS = ("mrr", "hits@1", "hits@3", "hits@5", "hits@10")
Unset = msgspec.UnsetType


class About(Record, kw_only=True, frozen=True):
    """What a report tells of a run beside its figures; a summary of an earlier version may lack some of it."""

    kind: ClassVar[str] = "record of a run"
    absent: ClassVar[frozenset[str]] = frozenset({"rounds", "best_round"})

    seconds_total: float | Unset = msgspec.UNSET
    rounds: int | None = None
    best_round: int | None = None
    valid_mrr: float | Unset | None = msgspec.UNSET
    both_sides: Figures | Unset | None = msgspec.UNSET
    test_triples: int | Unset | None = msgspec.UNSET
    test_clients: int | Unset = msgspec.UNSET
    number_of_clients: int | Unset = msgspec.UNSET
    dropouts: list[Dropout] | Unset = msgspec.UNSET
    bytes_up: int | Unset = msgspec.UNSET
    bytes_down: int | Unset = msgspec.UNSET
    leaky_split: dict[str, int] | Unset | None = msgspec.UNSET
    split_blemishes: dict[str, int] | Unset | None = msgspec.UNSET
    fusion_settings: FusionOptions | Unset | None = msgspec.UNSET


class ClientPart(Record, kw_only=True, frozen=True):
    """Figures of one client."""

    kind: ClassVar[str] = "result of a client"
    opened: ClassVar[tuple[str, ...]] = ("figures",)

    client: int
    test_triples: int | None = None
    figures: Figures = msgspec.field(default_factory=dict)


class TrainedRun(Record, kw_only=True, frozen=True):
    """A summary of whatever version, as far as a report reads it."""

    kind: ClassVar[str] = "summary of a run"
    opened: ClassVar[tuple[str, ...]] = ("items",)
    nested: ClassVar[dict[str, type[Record]]] = {"clients": ClientPart}

    clients: list[ClientPart] = msgspec.field(default_factory=list)
    items: Figures = msgspec.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """A run of the plan, whether it is there or not."""

    cell: Cell
    folder: str
    outcome: Outcome
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    """By part (`all`, `client 1`, ...), tail side; over both sides under names that say so."""
    about: About = field(default_factory=About)
    clients: list[ClientPart] = field(default_factory=list)
    spent: Spent = field(default_factory=Spent)

    def to_json(self) -> Figures:
        cell = self.cell
        return {
            "run": self.folder,
            "dataset": cell.dataset,
            "clients": cell.clients,
            "model": cell.model,
            "strategy": cell.strategy,
            "seed": cell.seed,
            "state": self.outcome.state,
            "error": self.outcome.error,
            "command": self.spent.command,
            "seconds_spent": self.spent.seconds,
            "sessions": len(self.spent.sessions),
            "peak_memory_mb": self.spent.peak_memory_mb,
            **self.about.to_json(),
            **self.metrics.get(ALL, {}),
            "per_client": [client.to_json() for client in self.clients],
        }


def read_result(job: Job, outcome: Outcome) -> Result:
    """From the run's own files; a run that is not finished has no figures."""
    if outcome.state != "finished":
        return Result(job.cell, job.folder.name, outcome, spent=spent(job))
    clients, total, about = _fusion(job) if job.needs else _training(job)
    total |= _crossing(job)
    metrics = {f"client {client.client}": client.figures for client in clients} | {ALL: total}
    return Result(job.cell, job.folder.name, outcome, metrics, about, clients, spent(job))


def _training(job: Job) -> tuple[list[ClientPart], dict[str, float], About]:
    run = read_record(job.result, TrainedRun)
    clients = [
        ClientPart(client=one.client, test_triples=one.test_triples, figures=_metrics(one.figures))
        for one in run.clients
    ]
    return clients, _metrics(run.items), About.from_json(run.items, job.result)


def _fusion(job: Job) -> tuple[list[ClientPart], dict[str, float], About]:
    """Figures of the fused models."""
    fusion = read_record(job.result, FusionRecord)
    clients = [
        ClientPart(client=one.client, test_triples=one.test_triples, figures=_metrics(one.fused))
        for one in fusion.clients
    ]
    fused = fusion.all.fused
    about = About(fusion_settings=fusion.settings, both_sides=fused.get("both_sides"))
    return clients, _metrics(fused), about


def _metrics(figures: Figures) -> dict[str, float]:
    sides = {"": figures, BOTH_SIDES: figures.get("both_sides") or {}}
    return {
        f"{side}{name}": value
        for side, found in sides.items()
        for name in _METRICS
        if isinstance(value := found.get(name), float | int)
    }


def _crossing(job: Job) -> dict[str, float]:
    """Judged by queries across graphs when first asked for: that takes everybody's files, and some seconds."""
    if not job.cross_graph:
        return {}
    if not job.crossing.exists():
        from benchmarks.judging.across import judge  # torch takes its time

        write_json(job.crossing, judge(job.folder, JudgedBy()))
    found = read_json(job.crossing)
    return {f"{CROSS}{name}": value for name, value in _metrics(found["cross"] or {}).items()}
