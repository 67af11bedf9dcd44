"""Outlook of a campaign: how far each cell is, and how many hours are left, by what rounds have cost so far.

Hours are those of a machine that does nothing else: processor seconds of finished runs, divided by the cores.
"""

import functools
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.campaigns.queue import Entry
from benchmarks.campaigns.rows import Row
from benchmarks.reproduction.cells import Cell, Job
from benchmarks.reproduction.jobs import spent
from benchmarks.reproduction.tables import TABLES
from secure_kg.foundation.errors import UserError
from secure_kg.runs.run_folder import RunFolder

_HOUR: Final = 3600.0
_TRAINED_ON: Final = 0.8  # of a graph that the seed divides


@dataclass(frozen=True, slots=True)
class Progress:
    """A cell: `finished`, `under way` or `to start`, and at which round it is."""

    cell: Cell
    state: str
    round: int = 0
    seconds: float = 0.0

    @property
    def per_round(self) -> float | None:
        """Seconds of a round, if there was one."""
        return self.seconds / self.round if self.round else None


@dataclass(frozen=True, slots=True)
class Outlook:
    """An entry of the queue."""

    entry: Entry
    cells: tuple[Progress, ...]
    hours_left: float | None
    """None where nothing of the kind was measured."""
    by: str
    """What the hours are estimated by."""

    def count(self, state: str) -> int:
        return sum(one.state == state for one in self.cells)


def outlook_of(entry: Entry, keyed: dict[str, Row], keys: dict[Cell, str], measured: Sequence[Row] = ()) -> Outlook:
    """`keyed`: rows by their keys; `keys`: those of the entry's cells; `measured`: what else may tell seconds."""
    cells = tuple(_progress(job, keyed.get(keys[job.cell])) for job in entry.jobs)
    rows = [*keyed.values(), *measured]
    seconds = [_seconds_left(entry, one, cells, rows) for one in cells if one.state != "finished"]
    known = [found for found, _ in seconds if found is not None]
    rough = any(not alike for _, alike in seconds)
    if len(known) < len(seconds):
        return Outlook(entry, cells, None, "nothing measured")
    by = "cells like it" if not rough else "triples and dimension, at most"
    return Outlook(entry, cells, sum(known) / _HOUR, by if seconds else "")


def _progress(job: Job, row: Row | None) -> Progress:
    if row is not None:
        return Progress(job.cell, "finished", row.rounds or 0, _alone(row))
    if not (job.folder / "config.toml").exists():
        return Progress(job.cell, "to start")
    try:
        reached = max((line.round for line in RunFolder(job.folder).all_metrics()), default=0)
    except UserError:  # somebody has put something else there; whoever goes on with the run is told
        reached = 0
    return Progress(job.cell, "under way", reached, spent(job).seconds or 0.0)


def _seconds_left(
    entry: Entry, one: Progress, cells: Sequence[Progress], rows: Sequence[Row]
) -> tuple[float | None, bool]:
    """Seconds, and whether they are of cells with the same settings.

    A cell may stop early at any evaluation: what is left is what finished cells of its kind have taken, less what was
    done; without any of those, all rounds there may be.
    """
    largest = int(entry.request.told(one.cell).get("rounds", 1))
    if one.cell.strategy == "fused":
        fused = [seconds for row in rows if row.strategy == "fused" and (seconds := _alone(row))]
        return (sum(fused) / len(fused), False) if fused else (0.0, False)
    same = [other for other in cells if _alike(other.cell, one.cell) and other.per_round]
    if same:
        each = sum(other.per_round or 0.0 for other in same) / len(same)
        ended = [other.round for other in same if other.state == "finished"]
        expected = sum(ended) / len(ended) if ended else largest
        return each * max(expected - one.round, 0), True
    request = entry.request
    work = _work(request.data_root / request.dataset(one.cell).where(one.cell.clients), request.told(one.cell))
    of_model = [row for row in rows if row.model == one.cell.model]
    rates = [rate for row in of_model or rows if (rate := _rate(row, request.data_root))]
    if work is None or not rates:
        return None, False
    return work * sum(rates) / len(rates) * max(largest - one.round, 0), False


def _alone(row: Row) -> float:
    """Seconds that the run would take about by itself on that machine: its clients keep all cores busy. By the clock
    where nobody knows its processor seconds."""
    cores = row.machine.get("cores")
    return row.cpu_seconds / cores if row.cpu_seconds and isinstance(cores, int) and cores else row.seconds or 0.0


def _alike(first: Cell, second: Cell) -> bool:
    """The same but for the seed."""
    kinds = [(cell.dataset, cell.clients, cell.model, cell.strategy) for cell in (first, second)]
    return kinds[0] == kinds[1]


def _rate(row: Row, data_root: Path) -> float | None:
    """Seconds of a round for each unit of work; rounds of a federation are as long as the sum of its clients' work."""
    dataset = TABLES[row.table].datasets[row.dataset]
    work, seconds = _work(data_root / dataset.where(row.clients), row.settings), _of_a_round(row)
    return None if work is None or not seconds else seconds / work


def _of_a_round(row: Row) -> float | None:
    """Seconds of a round on a machine that does nothing else, without set-up and tests where its curve tells."""
    if not row.rounds or not row.seconds:
        return None
    each, timed = row.seconds / row.rounds, [point for point in row.curve if point.seconds is not None]
    if len(timed) > 1 and timed[-1].round > timed[0].round:
        each = ((timed[-1].seconds or 0.0) - (timed[0].seconds or 0.0)) / (timed[-1].round - timed[0].round)
    return each * _alone(row) / row.seconds


def _work(data: Path, settings: dict[str, Any]) -> float | None:
    """Of a round, in triples times dimension; None where the data is not at hand."""
    triples = _train_triples(data)
    return None if triples is None else float(triples * settings.get("dim", 1) * settings.get("local_epochs", 1))


@functools.cache
def _train_triples(data: Path) -> int | None:
    """About so many triples of a data set are trained on."""
    if not data.exists():
        return None
    if data.is_file():
        with np.load(data, allow_pickle=False) as arrays:
            return sum(len(arrays[name]) for name in arrays.files if name.endswith("_train"))
    lines = 0
    for path in sorted(data.glob("t*.tsv.gz")) + sorted(data.glob("valid.tsv.gz")):
        with gzip.open(path, "rb") as file:
            lines += sum(1 for _ in file)
    return round(lines * _TRAINED_ON)
