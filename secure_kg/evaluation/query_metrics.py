"""Ranking results of logical queries as sums by type; free of torch.

The figures of a query are means over its hard answers, those of a type means over its queries (FedCQA, Eq. 7), and
those of all types means over types, as papers print them. Hits are the papers' HR.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np
import numpy.typing as npt

from protocols.sums.interface import Contribution, SumLayout, Total
from secure_kg.evaluation.metrics import Metrics
from secure_kg.foundation.errors import DataError
from secure_kg.queries.structures import STRUCTURES

KINDS: Final = tuple(STRUCTURES)
"""All named types, so that the layout of a sum does not depend on which of them a run tests."""
FIGURES: Final = ("mrr", "hits@1", "hits@3", "hits@10")
_HITS: Final = (1, 3, 10)
_BOUND, _MAX_COUNT = 2.0**30, 2**40
_CONVENTIONS: Final = {
    "answers": "hard ones: those that the graph without the part's triples does not give",
    "queries": "drawn by every client from its own graph",
    "weights": "mean over a query's hard answers, over a type's queries, over types",
    "ties": "mean of best and worst rank",
    "candidates": "the client's own entities, other answers left out",
}


@dataclass(frozen=True, slots=True)
class TypeSums:
    """Sums over queries of one type, each the mean over its hard answers."""

    count: int = 0
    figures: tuple[float, ...] = (0.0,) * len(FIGURES)

    @classmethod
    def of(cls, starts: npt.NDArray[np.int64], ranks: npt.NDArray[np.float64]) -> "TypeSums":
        """From the ranks of all hard answers; those of query i are ranks[starts[i] : starts[i + 1]], at least one."""
        if len(starts) < 2:
            return cls()
        values = [1 / ranks, *((ranks <= k).astype(np.float64) for k in _HITS)]
        means = [np.add.reduceat(value, starts[:-1]) / np.diff(starts) for value in values]
        return cls(len(starts) - 1, tuple(float(mean.sum()) for mean in means))

    def __add__(self, other: "TypeSums") -> "TypeSums":
        together = tuple(one + two for one, two in zip(self.figures, other.figures, strict=True))
        return TypeSums(self.count + other.count, together)

    def means(self) -> dict[str, float]:
        return {name: value / self.count for name, value in zip(FIGURES, self.figures, strict=True)}


@dataclass(frozen=True, slots=True)
class QueryMetrics(Metrics):
    """Sums by type, in the order of `KINDS`, and the loss over the last round."""

    headline_name: ClassVar[str] = "MRR"
    over_queries: ClassVar[bool] = True
    figure_names: ClassVar[tuple[str, ...]] = (*FIGURES, "types", "queries")

    types: tuple[TypeSums, ...]
    loss_sum: float = 0.0
    loss_queries: int = 0

    @classmethod
    def by_name(cls, types: dict[str, TypeSums], loss_sum: float = 0.0, loss_queries: int = 0) -> Self:
        return cls(tuple(types.get(kind, TypeSums()) for kind in KINDS), loss_sum, loss_queries)

    def __add__(self, other: "QueryMetrics") -> "QueryMetrics":
        types = tuple(one + two for one, two in zip(self.types, other.types, strict=True))
        return QueryMetrics(types, self.loss_sum + other.loss_sum, self.loss_queries + other.loss_queries)

    @classmethod
    def layout(cls, parties: int) -> SumLayout:
        reals, counts = len(KINDS) * len(FIGURES) + 1, len(KINDS) + 1
        return SumLayout(reals, counts, bound=_BOUND, max_count=_MAX_COUNT, parties=parties, ring_bits=64)

    def contribution(self) -> Contribution:
        return Contribution(
            real=np.array([*(value for one in self.types for value in one.figures), self.loss_sum], dtype=np.float64),
            counts=np.array([*(one.count for one in self.types), self.loss_queries], dtype=np.int64),
        )

    @classmethod
    def of(cls, total: Total) -> Self:
        *values, loss_sum = (float(value) for value in total.real)
        *counts, loss_queries = (int(value) for value in total.counts)
        each = len(FIGURES)
        parts = [tuple(values[each * number : each * (number + 1)]) for number in range(len(KINDS))]
        types = tuple(TypeSums(count, part) for count, part in zip(counts, parts, strict=True))
        return cls(types, loss_sum, loss_queries)

    @property
    def headline(self) -> float:
        return float(self.figures()["mrr"])

    @property
    def examples(self) -> int:
        return sum(one.count for one in self.types)

    @property
    def loss(self) -> float:
        return self.loss_sum / max(self.loss_queries, 1)

    def by_type(self) -> dict[str, dict[str, float]]:
        """The figures of the types that have a query."""
        return {kind: one.means() for kind, one in zip(KINDS, self.types, strict=True) if one.count}

    def figures(self) -> dict[str, Any]:
        """Means over types at the top level, types and numbers of their queries below."""
        types = self.by_type()
        if not types:
            raise DataError("nothing to rank: no client has a query with a hard answer in this part")
        means = {name: sum(one[name] for one in types.values()) / len(types) for name in FIGURES}
        counts = {kind: one.count for kind, one in zip(KINDS, self.types, strict=True) if one.count}
        return {**means, "types": types, "queries": counts}

    def evaluation(self) -> dict[str, Any]:
        return {"loss": self.loss, "valid": self.figures()}

    @classmethod
    def described(cls, figures: dict[str, Any]) -> dict[str, Any]:
        known = {name: figures.get(name) for name in cls.figure_names}
        return {"hard": known, **_CONVENTIONS}
