"""The paths through private training that can be audited, by name."""

from collections.abc import Callable
from typing import Final

from benchmarks.canaries.audited import AuditedPath
from benchmarks.canaries.corrupt_view import counts, federated
from benchmarks.canaries.games import flames
from benchmarks.canaries.trainings import Plan, adafest, central, poisson

MADE: Final[dict[str, Callable[[Plan], AuditedPath]]] = {
    "central": central,
    "poisson": poisson,
    "federated": federated,
    "adafest": adafest,
    "flames": flames,
    "counts": counts,
}
