"""Results of a finished run, in one form for training runs and fusions."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from benchmarks.reproduction.cells import Cell, Job
from benchmarks.reproduction.jobs import Outcome, spent
from benchmarks.reproduction.tables import ALL
from secure_kg.runs.run_folder import read_json

_METRICS = ("mrr", "hits@1", "hits@3", "hits@10")
_ABOUT_THE_RUN = (
    "seconds_total", "rounds", "best_round", "valid_mrr", "both_sides", "test_triples", "test_clients",
    "number_of_clients", "dropouts", "bytes_up", "bytes_down", "leaky_split", "split_blemishes",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Result:
    """A run of the plan, whether it is there or not."""

    cell: Cell
    folder: str
    outcome: Outcome
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    """By part (`all`, `client 1`, ...), tail side."""
    about: dict[str, Any] = field(default_factory=dict)
    clients: list[dict[str, Any]] = field(default_factory=list)
    spent: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
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
            "command": self.spent.get("command"),
            "seconds_spent": self.spent.get("seconds"),
            "sessions": len(self.spent.get("sessions", [])),
            "peak_memory_mb": self.spent.get("peak_memory_mb"),
            **self.about,
            **self.metrics.get(ALL, {}),
            "per_client": self.clients,
        }


def read_result(job: Job, outcome: Outcome) -> Result:
    """From the run's own files; a run that is not finished has no figures."""
    if outcome.state != "finished":
        return Result(job.cell, job.folder.name, outcome, spent=spent(job))
    summary = read_json(job.result)
    clients = [
        {"client": number, "test_triples": values.get("test_triples"), **_metrics(values)}
        for number, values in _clients(summary)
    ]
    metrics = {f"client {client['client']}": _metrics(client) for client in clients} | {ALL: _metrics(summary)}
    about = {name: summary[name] for name in _ABOUT_THE_RUN if name in summary}
    if job.needs:
        about |= {"fusion_settings": summary.get("settings"), "both_sides": _figures(summary).get("both_sides")}
    return Result(job.cell, job.folder.name, outcome, metrics, about, clients, spent(job))


def _metrics(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name in _METRICS if isinstance(value := _figures(values).get(name), float | int)}


def _figures(values: dict[str, Any]) -> dict[str, Any]:
    """`values` themselves, or those of the fused model in them: a fusion has `all`, and in it `fused` beside others."""
    for inner in (ALL, "fused"):
        if isinstance(values.get(inner), dict):
            return _figures(values[inner])
    return values


def _clients(summary: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    for values in summary.get("clients", []):
        yield int(values["client"]), values
