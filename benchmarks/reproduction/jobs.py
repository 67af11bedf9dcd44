"""Runs as processes: started, gone on with, interrupted, a few at a time.

All of it in one thread that looks at its processes now and then. Each run writes to its own folder and its own log;
what it cost is kept beside the folder over all its sessions, so that a table made over several days can tell it.
"""

import contextlib
import math
import os
import shlex
import shutil
import signal
import subprocess
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import msgspec

from benchmarks.reproduction.cells import Cell, Job
from benchmarks.reproduction.provenance import commit
from launch.hosts.supervisor import die_with_parent
from secure_kg.federation.plan.typed_fields import flag
from secure_kg.foundation.errors import UserError
from secure_kg.runs.records.record import Record
from secure_kg.runs.run_folder import read_record, write_json

_LOOK_EVERY: Final = 0.1
_SECONDS_TO_END: Final = 10.0
_NOTE_EVERY: Final = 20.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How far a run has come: finished, failed, interrupted or missing."""

    state: str
    error: str | None = None
    seconds_now: float = 0.0
    """Of this call; 0 for a run that was there already."""


def is_finished(job: Job) -> bool:
    """Whether the run is there, under these settings. Under other ones it is a mistake, to be told before any work."""
    if _has_begun(job):
        _check_settings(job)
    return job.result.exists()


def command_for(job: Job) -> tuple[str, ...]:
    """Start, or go on where a session has begun."""
    return job.resume if _has_begun(job) else job.start


class Session(Record, kw_only=True, frozen=True):
    """One call of a run's command."""

    kind: ClassVar[str] = "record of a session"

    command: str = ""
    seconds: float = 0.0
    cpu_seconds: float | None = None
    """Of all its processes; None where the session was ended so hard that nobody could ask."""
    peak_memory_mb: float = 0.0
    exit_code: int | None = None
    commit: str | None = None


class Spent(Record, kw_only=True, frozen=True):
    """What was spent on a run in all sessions."""

    kind: ClassVar[str] = "record of what was spent on a run"

    command: str | None = None
    seconds: float | None = None
    cpu_seconds: float | None = None
    """Of the sessions that tell theirs."""
    peak_memory_mb: float | None = None
    sessions: list[Session] = msgspec.field(default_factory=list)


def spent(job: Job) -> Spent:
    """Without any values if nothing was recorded."""
    return read_record(job.record, Spent) if job.record.exists() else Spent()


def run_all(
    jobs: Sequence[Job],
    *,
    at_once: int,
    until: float | None,
    on_start: Callable[[Job, bool], None],
    on_end: Callable[[Job, Outcome], None],
) -> dict[Cell, Outcome]:
    """Run what is not finished, in order, `at_once` at a time; a failure concerns the runs that need it only.

    `until` is a time of the monotonic clock after which nothing is started and what is under way is interrupted: it
    goes on from its last checkpoint when called again. An exception, Ctrl-C say, interrupts all runs likewise.
    """
    outcomes = {job.cell: Outcome("finished") for job in jobs if is_finished(job)}
    waiting = [job for job in jobs if job.cell not in outcomes]
    running: list[_Running] = []
    try:
        while (waiting or running) and (until is None or time.monotonic() < until):
            for job in [job for job in waiting if _hopeless(job, outcomes)]:
                waiting.remove(job)
                outcomes[job.cell] = Outcome("failed", _hopeless(job, outcomes))
                on_end(job, outcomes[job.cell])
            while len(running) < at_once and (ready := _next(waiting, outcomes)) is not None:
                waiting.remove(ready)
                on_start(ready, _has_begun(ready))
                running.append(_Running(ready))
            time.sleep(_LOOK_EVERY)
            for run in running:
                run.note()
            for run in [run for run in running if run.ended()]:
                running.remove(run)
                outcomes[run.job.cell] = run.close(interrupted=False)
                on_end(run.job, outcomes[run.job.cell])
    finally:
        for run in running:
            run.interrupt()
        for run in running:
            run.wait()
            outcomes[run.job.cell] = run.close(interrupted=True)
    for run in running:
        on_end(run.job, outcomes[run.job.cell])
    return outcomes | {job.cell: Outcome("missing") for job in waiting}


