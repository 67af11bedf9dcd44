"""Growth of the cost of one round's sums with clients, rows or dimension: `python -m benchmarks.overhead --sweep`.

Bytes up of a client are counted twice, in closed form (`benchmarks.byte_counts`) and as they travelled; seconds are of
the processor, for one client and for the server, without training and without waiting (`benchmarks.sums_alone`).
"""

import argparse
import dataclasses
import statistics
from typing import Any, Final

from benchmarks.byte_counts import Uploads
from benchmarks.overhead_figures import PLAIN
from benchmarks.sums_alone import SumsAlone, sums_alone
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.registry import AGGREGATIONS
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.console import say, table

SWEEPS: Final = ("clients", "rows", "dim")
_AGGREGATIONS: Final = (PLAIN, *(name for name in AGGREGATIONS if name != PLAIN))
_ROWS: Final = 14541


@dataclasses.dataclass(frozen=True, slots=True)
class Point:
    """The size of one round's sums; by default that of FB15k-237's entities."""

    clients: int = 5
    rows: int = _ROWS
    dim: int = 128


_POINTS: Final[dict[str, tuple[Point, ...]]] = {
    "clients": (Point(clients=5), Point(clients=10), Point(clients=20)),
    "rows": (Point(rows=1_000), Point(rows=4_000), Point(rows=16_000)),
    "dim": (Point(dim=32), Point(dim=128), Point(dim=512)),
}


def measure(options: argparse.Namespace, quiet: bool) -> dict[str, Any]:
    points = _POINTS[options.sweep]
    results = []
    for point in points:
        if not quiet:
            say(f"{point.clients} clients, {point.rows} rows, dimension {point.dim}")
        results.append(measure_point(point))
    return {"sweep": options.sweep, "points": results}


def measure_point(point: Point, repeat: int = 3) -> dict[str, Any]:
    figures = {name: _figures(name, point, repeat) for name in _AGGREGATIONS}
    for values in figures.values():
        values["bytes_ratio"] = values["client_bytes_up"] / figures[PLAIN]["client_bytes_up"]
    return dataclasses.asdict(point) | figures


def _figures(aggregation: str, point: Point, repeat: int) -> dict[str, Any]:
    config = RunConfig(strategy="fede", aggregation=aggregation, clients=point.clients)
    done = sums_alone(config, point.clients, point.rows, point.dim, repeat)
    counted = Uploads(aggregation, point.clients, 1, point.rows, point.dim).round()
    seconds = [spent / repeat for spent in done.client_cpu_seconds.values()]
    return {
        "client_bytes_up": sum(counted.values()),
        "client_bytes_up_measured": _sent(done),
        "steps": counted,
        "client_cpu_seconds": statistics.fmean(seconds),
        "client_cpu_seconds_max": max(seconds),
        "server_cpu_seconds": done.server_cpu_seconds / repeat,
    }


def _sent(done: SumsAlone) -> int:
    """By the first client in the last round."""
    return done.sent[1].total("sent", peer=PartyId(0), round_id=RoundId(done.rounds + 1)).bytes


def show(report: dict[str, Any]) -> None:
    rows: list[list[str | int]] = []
    for point in report["points"]:
        for name in _AGGREGATIONS:
            figures = point[name]
            rows.append(
                [
                    point[report["sweep"]],
                    name,
                    figures["client_bytes_up"],
                    f"{figures['bytes_ratio']:.5f}",
                    f"{figures['client_cpu_seconds']:.4f}",
                    f"{figures['server_cpu_seconds']:.4f}",
                ]
            )
    columns = (report["sweep"], "sums", "bytes up per client", "to plain", "client, cpu s", "server, cpu s")
    table("the sums of one round, without training", columns, rows)
