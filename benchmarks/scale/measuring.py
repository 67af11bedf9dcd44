"""Points at which costs are measured: real parties and messages in one process, seconds of the processor."""

import resource
import secrets
import statistics
import tracemalloc
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import numpy as np

from benchmarks.psu import names_of
from benchmarks.sums_alone import sums_alone
from protocols.alignment.psu.simulation import simulate_union
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.primitives.group import GroupVector, Ring
from protocols.sums.secagg.params import ThreatModel, complete_parameters, sparse_parameters
from protocols.sums.secagg.server import Step
from protocols.sums.secagg.simulation import Scenario, SimulationResult, simulate
from protocols.sums.terms import VectorLayout
from secure_kg.federation.plan.settings import RunConfig

Kind = Literal["sum", "union", "secret round"]
KINDS: Final[tuple[Kind, ...]] = ("sum", "union", "secret round")
MODEL: Final = ThreatModel(0.2, 0.25, "semi-honest")
HOLDERS: Final = 2
"""`--min-holders` of the secret rounds."""


@dataclass(frozen=True, slots=True)
class Size:
    """One point. A sum has `rows` times `dim` entries, a union `rows` names."""

    kind: Kind
    clients: int
    rows: int
    dim: int = 1
    dropped: int = 0
    sparse: bool = False

    @property
    def entries(self) -> int:
        return self.rows * self.dim


def _sizes(kind: Kind, clients: tuple[int, ...], rows: tuple[int, ...], dims: tuple[int, ...] = (1,)) -> list[Size]:
    return [Size(kind, number, row, dim) for number in clients for row in rows for dim in dims]


FITTED: Final = (
    *_sizes("sum", (2, 4, 8, 16), (64, 512, 2048), (64,)),
    *(Size("sum", number, 2048, 64, dropped=number // 4) for number in (4, 8, 16)),
    *_sizes("union", (2, 4, 8, 16), (512, 2048, 8192)),
    *_sizes("secret round", (3, 4, 8, 16), (200, 800), (16, 64)),
)
"""The constants of the model come from these."""
HELD_OUT: Final = (
    Size("sum", 12, 1024, 64, dropped=2),
    Size("sum", 32, 256, 64),
    Size("sum", 48, 512, 64, dropped=6),
    Size("sum", 100, 256, 64, dropped=10, sparse=True),
    Size("sum", 300, 128, 64, dropped=30, sparse=True),
    Size("union", 12, 4096),
    Size("union", 24, 2048),
    Size("secret round", 12, 1000, 32),
    Size("secret round", 20, 400, 64),
)
"""The model is checked on these, of which it knows nothing."""


@dataclass(frozen=True, slots=True)
class Point:
    """What a size has cost; figures of a client are the mean."""

    size: Size
    neighbours: int
    client_seconds: float
    server_seconds: float
    client_bytes_up: int
    """Of a sum in a complete graph, and of a secret round, that of the first client."""
    process_megabytes: float
    """The most that arrays and objects of all parties together have taken; 0 where they are threads."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def measure(size: Size, repeat: int) -> Point:
    """The median of so many repetitions."""
    points = [_MEASURED[size.kind](size) for _ in range(repeat)]
    client, server = (
        statistics.median(getattr(point, name) for point in points) for name in ("client_seconds", "server_seconds")
    )
    memory = _megabytes(size)
    return Point(size, points[0].neighbours, client, server, points[0].client_bytes_up, memory)


def _sum(size: Size) -> Point:
    result = _simulated(size)
    unmasking = sum(step.server_seconds for step in result.steps)
    up = result.client_bytes_up
    return Point(size, result.parameters.degree, result.client_seconds, unmasking, round(up), 0.0)


def _simulated(size: Size) -> SimulationResult:
    make = sparse_parameters if size.sparse else complete_parameters
    layout = VectorLayout(Ring(32), size.entries)
    last = [PartyId(number) for number in range(size.clients - size.dropped + 1, size.clients + 1)]
    scenario = Scenario(size.clients, layout, MODEL, {Step.MASKED_INPUT: last}, make(size.clients, MODEL))
    return simulate(scenario, lambda party: _drawn(size.entries))


def _drawn(entries: int) -> GroupVector:
    vector: GroupVector = np.frombuffer(secrets.token_bytes(4 * entries), dtype=np.uint32).copy()
    return vector


def _union(size: Size) -> Point:
    names = names_of(size.clients, size.rows, 0.5)
    cost = simulate_union(names, size.rows, model=MODEL)
    up = round(cost.client_bytes_up)
    return Point(size, size.clients - 1, cost.client_seconds, cost.server_seconds, up, 0.0)


def _secret_round(size: Size) -> Point:
    config = RunConfig(strategy="fede", aggregation="secret", clients=size.clients, min_holders=HOLDERS)
    rounds = 1
    done = sums_alone(config, size.clients, size.rows, size.dim, rounds)
    sent = done.sent[1].total("sent", peer=SERVER, round_id=RoundId(rounds + 1)).bytes
    client = statistics.fmean(done.client_cpu_seconds.values()) / rounds
    return Point(size, size.clients - 1, client, done.server_cpu_seconds / rounds, sent, 0.0)


_MEASURED: Final = {"sum": _sum, "union": _union, "secret round": _secret_round}


def _megabytes(size: Size) -> float:
    """Apart from the seconds, since watching memory is slow."""
    if size.kind != "sum":
        return 0.0
    tracemalloc.start()
    try:
        _simulated(size)
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def process_peak() -> float:
    """Megabytes of this process so far, with everything it has loaded."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
