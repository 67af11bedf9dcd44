"""Training on queries over all clients' triples in one place, judged as each client would judge it.

Every client's own queries are ranked among its own entities. Training queries may cross the clients' graphs, which no
client alone could draw.
"""

import numpy as np
import torch
from torch import Tensor

from secure_kg.data.graph import Part
from secure_kg.data.pooling import Member, Pool
from secure_kg.evaluation.metrics import Metrics
from secure_kg.evaluation.query_metrics import QueryMetrics
from secure_kg.evaluation.query_ranking import rank_queries
from secure_kg.learning.device import to_device
from secure_kg.learning.learner import Settings
from secure_kg.learning.pooled import PARTY, PooledLearner, Tables
from secure_kg.learning.query_config import QueryConfig
from secure_kg.learning.query_evaluations import QueryEvaluations
from secure_kg.learning.query_learner import QueryLearner
from secure_kg.models.queries.model import QueryModel, QueryModelSize


class PooledQueryLearner(QueryLearner, PooledLearner):
    """A learner of the pool's graph; what it reports are sums over the pool's members."""

    def __init__(self, pool: Pool, config: QueryConfig, device: torch.device, seed: int) -> None:
        super().__init__(pool.graph, config, device, seed, PARTY)
        self.pool = pool
        self._judges = [
            QueryEvaluations(member.graph, config, seed, number) for number, member in enumerate(pool.members, start=1)
        ]
        self._last: dict[Part, list[QueryMetrics]] = {}

    def rank(self, part: Part) -> QueryMetrics:
        ranked = [
            rank_queries(self.view(member), judge.of(part), self.config.eval_megabytes)
            for member, judge in zip(self.pool.members, self._judges, strict=True)
        ]
        self._last[part] = ranked
        return sum(ranked, QueryMetrics.by_name({}))

    def member_results(self, part: Part) -> list[Metrics]:
        return list(self._last[part])

    def member_tables(self, member: Member) -> Tables:
        return {name: p.detach().cpu().numpy() for name, p in self.view(member).named_parameters()}

    def view(self, member: Member) -> QueryModel:
        """A model of the member's own entities and relations, its rows copied from the pool's."""
        graph, size = member.graph, self.model.size
        own = QueryModelSize(len(graph.entities), len(graph.relations), size.encoder, size.shape, size.score)
        model = QueryModel(own, torch.Generator(), torch.Generator()).to(self.model.rows.device)
        with torch.no_grad():
            model.rows.copy_(self.model.rows[self._places_of(member)])
            model.operators.copy_(self.model.operators)
        return model

    def _places_of(self, member: Member) -> Tensor:
        labels = (2 * member.relations[:, None] + np.arange(2)).reshape(-1)
        places = np.concatenate((member.entities, self.model.size.entities + labels))
        return to_device(places, self.model.rows.device)


def make_pooled(settings: Settings, pool: Pool, device: torch.device) -> PooledQueryLearner:
    """The learner of a pool, by the settings of its run."""
    return PooledQueryLearner(pool, settings.queries or QueryConfig(), device, settings.seed)
