"""Rows of a campaign: what is kept of a finished cell when its run folder is gone.

A row has no names of hosts and no paths, so it can be published as it is.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

import msgspec

from benchmarks.campaigns.queue import Entry
from benchmarks.reproduction.cells import Cell, Job
from benchmarks.reproduction.jobs import Outcome, Session, Spent, spent
from benchmarks.reproduction.provenance import RESULTS_VERSION, digest_of, machine
from benchmarks.reproduction.results import About, ClientPart, Result
from benchmarks.reproduction.table import ALL
from secure_kg.runs.records.client_result import Evaluation
from secure_kg.runs.records.events import AbandonedSum, Dropout, SetupCosts
from secure_kg.runs.records.fusion import FusionRecord
from secure_kg.runs.records.record import Figures, Record
from secure_kg.runs.records.summary import Summary
from secure_kg.runs.run_folder import RunFolder, read_record

_FIGURES: Final = ("mrr", "hits@1", "hits@3", "hits@5", "hits@10", "mean_rank")
_KEPT: Final = 16


class Point(Record, kw_only=True, frozen=True):
    """One evaluation on the way: validation figures, tail side, and what had been sent until then."""

    kind: ClassVar[str] = "point of a curve"

    round: int
    seconds: float | None = None
    loss: float | None = None
    mrr: float | None = None
    hits_10: float | None = None
    bytes_up: int | None = None
    bytes_down: int | None = None


class PartRow(Record, kw_only=True, frozen=True):
    """Test figures of one client, or of all."""

    kind: ClassVar[str] = "figures of a part"

    client: int | None = None
    test_triples: int | None = None
    entities: int | None = None
    relations: int | None = None
    tail: Figures = msgspec.field(default_factory=dict)
    both: Figures = msgspec.field(default_factory=dict)


class Row(Record, kw_only=True, frozen=True):
    """A finished cell."""

    kind: ClassVar[str] = "row of a campaign"

    key: str
    version: int
    entry: str
    table: str
    dataset: str
    clients: int
    model: str
    strategy: str
    seed: int
    settings: Figures
    data: str
    """The beginning of the SHA-256 of the data set."""
    commits: list[str]
    date: str
    machine: Figures
    seconds: float | None
    cpu_seconds: float | None
    """Of the sessions that tell theirs: one that was killed does not."""
    sessions: int
    peak_memory_mb: float | None
    rounds: int | None = None
    best_round: int | None = None
    stopped_early: bool | None = None
    """Whether it ended because validation got no better, and not at the largest number of rounds."""
    valid_mrr: float | None = None
    test_clients: int | None = None
    shared_rows: int | None = None
    rows_kept_local: int | None = None
    bytes_up: int | None = None
    bytes_down: int | None = None
    setup: SetupCosts | None = None
    dropouts: list[Dropout] = msgspec.field(default_factory=list)
    abandoned_sums: list[AbandonedSum] = msgspec.field(default_factory=list)
    leaky_split: dict[str, int] | None = None
    split_blemishes: dict[str, int] | None = None
    fusion: Figures | None = None
    all: PartRow = PartRow()
    parts: list[PartRow] = msgspec.field(default_factory=list)
    curve: list[Point] = msgspec.field(default_factory=list)

    @property
    def cell(self) -> Cell:
        return Cell(self.dataset, self.clients, self.model, self.strategy, self.seed)


def key_of(identity: dict[str, Any], version: int) -> str:
    """What a cell is found again by: the same run under the same version of results has the same key."""
    written = json.dumps([version, identity], sort_keys=True)
    return hashlib.sha256(written.encode()).hexdigest()[:_KEPT]


def row_of(entry: Entry, job: Job) -> Row:
    """Of a run that is finished."""
    cell, identity, cost = job.cell, entry.identity(job.cell), spent(job)
    where = entry.request.data_root / entry.request.dataset(cell).where(cell.clients)
    about = _Fused(job) if job.needs else _Trained(job)
    return Row(
        key=key_of(identity, RESULTS_VERSION),
        version=RESULTS_VERSION,
        entry=entry.name,
        table=entry.table,
        **identity,
        data=digest_of(where),
        commits=list(dict.fromkeys(one.commit for one in cost.sessions if one.commit)),
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        machine=machine(),
        seconds=_rounded(cost.seconds),
        cpu_seconds=_rounded(cost.cpu_seconds),
        sessions=len(cost.sessions),
        peak_memory_mb=_rounded(cost.peak_memory_mb),
        **about.fields(),
    )


def result_of(row: Row) -> Result:
    """The row as a result of `benchmarks.reproduce`, so that the same report is made of it."""
    figures = {f"client {part.client}": part.tail for part in row.parts} | {ALL: row.all.tail}
    about = About(
        rounds=row.rounds,
        best_round=row.best_round,
        valid_mrr=row.valid_mrr,
        both_sides=row.all.both or None,
        test_triples=row.all.test_triples,
        dropouts=row.dropouts,
        leaky_split=row.leaky_split,
        split_blemishes=row.split_blemishes,
    )
    clients = [
        ClientPart(client=part.client, test_triples=part.test_triples, figures=part.tail)
        for part in row.parts
        if part.client is not None
    ]
    name = f"{row.entry}: {row.cell}"
    sessions = [Session(commit=commit) for commit in row.commits]
    cost = Spent(seconds=row.seconds, peak_memory_mb=row.peak_memory_mb, sessions=sessions)
    return Result(row.cell, name, Outcome("finished"), figures, about, clients, cost)


@dataclass(frozen=True, slots=True)
class _Trained:
    """What a training run tells."""

    job: Job

    def fields(self) -> dict[str, Any]:
        summary = read_record(self.job.result, Summary)
        largest = self.job.settings.get("rounds")
        return {
            "rounds": summary.rounds,
            "best_round": summary.best_round,
            "stopped_early": None if largest is None else summary.rounds < largest,
            "valid_mrr": summary.valid_mrr,
            "test_clients": summary.test_clients,
            "shared_rows": summary.shared_rows,
            "rows_kept_local": summary.rows_kept_local,
            "bytes_up": summary.bytes_up,
            "bytes_down": summary.bytes_down,
            "setup": summary.setup,
            "dropouts": summary.dropouts,
            "abandoned_sums": summary.abandoned_sums,
            "leaky_split": summary.leaks,
            "split_blemishes": summary.split_blemishes,
            "all": _part(summary.figures, about={"test_triples": summary.test_triples}),
            "parts": [_part(line.figures, client=line.client, about=line.about) for line in summary.clients],
            "curve": [*map(_point, RunFolder(self.job.folder).all_metrics())],
        }


@dataclass(frozen=True, slots=True)
class _Fused:
    """What a fusion tells."""

    job: Job

    def fields(self) -> dict[str, Any]:
        fusion = read_record(self.job.result, FusionRecord)
        chosen = {str(one.client): {"chosen": one.chosen, "weights": one.weights} for one in fusion.clients}
        settings = {} if fusion.settings is None else fusion.settings.to_json()
        return {
            "fusion": {"settings": settings, "clients": chosen},
            "all": _part(fusion.all.fused, about={"test_triples": fusion.all.test_triples}),
            "parts": [
                _part(one.fused, client=one.client, about={"test_triples": one.test_triples}) for one in fusion.clients
            ],
        }


def _part(figures: Figures, *, client: int | None = None, about: Figures) -> PartRow:
    """`about`: what else is known of the part, such as how many test triples it has."""
    return PartRow(
        client=client,
        test_triples=about.get("test_triples"),
        entities=about.get("entities"),
        relations=about.get("relations"),
        tail=_numbers(figures, _FIGURES),
        both=_numbers(figures.get("both_sides") or {}, _FIGURES),
    )


def _point(line: Evaluation) -> Point:
    valid = _numbers(line.figures.get("valid") or {}, ("mrr", "hits@10"))
    return Point(
        round=line.round,
        seconds=_rounded(line.seconds),
        loss=_numbers(line.figures, ("loss",)).get("loss"),
        mrr=valid.get("mrr"),
        hits_10=valid.get("hits@10"),
        bytes_up=line.bytes_up,
        bytes_down=line.bytes_down,
    )


def _numbers(figures: Figures, names: Sequence[str]) -> Figures:
    """Figures with six digits, which is more than a table shows and less than chance decides."""
    return {name: round(value, 6) for name in names if isinstance(value := figures.get(name), float | int)}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
