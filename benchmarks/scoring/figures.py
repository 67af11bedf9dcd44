"""Figures of a measurement: costs of all parties, per query, as medians over repetitions, and ratios between backends.

A ratio is taken within each repetition, between neighbours in time; reported is the median.
"""

import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.scoring.party import BatchCost
from benchmarks.scoring.workload import ASKER, Workload
from protocols.bundles import ScoreBackend
from protocols.foundation.identifiers import SERVER

Figures = dict[str, Any]


@dataclass(frozen=True)
class Repetition:
    """One batch of one backend, as all parties have measured it."""

    costs: Mapping[int, BatchCost]
    shared_process: bool

    @property
    def asker(self) -> BatchCost:
        return self.costs[ASKER]

    @property
    def server(self) -> BatchCost:
        return self.costs[SERVER]

    @property
    def clients(self) -> list[BatchCost]:
        return [cost for party, cost in self.costs.items() if party != SERVER]

    @property
    def scorers(self) -> list[BatchCost]:
        return [cost for cost in self.clients if cost.party != ASKER]

    @property
    def seconds(self) -> float:
        """Until the asker has its answers."""
        return self.asker.seconds

    @property
    def cpu_seconds(self) -> float:
        """Of all parties together, threads in the background included."""
        if self.shared_process:
            return self.asker.shared_process_seconds
        return sum(cost.process_seconds + cost.helper_seconds for cost in self.costs.values())

    @property
    def background_seconds(self) -> float:
        """The part of it that parties have left to other threads or processes, e.g. to compute ahead."""
        return max(0.0, self.cpu_seconds - sum(cost.cpu_seconds for cost in self.costs.values()))

    @property
    def rounds(self) -> int:
        """Times that a client has sent something and then waited for others: the most of any client."""
        return max(cost.sent_messages + cost.group_rounds for cost in self.clients)


def repetitions(costs: Collection[BatchCost], backend: str, shared_process: bool) -> list[Repetition]:
    """In order; the first is the one that is not counted."""
    numbers = sorted({cost.repetition for cost in costs if cost.backend == backend})
    return [
        Repetition(
            {cost.party: cost for cost in costs if (cost.backend, cost.repetition) == (backend, number)}, shared_process
        )
        for number in numbers
    ]


def backend_figures(all_of: Sequence[Repetition], bundle: ScoreBackend, work: Workload, carrier: str) -> Figures:
    """Of one backend. Everything but `rounds` and `first_batch` is per query."""
    first, counted = all_of[0], all_of[1:]

    def median(figure: Callable[[Repetition], float]) -> float:
        return statistics.median(figure(one) for one in counted) / work.queries

    return {
        "seconds_per_query": median(lambda one: one.seconds),
        "cpu_seconds_per_query": median(lambda one: one.cpu_seconds),
        "background_cpu_seconds_per_query": median(lambda one: one.background_seconds),
        "bytes_per_client": median(
            lambda one: statistics.mean(
                cost.sent_bytes + cost.received_bytes + cost.group_bytes for cost in one.clients
            )
        ),
        "rounds": statistics.median(one.rounds for one in counted),
        "max_abs_error": max(one.asker.max_abs_error or 0.0 for one in all_of),
        "same_ranking": all(one.asker.same_ranking is True for one in all_of),
        "asker_reads": bundle.asker_reads.value,
        "carrier": carrier,
        "min_holders": work.terms(bundle).least,
        "parties": {
            "asker": _party_figures([[one.asker] for one in counted], work.queries),
            "scorer": _party_figures([one.scorers for one in counted], work.queries),
            "server": _party_figures([[one.server] for one in counted], work.queries),
        },
        "first_batch": {"seconds": first.seconds, "cpu_seconds": first.cpu_seconds},
        "all_seconds": [one.seconds for one in counted],
        "all_cpu_seconds": [one.cpu_seconds for one in counted],
    }


def _party_figures(of_repetitions: Sequence[Sequence[BatchCost]], queries: int) -> Figures:
    """Per query, the mean over parties of one kind. Messages are per batch."""

    def median(name: str, divided_by: int) -> float:
        means = [statistics.mean(float(getattr(cost, name)) for cost in costs) for costs in of_repetitions]
        return statistics.median(means) / divided_by

    return {
        "cpu_seconds": median("cpu_seconds", queries),
        "sent_bytes": median("sent_bytes", queries),
        "received_bytes": median("received_bytes", queries),
        "group_bytes": median("group_bytes", queries),
        "sent_messages": median("sent_messages", 1),
        "received_messages": median("received_messages", 1),
    }


def ratios(backends: Mapping[str, Figures]) -> Figures:
    """`ratios[what][a][b]`: how many times as much a takes as b. Only of backends that took turns: with one carrier."""
    return {
        what: {
            name: {
                other: _median_ratio(figures[series], theirs[series])
                for other, theirs in backends.items()
                if other != name and theirs["carrier"] == figures["carrier"]
            }
            for name, figures in backends.items()
        }
        for what, series in (("seconds", "all_seconds"), ("cpu_seconds", "all_cpu_seconds"))
    }


def _median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    return statistics.median(one / other for one, other in zip(ours, theirs, strict=True))
