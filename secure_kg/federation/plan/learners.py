"""Kinds of learners, as data that every party can read without loading a model.

A kind says which blocks it shares under a strategy, how its results are summed, and where clients find the class that
trains. The server's process never imports that class, and so loads no model code.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from secure_kg.evaluation.metrics import Metrics
from secure_kg.evaluation.query_metrics import QueryMetrics
from secure_kg.evaluation.ranking_metrics import FirstRankingMetrics, RankingMetrics
from secure_kg.federation.plan.blocks import Block
from secure_kg.federation.plan.count_plan import COUNT_BOUND, plan_of
from secure_kg.models.queries.shapes import initial_span
from secure_kg.models.shapes import entity_width, initial_range, relation_width

if TYPE_CHECKING:
    from secure_kg.federation.plan.settings import RunConfig
    from secure_kg.federation.plan.strategies import Strategy
    from secure_kg.learning.learner import Learner
    from secure_kg.learning.pooled import PooledLearner


@dataclass(frozen=True, slots=True)
class LearnerKind:
    """One kind of learner."""

    factory: str
    """`module:function` that makes a client's learner; imported by clients only."""
    blocks: "Callable[[RunConfig, Strategy], tuple[Block, ...]]"
    """The blocks that clients share, in the order of their sums. At most one of them is aligned."""
    metrics: type[Metrics]
    older_metrics: Mapping[int, type[Metrics]] = field(default_factory=dict)
    """By the format of runs that summed their results otherwise."""
    pooled: str | None = None
    """`module:function` that makes the learner of all clients' triples in one place; None: there is none."""
    of_queries: bool = False
    """Whether it trains on logical queries: `RunConfig.queries` has its settings then, and `training` no meaning."""

    def metrics_of(self, settings: "RunConfig") -> type[Metrics]:
        """How results of a run are summed."""
        return self.older_metrics.get(settings.format, self.metrics)

    def made_by(self, factory: str) -> "LearnerKind":
        """The same kind with another class: its blocks and metrics stay."""
        return dataclasses.replace(self, factory=factory)

    def make(self, *arguments: Any) -> "Learner":
        """A client's learner. See `secure_kg.learning.learner.Factory` for the arguments."""
        learner: Learner = _named(self.factory)(*arguments)
        return learner

    def make_pooled(self, *arguments: Any) -> "PooledLearner":
        """The learner of a pool. See `secure_kg.learning.pooled.PooledFactory` for the arguments."""
        if self.pooled is None:
            raise ValueError(f"{self.factory}: no learner of a pool")
        learner: PooledLearner = _named(self.pooled)(*arguments)
        return learner


def _named(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


def _embedding_blocks(settings: "RunConfig", strategy: "Strategy") -> tuple[Block, ...]:
    """FedR shares the rows of relations, FedE those of entities; `all-rows` both, in one block, if they are as wide.

    Under differential privacy every client adds to every row, and noise to all of them.
    """
    training = settings.training
    widths = {"relation": relation_width, "entity": entity_width, "entity and relation": entity_width}
    if strategy.shared is None:
        return ()
    width = widths[strategy.shared](training.model, training.dim)
    span = initial_range(training.margin, training.dim)
    block = Block(strategy.shared, width, settings.aggregation, aligned=True, span=span)
    if settings.privacy is None:
        return (block,)
    block = dataclasses.replace(block, public=True, noise=plan_of(settings, strategy).noise)
    if settings.privacy.counts:
        width = settings.privacy.dp_count_width
        return (dataclasses.replace(block, width=width, span=0.0, bound=COUNT_BOUND, agrees=False),)
    return (block,)


KGE: Final = LearnerKind(
    "secure_kg.learning.kge:make_learner",
    _embedding_blocks,
    RankingMetrics,
    older_metrics={1: FirstRankingMetrics},
    pooled="secure_kg.learning.pooled:make_pooled",
)
"""The learner of embeddings."""


def _query_blocks(settings: "RunConfig", strategy: "Strategy") -> tuple[Block, ...]:
    """Rows by the run's own aggregation; operators too, but by masked sums where the server cannot read the run's own.

    Everybody who encodes a query needs the operators, the server included. Weighted ones go by the run's own: whoever
    reads sums of weights over different clients can compute single ones.
    """
    queries = settings.queries
    if strategy.shared is None or queries is None:
        return ()
    readable = "secagg" if settings.sum_protocol.sealed and not queries.weighted else settings.aggregation
    return (
        Block(strategy.shared, queries.dim, settings.aggregation, aligned=True, span=initial_span(queries.dim)),
        Block("operators", queries.operators, readable, aligned=False),
    )


QUERIES: Final = LearnerKind(
    "secure_kg.learning.query_learner:make_learner",
    _query_blocks,
    QueryMetrics,
    pooled="secure_kg.learning.pooled_queries:make_pooled",
    of_queries=True,
)
"""The learner of logical queries."""


def _network_blocks(settings: "RunConfig", strategy: "Strategy") -> tuple[Block, ...]:
    """Rows that go into the encoder, as embeddings are shared; encoder and decoder stay with each client."""
    if strategy.shared is None or settings.network is None:
        return ()
    entity, relation = settings.network.widths
    width = relation if strategy.shared == "relation" else entity
    return (Block(strategy.shared, width, settings.aggregation, aligned=True, span=settings.network.span),)


NETWORK: Final = LearnerKind(
    "secure_kg.learning.networks.learner:make_learner",
    _network_blocks,
    RankingMetrics,
    pooled="secure_kg.learning.networks.pooled:make_pooled",
)
"""The learner of graph networks: of the kind that the settings name."""
