"""Training on all clients' triples in one place, judged as each client would judge it (FedE, section 3.2, "Entire").

Every client's held-out triples are ranked among that client's own entities with that client's own filter, as under the
other strategies. Against all entities of the pool the task would be another one and the figures would not compare.
"""

from abc import abstractmethod
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from secure_kg.data.graph import Part
from secure_kg.data.pooling import Member, Pool
from secure_kg.evaluation.metrics import Metrics
from secure_kg.evaluation.ranking import FilteredRanking, Sides
from secure_kg.evaluation.ranking_metrics import RankingMetrics
from secure_kg.evaluation.sums import RankingSums
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.device import to_device
from secure_kg.learning.kge import KgeLearner
from secure_kg.learning.learner import Learner, Settings
from secure_kg.models.base import EmbeddingModel, ModelSize
from secure_kg.models.registry import build_model

PARTY = 1
"""There is one trainer; it has the streams of a first client."""
Tables = dict[str, npt.NDArray[np.float32]]


class PooledLearner(Learner):
    """A learner of a pool's graph, which is judged as each member would judge it."""

    pool: Pool

    @abstractmethod
    def member_results(self, part: Part) -> list[Metrics]:
        """What each member contributed to the newest evaluation of this part."""

    @abstractmethod
    def member_tables(self, member: Member) -> Tables:
        """The member's own rows of the pool's model, and whatever else a client of a federation would have."""


class PooledFactory(Protocol):
    """Makes the learner of a pool; `LearnerKind.pooled` names one."""

    def __call__(self, settings: Settings, pool: Pool, device: torch.device) -> PooledLearner: ...


class PooledTrainer(KgeLearner, PooledLearner):
    """A trainer of the pool's graph; what it reports are sums over the pool's members, all triples weighted alike."""

    def __init__(self, pool: Pool, config: TrainingConfig, device: torch.device, seed: int) -> None:
        super().__init__(pool.graph, config, device, seed, PARTY)
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

    def member_results(self, part: Part) -> list[Metrics]:
        both = zip(self.last(part, "tail"), self.last(part, "head"), strict=True)
        return [RankingMetrics(tail, tail + head) for tail, head in both]

    def member_tables(self, member: Member) -> Tables:
        return {name: p.detach().cpu().numpy() for name, p in self.view(member).named_parameters()}

    def view(self, member: Member) -> EmbeddingModel:
        """A model of the member's own entities and relations, its rows copied from the pool's."""
        graph, config = member.graph, self.config
        numbers = len(graph.entities), len(graph.relations)
        size = ModelSize(*numbers, config.dim, config.margin, config.norm, graph.train)
        model = build_model(config.model, size, torch.Generator()).to(self._where)
        with torch.no_grad():
            model.entity.copy_(self.model.entity[to_device(member.entities, self._where)])
            model.relation.copy_(self.model.relation[to_device(member.relations, self._where)])
        return model


def make_pooled(settings: Settings, pool: Pool, device: torch.device) -> PooledTrainer:
    """The trainer of a pool, by the settings of its run."""
    return PooledTrainer(pool, settings.training, device, settings.seed)
