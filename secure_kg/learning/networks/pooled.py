"""A graph network trained on all clients' triples in one place, judged as each client would judge it.

The encoder sees the pool's graph. Each member's held-out triples are ranked among its own entities with its own filter.
"""

from typing import Any

import torch
from torch import Tensor

from secure_kg.data.graph import Part
from secure_kg.data.pooling import Member, Pool
from secure_kg.evaluation.metrics import Metrics
from secure_kg.evaluation.ranking import FilteredRanking
from secure_kg.evaluation.ranking_metrics import RankingMetrics
from secure_kg.evaluation.sums import RankingSums
from secure_kg.learning.learner import Rows, Settings, TrainStats
from secure_kg.learning.networks.learner import encoded_state, make_learner
from secure_kg.learning.pooled import PARTY, PooledLearner, Tables
from secure_kg.models.networks.base import Nodes, NodeScorer


class PooledNetworkLearner(PooledLearner):
    """Hands everything to a learner of the pool's graph, but for results, which are sums over the pool's members."""

    def __init__(self, pool: Pool, settings: Settings, device: torch.device) -> None:
        self.pool, self.graph = pool, pool.graph
        self._learner, self._device = make_learner(settings, pool.graph, PARTY, device), device
        megabytes = self._learner.config.eval_megabytes
        self._rankings = [FilteredRanking(member.graph, device, megabytes) for member in pool.members]
        self._last: dict[Part, list[RankingMetrics]] = {}

    def evaluate(self, part: Part, trained: TrainStats | None = None) -> RankingMetrics:
        nodes, found = self._learner.nodes(), []
        for member, ranking in zip(self.pool.members, self._rankings, strict=True):
            scorer = NodeScorer(self._own(nodes, member), self._learner.network.decoder)
            tail, head = (ranking.rank(scorer, member.graph.part(part), side) for side in ("tail", "head"))
            found.append(RankingMetrics(tail, tail + head))
        self._last[part] = found
        tails, both = (sum((getattr(one, name) for one in found), RankingSums()) for name in ("tail", "both"))
        if trained is None:
            return RankingMetrics(tails, both)
        return RankingMetrics(tails, both, loss_sum=trained.loss * trained.triples, loss_triples=trained.triples)

    def member_results(self, part: Part) -> list[Metrics]:
        return list(self._last[part])

    def member_tables(self, member: Member) -> Tables:
        """The member's encoded rows, which the pool's graph has made, and the decoder."""
        decoder = {f"decoder.{name}": value for name, value in self._learner.network.decoder.state_dict().items()}
        encoded = encoded_state(self._own(self._learner.nodes(), member))
        return {name: value.detach().cpu().numpy() for name, value in (encoded | decoder).items()}

    def _own(self, nodes: Nodes, member: Member) -> Nodes:
        entities, relations = (torch.from_numpy(ids).to(self._device) for ids in (member.entities, member.relations))
        return nodes.of(entities, relations)

    def train(self, round: int) -> TrainStats:
        return self._learner.train(round)

    def block_names(self, block: str) -> tuple[str, ...]:
        return self._learner.block_names(block)

    def export_block(self, block: str) -> Rows:
        return self._learner.export_block(block)

    def load_block(self, block: str, rows: Rows) -> None:
        self._learner.load_block(block, rows)

    def about(self) -> dict[str, Any]:
        return self._learner.about()

    def digest(self) -> bytes:
        return self._learner.digest()

    def parameters_state(self) -> dict[str, Tensor]:
        return self._learner.parameters_state()

    def load_parameters(self, state: dict[str, Tensor]) -> None:
        self._learner.load_parameters(state)

    def state(self) -> dict[str, Tensor]:
        return self._learner.state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        self._learner.load_state(state)


def make_pooled(settings: Settings, pool: Pool, device: torch.device) -> PooledNetworkLearner:
    """The learner of a pool, by the settings of its run."""
    return PooledNetworkLearner(pool, settings, device)
