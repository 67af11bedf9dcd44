"""Sums over different sets of clients can be subtracted from each other: which differences leave a few clients alone?

The rows of the participation matrix are sums, its columns clients, and an entry is 1 if the client's vector is in the
sum. What the server can isolate are the vectors in its row space with few clients in them.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from protocols.registry import AGGREGATIONS
from secure_kg.attacks.differencing import Participation, isolating_differences
from secure_kg.audit.checks.evaluations import METRICS, UntrainedSums
from secure_kg.audit.view.evidence import Check
from secure_kg.audit.view.findings import Evidence, Finding
from secure_kg.audit.view.opening import OpenedSum
from secure_kg.audit.view.read import Observation
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.words import counted, named_clients


class Differences(Check):
    id = "differences-of-sums"
    question = "Can sums over different clients be subtracted until few clients are left?"

    def __init__(self, config: RunConfig, clients: int) -> None:
        super().__init__(config, clients)
        self._sums: dict[str, list[tuple[int, frozenset[int]]]] = {}
        self._thresholds: dict[str, int] = {}
        self._untrained = UntrainedSums()
        self._asked_again = False

    def observe(self, observation: Observation) -> None:
        self._untrained.observe(observation)

    def opened(self, total: OpenedSum) -> None:
        self._asked_again |= bool(self._untrained.opened(total))
        readable = total.layout is not None and total.vector is not None and total.threshold > 0
        if readable:
            # Results hardly change between rounds, and numbers of triples not at all: their differences are exact.
            family = "results" if total.purpose in METRICS else total.purpose
            self._sums.setdefault(family, []).append((total.round, total.contributors))
            self._thresholds[family] = max(total.threshold, self._thresholds.get(family, 0))

    def rank(self, purpose: str) -> int:
        return int(np.linalg.matrix_rank(self._matrix(purpose))) if self._sums.get(purpose) else 0

    def _matrix(self, purpose: str) -> Participation:
        return participation_of([members for _, members in self._sums[purpose]], self.clients)

    def findings(self) -> list[Finding]:
        found = []
        for purpose, sums in sorted(self._sums.items()):
            evidence, threshold = Evidence(), self._thresholds[purpose]
            for isolation in isolating_differences(self._matrix(purpose), threshold):
                terms = [_term(factor, sums[index][0]) for index, factor in enumerate(isolation.coefficients) if factor]
                left = named_clients([column + 1 for column in isolation.clients])
                evidence.add(f"{' '.join(terms).removeprefix('+ ')}: {left}")
            if evidence:
                found.append(self._finding(purpose, evidence, threshold))
        return found

    def _finding(self, purpose: str, evidence: Evidence, threshold: int) -> Finding:
        steady = purpose == "results"
        why = "Clients dropped out or were drawn in turns, so the server has sums over different sets of them. "
        if steady and self._asked_again:
            why = "The server had the same results added up again over other clients, and no dropout made it do so. "
        return Finding(
            f"differences-isolate-{purpose}",
            "medium",
            f"Differences of sums of {purpose} isolate fewer than {threshold} clients",
            evidence.told(),
            why
            + (
                "What hardly changes from one sum to the next, such as a client's number of triples, follows exactly."
                if steady
                else "Rows change between rounds, so a difference shows a client's rows up to what training changed."
            )
            + f" With all clients in every round{_or_sealed()}, there is nothing to subtract.",
        )

    @property
    def seen(self) -> int:
        return sum(map(len, self._sums.values()))

    def looked_at(self) -> str:
        if not self._sums:
            return "no sums that the server could read"
        told = [
            f"{counted(len(sums), 'sum')} of {purpose} (rank {self.rank(purpose)})"
            for purpose, sums in self._sums.items()
        ]
        return ", ".join(told) + f" over {counted(self.clients, 'client')}"


def participation_of(sums: Sequence[frozenset[int]], clients: int) -> Participation:
    """[sums, clients]: who is in which."""
    return np.array([[party in members for party in range(1, clients + 1)] for members in sums], dtype=np.bool_)


def _or_sealed() -> str:
    """The choices under which the server has no sums to subtract."""
    sealed = " or ".join(name for name, one in AGGREGATIONS.items() if one.sealed)
    return f", or with --aggregation {sealed}" if sealed else ""


def _term(factor: Fraction, number: int) -> str:
    times = "" if abs(factor) == 1 else f"{abs(factor)} "
    return f"{'+' if factor > 0 else '-'} {times}round {number}"
