"""The work of a campaign: cells are run in order, and what is finished gets its row at once."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from benchmarks.campaigns.queue import Entry
from benchmarks.campaigns.rendering import keys_of
from benchmarks.campaigns.row_file import RowFile, appending, read_rows
from benchmarks.campaigns.rows import row_of
from benchmarks.reproduction.cells import Cell, Job
from benchmarks.reproduction.jobs import Outcome, is_finished, run_all
from benchmarks.reproduction.provenance import RESULTS_VERSION
from secure_kg.foundation.words import seconds_text

Tell: TypeAlias = Callable[[str], None]


def run_entries(
    entries: Sequence[Entry], rows: Path, runs: Path, *, at_once: int, until: float | None, tell: Tell | None
) -> bool:
    """Entry by entry until a time of the monotonic clock, under the locks of the file and the folder.

    False if a run failed, or could not be begun because what it needs is not there. `tell`: None for silence.
    """
    said: Tell = tell or (lambda _: None)
    sound = True
    if until is not None and time.monotonic() >= until:
        return sound
    with appending(rows, runs) as file:
        known, problems = read_rows(rows)
        for problem in problems:
            said(problem)
        keys = {row.key for row in known}
        for entry in entries:
            if until is None or time.monotonic() < until:
                sound &= _Work(entry, file, keys, said).run(at_once, until)
    return sound


class _Work:
    """The work on one entry."""

    def __init__(self, entry: Entry, file: RowFile, known: set[str], tell: Tell) -> None:
        self._entry, self._file, self._known, self._tell = entry, file, known, tell
        self._keys = keys_of(entry, RESULTS_VERSION)

    def run(self, at_once: int, until: float | None) -> bool:
        if (absent := _absent_data(self._entry)) is not None:
            self._tell(f"{self._entry.name}: left out: no {absent} in the folder of --data-root")
            return False
        jobs = self._entry.jobs
        for job in jobs:  # a run may have ended right before its row was written
            if not self._has_row(job.cell) and is_finished(job):
                self._keep(job)
        left = [job for job in jobs if not self._has_row(job.cell)]
        blocked = [job for job in left if self._inputs_are_gone(job, jobs)]
        for job in blocked:
            self._tell(f"{job.cell}: its inputs have rows, but their run folders are not here; left out")
        ready = [job for job in left if job not in blocked]
        if not ready:
            return not blocked
        # What a run needs must be among those that are asked for, also if it is finished and has its row.
        needed = {need for job in ready for need in job.needs}
        chosen = [job for job in jobs if job in ready or job.cell in needed]
        self._tell(f"{self._entry.name}: {self._entry.asks}")
        found = run_all(chosen, at_once=at_once, until=until, on_start=self._start, on_end=self._end)
        return not blocked and not any(outcome.state == "failed" for outcome in found.values())

    def _has_row(self, cell: Cell) -> bool:
        return self._keys[cell] in self._known

    def _inputs_are_gone(self, job: Job, jobs: Sequence[Job]) -> bool:
        """Of a fusion: the two runs are known by their rows and no longer there to be joined."""
        needed = [other for other in jobs if other.cell in job.needs]
        return any(self._has_row(other.cell) and not is_finished(other) for other in needed)

    def _start(self, job: Job, again: bool) -> None:
        self._tell(f"{job.cell}: {'goes on' if again else 'starts'}")

    def _end(self, job: Job, outcome: Outcome) -> None:
        error = f": {outcome.error}" if outcome.error else ""
        self._tell(f"{job.cell}: {outcome.state} after {seconds_text(outcome.seconds_now)}{error}")
        if outcome.state == "finished" and not self._has_row(job.cell):
            self._keep(job)

    def _keep(self, job: Job) -> None:
        row = row_of(self._entry, job)
        self._file.append(row)
        self._known.add(row.key)
        mrr = row.all.tail.get("mrr")
        self._tell(f"{job.cell}: row written" + ("" if mrr is None else f", MRR {mrr:.4f}"))


def _absent_data(entry: Entry) -> Path | None:
    """What the entry needs and nobody has put there: other entries may go on without it."""
    request = entry.request
    needed = {Path(request.dataset(cell).where(cell.clients)) for cell in request.cells()}
    return next((path for path in sorted(needed) if not (request.data_root / path).exists()), None)
