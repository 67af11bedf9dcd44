"""All runs of all cases of one path through the code, and what the tests find in them."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from benchmarks.canaries.cases import Case
from benchmarks.canaries.findings import auc, correlation, excess, power, runs_needed
from secure_kg.foundation.progress import tracked
from secure_kg.privacy.accounting.releases import Releases


@dataclass(frozen=True, slots=True)
class Observed:
    """One run, as the attacker and the auditor have seen it."""

    evidence: npt.NDArray[np.float64]
    """[m]: the attacker's, for each canary."""
    inside: npt.NDArray[np.bool_]
    """[m]: the coins."""
    residuals: Sequence[Tensor]
    """The noise of each step, for the auditor alone; of few steps, or none, if it says nothing."""


@dataclass(frozen=True, slots=True)
class AuditedPath:
    """A way through the code with everything that can go wrong on it."""

    name: str
    releases: Releases
    """What it says that it releases."""
    bound: float
    """The largest AUC that they allow."""
    cases: Sequence[Case]
    observe: Callable[[Any, int], Observed]
    """One run of a case, by its number. The same number again has the same settings, seed and triples."""
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Judge:
    """How often each case is run, and what counts as a finding."""

    runs: int
    threshold: float
    """A z above it is a finding."""

    def audited(self, path: AuditedPath) -> dict[str, Any]:
        """The report of a path."""
        rows = [self._judged(path, case) for case in path.cases]
        return {
            "path": path.name,
            "settings": path.settings,
            "releases": [
                {"noise": one.noise, "sampling": one.sampling, "times": times} for one, times in path.releases
            ],
            "runs": self.runs,
            "auc_bound": path.bound,
            "rows": rows,
            "passed": all(row["as_expected"] for row in rows),
        }

    def _judged(self, path: AuditedPath, case: Case) -> dict[str, Any]:
        """All runs of one case, and one of them again."""
        aucs: list[float] = []
        neighbours, first = [], Observed(np.empty(0), np.empty(0, dtype=np.bool_), ())
        for run in tracked(range(self.runs), f"runs of {case.name}"):
            seen = path.observe(case, run)
            aucs.append(auc(seen.evidence, seen.inside))
            if len(seen.residuals) > 1:
                neighbours.append(correlation(pairwise(seen.residuals)))
            first = seen if run == 0 else first
        z = {"canaries": excess(aucs, path.bound)}
        row: dict[str, Any] = {"code": case.name, "must_be_found_by": case.found_by, "probe": case.probe}
        if neighbours:
            z["steps"] = sum(found for _, found in neighbours) / self.runs**0.5
            row["correlation_of_steps"] = statistics.mean(value for value, _ in neighbours)
        if len(first.residuals):
            again = path.observe(case, 0)
            row["correlation_of_runs"], z["runs"] = correlation(zip(first.residuals, again.residuals, strict=True))
        # Noise against that of the step before is a fault as well; an AUC far below the bound is none.
        found = [test for test, value in z.items() if (value if test == "canaries" else abs(value)) > self.threshold]
        row |= {
            "auc": statistics.mean(aucs),
            "auc_by_run": aucs,
            "power": power(aucs, path.bound, self.runs, self.threshold),
            "runs_for_power_0.9": runs_needed(aucs, path.bound, self.threshold),
            "z": z,
            "found_by": found,
        }
        expected = found == [] if case.found_by is None else case.found_by in found
        return row | {"as_expected": expected or case.probe}
