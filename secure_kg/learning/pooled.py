"""Training on all clients' triples in one place, judged as each client would judge it (FedE, section 3.2, "Entire").

Every client's held-out triples are ranked among that client's own entities with that client's own filter, as under the
other strategies. Against all entities of the pool the task would be another one and the figures would not compare.
"""

import torch

from secure_kg.data.graph import Part
from secure_kg.data.pooling import Member, Pool
from secure_kg.evaluation.ranking import FilteredRanking, Sides
from secure_kg.evaluation.sums import RankingSums
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.kge import KgeLearner
from secure_kg.models.base import EmbeddingModel, ModelSize
from secure_kg.models.registry import build_model

_PARTY = 1  # there is one trainer; it has the streams of a first client


class PooledTrainer(KgeLearner):
    """A trainer of the pool's graph; what it reports are sums over the pool's members, all triples weighted alike."""

    def __init__(self, pool: Pool, config: TrainingConfig, device: torch.device, seed: int) -> None:
        super().__init__(pool.graph, config, device, seed, _PARTY)
        self.pool, self._where = pool, device
        self._rankings = [FilteredRanking(member.graph, device, config.eval_megabytes) for member in pool.members]
        self._last: dict[tuple[Part, Sides], list[RankingSums]] = {}

    def rank(self, part: Part, sides: Sides = "tail") -> RankingSums:
        ranked = [
            ranking.rank(self.view(member), member.graph.part(part), sides)
            for member, ranking in zip(self.pool.members, self._rankings, strict=True)
        ]
        self._last[part, sides] = ranked
        return sum(ranked, RankingSums())

    def last(self, part: Part, sides: Sides) -> list[RankingSums]:
        """What each member contributed to the newest `rank` of this kind."""
        return self._last[part, sides]

    def view(self, member: Member) -> EmbeddingModel:
        """A model of the member's own entities and relations, its rows copied from the pool's."""
        graph, config = member.graph, self.config
        numbers = len(graph.entities), len(graph.relations)
        size = ModelSize(*numbers, config.dim, config.margin, config.norm, graph.train)
        model = build_model(config.model, size, torch.Generator()).to(self._where)
        with torch.no_grad():
            model.entity.copy_(self.model.entity[torch.from_numpy(member.entities).to(self._where)])
            model.relation.copy_(self.model.relation[torch.from_numpy(member.relations).to(self._where)])
        return model