class _Running:
    """A run under way."""

    def __init__(self, job: Job) -> None:
        self.job, self.command, self.began = job, command_for(job), time.monotonic()
        self._code: int | None = None
        self._peak_mb = 0.0
        self._cpu_seconds: float | None = None
        self._before, self._noted = spent(job), -math.inf
        self._commit = commit()  # as it was at the start: a run may take days
        if job.needs and job.folder.exists():
            shutil.rmtree(job.folder)  # fusion takes minutes and has no middle to go on from: it starts anew
        try:
            job.folder.parent.mkdir(parents=True, exist_ok=True)
            self._log = job.log.open("ab")
        except OSError as problem:
            raise UserError(f"--runs {job.folder.parent}: {problem.strerror}") from None
        self._log_starts = self._log.tell()
        # A session of its own: Ctrl-C then reaches this process only, which ends its runs in good order.
        self._process = subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )

    def ended(self) -> bool:
        """Asked by `wait4` rather than `poll`, which also tells the memory of the largest process of the run."""
        if self._code is None:
            done, status, usage = os.wait4(self._process.pid, os.WNOHANG)
            if done:
                self._code = self._process.returncode = os.waitstatus_to_exitcode(status)
                self._peak_mb = usage.ru_maxrss / 1024
                self._cpu_seconds = usage.ru_utime + usage.ru_stime
        return self._code is not None

    def interrupt(self) -> None:
        if not self.ended():
            self._process.terminate()

    def wait(self) -> None:
        """Until the run has ended after an interruption, by force if it must be."""
        limit = time.monotonic() + _SECONDS_TO_END
        while not self.ended():
            if time.monotonic() > limit:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            time.sleep(_LOOK_EVERY)

    def note(self) -> None:
        """Write down at once and now and then what the session has cost: this process may be killed at any moment."""
        if time.monotonic() - self._noted >= _NOTE_EVERY:
            self._noted = time.monotonic()
            self._write_down(self._noted - self.began)

    def close(self, *, interrupted: bool) -> Outcome:
        """Write down what the session cost, and tell how it ended."""
        self._log.close()
        seconds = time.monotonic() - self.began
        self._write_down(seconds)
        if self._code == 0 and self.job.result.exists():
            return Outcome("finished", None, seconds)
        if interrupted:
            return Outcome("interrupted", None, seconds)
        return Outcome("failed", self._last_error(), seconds)

    def _write_down(self, seconds: float) -> None:
        session = Session(
            command=shlex.join(self.command),
            seconds=seconds,
            cpu_seconds=self._cpu_seconds,
            peak_memory_mb=self._peak_mb,
            exit_code=self._code,
            commit=self._commit,
        )
        before, cpu = self._before, self._cpu_seconds
        so_far = Spent(
            command=before.command if before.command is not None else shlex.join(self.job.start),
            seconds=(before.seconds or 0.0) + seconds,
            cpu_seconds=before.cpu_seconds if cpu is None else (before.cpu_seconds or 0.0) + cpu,
            peak_memory_mb=max(before.peak_memory_mb or 0.0, self._peak_mb),
            sessions=[*before.sessions, session],
        )
        write_json(self.job.record, so_far.to_json())

    def _last_error(self) -> str:
        with self.job.log.open("rb") as log:
            log.seek(self._log_starts)
            lines = log.read().decode(errors="replace").strip().splitlines()
        errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
        said = errors or lines or ["it said nothing"]
        return said[-1] if self._code == 2 else f"{said[-1]} (exit code {self._code})"


def _next(waiting: Sequence[Job], outcomes: dict[Cell, Outcome]) -> Job | None:
    """The first run whose inputs are there."""
    return next((job for job in waiting if all(need in outcomes for need in job.needs)), None)


def _hopeless(job: Job, outcomes: dict[Cell, Outcome]) -> str | None:
    for need in job.needs:
        if need in outcomes and outcomes[need].state == "failed":
            return f"needs {need}, which failed"
    return None


def _has_begun(job: Job) -> bool:
    return (job.folder / "config.toml").exists()


def _check_settings(job: Job) -> None:
    """Strict on every setting that was given and is on record; what a launcher does not record cannot be compared."""
    path = job.folder / "config.toml"
    try:
        saved = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError):
        raise UserError(f"{path}: cannot be read as TOML") from None
    saved |= saved.pop("training", {}) | saved.pop("network", {})
    for name, value in job.settings.items():
        if name in saved and saved[name] != value:
            what = f"{flag(name)} is {saved[name]} there and {value} here"
            raise UserError(f"{job.folder}: {what}; choose another --runs, or remove that run")
