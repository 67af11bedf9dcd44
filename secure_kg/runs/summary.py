"""The result of a run, for `summary.json`.

The federation's figures come from the sums the server was given. Figures of single clients are private to them: they
are added only where their folders lie beside the server's, that is, when all parties run on one machine. So are the
federation's own where only clients can read sums; the server alone then has none to tell (null). Of a private run a
summary may be shown to anybody, so a client's own results, its numbers of triples and clipped values, its times and its
memory stay in its own folder. What encoding has cost is null where no client's folder is at hand.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from secure_kg.evaluation.metrics import Metrics
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import learner_of
from secure_kg.runs.outcome import ServerOutcome
from secure_kg.runs.peak_memory import peak_memory_mb
from secure_kg.runs.records.client_result import ClientLine, ClientResult
from secure_kg.runs.records.record import Figures
from secure_kg.runs.records.summary import PeakMemory, Summary
from secure_kg.runs.run_folder import RunFolder
from secure_kg.runs.split_record import blemishes, leaky_split
from secure_kg.runs.stopwatch import PHASES

_LATER_FIGURES: Final = frozenset({"hits@5", "mean_rank"})
"""Summaries of earlier versions lack these and are comparable all the same."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Federation:
    """The results of all clients together; None where nobody here can read them."""

    figures: Figures
    examples: int | None
    test_clients: int
    valid_mrr: float | None
    rows_kept_local: int | None


def summarise(config: RunConfig, outcome: ServerOutcome, folder: RunFolder) -> Summary:
    """The summary of a run that has come to its end, from what its server knows and what lies in its folder."""
    clients = [
        result.with_traffic(outcome.bytes_up[result.client], outcome.bytes_down[result.client])
        for result in _told_by_clients(config, folder)
        if result.client in outcome.bytes_up
    ]
    found, over_queries = _federation(config, outcome, folder), _metrics_of(config).over_queries
    private = config.privacy is not None
    return Summary(
        leaky_split=leaky_split(clients, len(outcome.bytes_up), allowed=config.allow_leaky_split),
        metrics=_metrics_of(config).described(found.figures),
        figures=found.figures,
        test_triples=None if over_queries else found.examples,
        test_queries=found.examples if over_queries else None,
        test_clients=found.test_clients,
        valid_mrr=found.valid_mrr,
        rows_kept_local=found.rows_kept_local,
        split_blemishes=blemishes(clients),
        rounds=outcome.rounds,
        best_round=outcome.best_round,
        clients=clients,
        number_of_clients=len(outcome.bytes_up),
        shared_rows=outcome.union_size,
        dropouts=outcome.dropouts,
        abandoned_sums=outcome.abandoned_sums,
        seconds=_phase_seconds([client.seconds for client in clients], outcome.seconds),
        seconds_total=outcome.elapsed,
        seconds_server=outcome.seconds,
        cpu_seconds=_phase_seconds([client.cpu_seconds or {} for client in clients], outcome.cpu_seconds),
        cpu_seconds_server=outcome.cpu_seconds,
        peak_memory_mb=_memory(clients),
        setup=outcome.setup,
        bytes_up=sum(outcome.bytes_up.values()),
        bytes_down=sum(outcome.bytes_down.values()),
        bytes_up_per_client={str(number): size for number, size in outcome.bytes_up.items()},
        bytes_down_per_client={str(number): size for number, size in outcome.bytes_down.items()},
        max_fixed_point_error=None if private else max((one.max_fixed_point_error for one in clients), default=None),
        clipped_values=None if private or not clients else sum(client.clipped_values for client in clients),
        transcript=outcome.transcript,
        corrupt_clients=config.corrupt_clients,
        privacy=_statement(config),
        config=_settings(config),
    )


def _told_by_clients(config: RunConfig, folder: RunFolder) -> list[ClientResult]:
    """Results of clients whose folders lie beside the server's; of a private run, what epsilon allows to be told."""
    found = folder.client_results()
    if config.privacy is None:
        return found
    return [result.outside_its_folder() for result in found]


def _settings(config: RunConfig) -> dict[str, Any]:
    shared = RunPlan(config, config.clients or 1).blocks
    blocks = [{"name": one.name, "aligned": one.aligned, "aggregation": one.aggregation} for one in shared]
    return config.told() | {"min_holders": config.least_holders, "blocks": blocks}


def _statement(config: RunConfig) -> dict[str, Any] | None:
    private = RunPlan(config, config.clients or 1).private
    single_read = not config.sum_protocol.hides_contributions
    return None if private is None else private.statement(single_read=single_read).to_json()


def _metrics_of(config: RunConfig) -> type[Metrics]:
    return learner_of(config).metrics_of(config)


def _memory(clients: Sequence[ClientLine]) -> PeakMemory:
    peaks = [client.peak_memory_mb for client in clients if client.peak_memory_mb is not None]
    return PeakMemory(
        server=peak_memory_mb(),
        client_mean=sum(peaks) / len(peaks) if peaks else None,
        client_max=max(peaks, default=None),
    )


def _federation(config: RunConfig, outcome: ServerOutcome, folder: RunFolder) -> _Federation:
    if (test := outcome.test) is not None:
        kept = outcome.rows_kept_local
        return _Federation(test.figures(), test.examples, outcome.test_clients, outcome.valid_mrr, kept)
    read = folder.read_by_clients() if outcome.test_clients else None  # no test sum: theirs are of an earlier session
    if read is None:
        return _Federation(dict.fromkeys(_metrics_of(config).figure_names), None, outcome.test_clients, None, None)
    kept = outcome.union_size - read.rows_averaged
    return _Federation(read.figures, read.number_of_examples, read.test_clients, read.valid_mrr, kept)


def comparable(summary: Summary, other: Summary) -> bool:
    """Whether two summaries are about the same data, seed, model and number of clients.

    A table of counts compares with private runs of the same budget, and all of them: neither model nor rounds mean
    anything to it.
    """
    if not summary.figures.keys() - _LATER_FIGURES <= other.figures.keys():
        return False  # of another learner
    known = msgspec.UNSET not in (summary.leaky_split, other.leaky_split)
    if known and bool(summary.leaks) != bool(other.leaks):
        return False  # the folders have other triples by now
    mine, theirs = summary.config, other.config
    keys = ["dataset", "by", "client_data", "seed", "queries", "network"]
    if any(one.settings.model == "counts" for one in (summary, other)):
        if not _same_budget(summary, other):
            return False
    else:
        keys += ["rounds", "training"]
    same_count = summary.number_of_clients == other.number_of_clients
    return same_count and all(mine.get(key) == theirs.get(key) for key in keys)


def _same_budget(summary: Summary, other: Summary) -> bool:
    one, two = summary.settings.privacy, other.settings.privacy
    return one is not None and two is not None and (one.epsilon, one.delta) == (two.epsilon, two.delta)


def _phase_seconds(clients: list[dict[str, float]], server: dict[str, float]) -> dict[str, float]:
    if not any(clients):
        return server
    # A client whose last result was written by an earlier version lacks what was not measured then.
    mean = {phase: sum(client.get(phase, 0.0) for client in clients) / len(clients) for phase in PHASES}
    return mean | {"unmask": server["unmask"]}
