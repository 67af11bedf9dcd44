"""The result of a run, for `summary.json`.

The federation's figures come from the sums the server was given. Figures of single clients are private to them: they
are added only where their folders lie beside the server's, that is, when all parties run on one machine. So are the
federation's own where only clients can read sums; the server alone then has none to tell (null).
"""

import dataclasses
from typing import Any, Final

from secure_kg.evaluation.metric_names import METRICS
from secure_kg.evaluation.metrics import Metrics
from secure_kg.federation.plan.learners import LEARNERS
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.runs.outcome import ServerOutcome
from secure_kg.runs.peak_memory import peak_memory_mb
from secure_kg.runs.run_folder import RunFolder
from secure_kg.runs.split_record import blemishes, leaky_split
from secure_kg.runs.stopwatch import PHASES

# Summaries of earlier versions lack these and are comparable all the same.
_LATER_KEYS: Final = frozenset(
    {"leaky_split", "metrics", "split_blemishes", "transcript", "cpu_seconds", "cpu_seconds_server", "peak_memory_mb"}
    | {"corrupt_clients", "hits@5", "mean_rank"}
)


def summarise(config: RunConfig, outcome: ServerOutcome, folder: RunFolder) -> dict[str, Any]:
    """`seconds`, `cpu_seconds`: the mean over clients per phase, except `unmask`, which is the server's work."""
    results = folder.client_results()
    clients = [
        result | {"bytes_up": outcome.bytes_up[number], "bytes_down": outcome.bytes_down[number]}
        for result in results
        if (number := int(result["client"])) in outcome.bytes_up
    ]
    figures = _federation(outcome, folder)
    peaks = [float(client["peak_memory_mb"]) for client in clients if "peak_memory_mb" in client]
    return {
        # First: whoever reads on must have read it.
        "leaky_split": leaky_split(clients, len(outcome.bytes_up), allowed=config.allow_leaky_split),
        "metrics": _metrics_of(config).described(figures),
        **figures,
        "split_blemishes": blemishes(clients),
        "rounds": outcome.rounds,
        "best_round": outcome.best_round,
        "clients": clients,
        "number_of_clients": len(outcome.bytes_up),
        "shared_rows": outcome.union_size,
        "dropouts": outcome.dropouts,
        "abandoned_sums": outcome.abandoned_sums,
        "seconds": _phase_seconds([client["seconds"] for client in clients], outcome.seconds),
        "seconds_total": outcome.elapsed,
        "seconds_server": outcome.seconds,
        "cpu_seconds": _phase_seconds([client.get("cpu_seconds", {}) for client in clients], outcome.cpu_seconds),
        "cpu_seconds_server": outcome.cpu_seconds,
        "peak_memory_mb": {
            "server": peak_memory_mb(),
            "client_mean": sum(peaks) / len(peaks) if peaks else None,
            "client_max": max(peaks, default=None),
        },
        "setup": outcome.setup,
        "bytes_up": sum(outcome.bytes_up.values()),
        "bytes_down": sum(outcome.bytes_down.values()),
        "bytes_up_per_client": {str(number): size for number, size in outcome.bytes_up.items()},
        "bytes_down_per_client": {str(number): size for number, size in outcome.bytes_down.items()},
        "max_fixed_point_error": max((result["max_fixed_point_error"] for result in clients), default=0.0),
        "clipped_values": sum(result["clipped_values"] for result in clients),
        "transcript": outcome.transcript,
        "corrupt_clients": config.corrupt_clients,
        "config": {name: value for name, value in dataclasses.asdict(config).items() if value is not None}
        | {"min_holders": config.least_holders},
    }


def _metrics_of(config: RunConfig) -> type[Metrics]:
    return LEARNERS[STRATEGIES[config.strategy].learner].metrics_of(config)


def _federation(outcome: ServerOutcome, folder: RunFolder) -> dict[str, Any]:
    """The results of all clients together."""
    if outcome.test is not None:
        return {
            **outcome.test.figures(),
            "test_triples": outcome.test.examples,
            "test_clients": outcome.test_clients,
            "valid_mrr": outcome.valid_mrr,
            "rows_kept_local": outcome.rows_kept_local,
        }
    read = folder.read_by_clients() if outcome.test_clients else None  # no test sum: theirs are of an earlier session
    if read is None:
        read = dict.fromkeys((*METRICS, "both_sides", "test_triples", "valid_mrr"))
        return {**read, "test_clients": outcome.test_clients, "rows_kept_local": None}
    averaged, _ = int(read.pop("rows_averaged")), read.pop("evaluations")
    return {**read, "rows_kept_local": outcome.union_size - averaged}


def clients_tested(summary: dict[str, Any]) -> str:
    """Of how many clients the results are: figures over different clients are not comparable."""
    tested, all_clients = summary["test_clients"], summary["number_of_clients"]
    return str(all_clients) if tested == all_clients else f"{tested} of {all_clients}"


def comparable(summary: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two summaries are about the same data, seed, model and number of clients."""
    if not summary.keys() - _LATER_KEYS <= other.keys() or not isinstance(other["config"], dict):
        return False  # not a summary
    if bool(summary.get("leaky_split")) != bool(other.get("leaky_split", summary.get("leaky_split"))):
        return False  # the folders have other triples by now
    mine, theirs = summary["config"], other["config"]
    keys = ("dataset", "by", "client_data", "seed", "rounds", "training")
    same_count = summary["number_of_clients"] == other["number_of_clients"]
    return same_count and all(mine.get(key) == theirs.get(key) for key in keys)


def _phase_seconds(clients: list[dict[str, float]], server: dict[str, float]) -> dict[str, float]:
    if not clients:
        return server
    # A client whose last result was written by an earlier version lacks what was not measured then.
    mean = {phase: sum(client.get(phase, 0.0) for client in clients) / len(clients) for phase in PHASES}
    return mean | {"unmask": server["unmask"]}
