"""Results of a learner as sums: what one client adds, and what all clients together come to. Free of torch.

A learner names and types its own metrics by a subclass of `Metrics`. The layout of their sum is public and fixed by
that class, so that every party, and an auditor, derives it alike.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from protocols.sums.interface import Contribution, SumLayout, Total


class Metrics(ABC):
    """Sums over one part of the data. Adding them over clients weights every example alike."""

    __slots__ = ()
    headline_name: ClassVar[str]
    """What `headline` is, in a word."""
    figure_names: ClassVar[tuple[str, ...]] = ()
    """Names of all figures at the top level, for results that only clients can read."""
    over_queries: ClassVar[bool] = False
    """Whether an example is a query. Otherwise result files count it as a triple."""

    @classmethod
    @abstractmethod
    def layout(cls, parties: int) -> SumLayout:
        """Layout of the sum over `parties` clients."""

    @abstractmethod
    def contribution(self) -> Contribution:
        """What one client adds to the sum."""

    @classmethod
    @abstractmethod
    def of(cls, total: Total) -> Self:
        """Metrics of the whole federation, as if all examples belonged to one client."""

    @classmethod
    def taken_from(cls, metrics: "Metrics") -> "Metrics":
        """The results of a learner in the form in which this class sums them."""
        return metrics

    @property
    @abstractmethod
    def headline(self) -> float:
        """The one figure that early stopping goes by. Larger is better."""

    @property
    @abstractmethod
    def examples(self) -> int:
        """How many examples the figures are over."""

    @property
    @abstractmethod
    def loss(self) -> float:
        """Mean training loss since the last evaluation; 0 if none is told."""

    @abstractmethod
    def figures(self) -> dict[str, Any]:
        """Named figures for result files, tables and reports."""

    @abstractmethod
    def evaluation(self) -> dict[str, Any]:
        """Named figures of one evaluation, as a line of `metrics.jsonl` has them."""

    @classmethod
    @abstractmethod
    def described(cls, figures: dict[str, Any]) -> dict[str, Any]:
        """The figures of a result file under names that say what they are figures of."""
