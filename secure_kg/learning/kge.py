"""The learner of knowledge-graph embeddings: its model, its optimiser, and the rows it exchanges."""

from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from secure_kg.data.graph import ClientGraph, Part, Side
from secure_kg.data.soundness import about_graph
from secure_kg.evaluation.ranking import FilteredRanking, Sides
from secure_kg.evaluation.ranking_metrics import RankingMetrics
from secure_kg.evaluation.sums import RankingSums
from secure_kg.foundation.errors import TrainingDiverged
from secure_kg.foundation.seeds import generator, torch_seed
from secure_kg.learning.adam import Adam
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.device import to_device
from secure_kg.learning.kge_steps import steps_for
from secure_kg.learning.learner import Learner, Rows, Settings, TrainStats
from secure_kg.learning.negatives import NegativeSampler
from secure_kg.learning.parameters import copied, digest_of, load_copied, load_state_of, state_of
from secure_kg.models.base import ModelSize
from secure_kg.models.registry import build_model

BOTH: Final = "entity and relation"
_BLOCKS: Final = ("entity", "relation")


class KgeLearner(Learner):
    """Trains on one client's graph (FedR, algorithm 1, lines 9-11)."""

    def __init__(
        self, graph: ClientGraph, config: TrainingConfig, device: torch.device, seed: int, client: int
    ) -> None:
        self.graph, self.config = graph, config
        self._device, self._seed, self._client = device, seed, client
        numbers = len(graph.entities), len(graph.relations)
        size = ModelSize(*numbers, config.dim, config.margin, config.norm, graph.train)
        initial = torch.Generator().manual_seed(torch_seed(seed, "initial rows", client))
        self.model = build_model(config.model, size, initial).to(device)
        self._optimiser = Adam(self.model.parameters(), config.lr)
        for parameter in self.model.parameters():
            parameter.grad = torch.zeros_like(parameter)  # kept zero between steps
        self._steps = steps_for(self.model, self._optimiser, config)
        self._train = to_device(graph.train, device)
        self._negatives = NegativeSampler(graph, config.negatives, config.share_negatives, device)
        self._ranking = FilteredRanking(graph, device, config.eval_megabytes)

    def train(self, round: int) -> TrainStats:
        """`local_epochs` passes over the train part; raises `TrainingDiverged` if anything stops being finite."""
        # From the round's number alone, so that a resumed run has the same rate.
        self._optimiser.rate = self.config.lr * self.config.lr_decay ** max(0, round - 1)
        order = generator(self._seed, "order", self._client, round)
        draws = generator(self._seed, "negatives", self._client, round)
        # Alternation starts from the round, so that one batch per round still sees both sides in turn.
        sides: tuple[Side, ...] = ("tail",) if self.config.corrupt == "tail" else ("tail", "head")
        loss_sum = torch.zeros((), dtype=torch.float64, device=self._device)
        triples = steps = 0
        batches = -(-len(self._train) // self.config.batch_size)
        self._steps.begin(self.config.local_epochs * batches)
        for _ in range(self.config.local_epochs):
            shuffled = self._train[to_device(order.permutation(len(self._train)), self._device)]
            for batch in torch.split(shuffled, self.config.batch_size):
                side = sides[(round + steps) % len(sides)]
                loss = self._steps.step(batch, side, self._negatives.draw(batch, side, draws))
                loss_sum += loss * len(batch)
                triples += len(batch)
                steps += 1
        self._steps.settle()
        # One check per round: a value that is not finite stays so, and asking at every step would stall a GPU.
        finite = torch.stack([loss_sum.isfinite(), *(p.isfinite().all() for p in self.model.parameters())]).all()
        if not bool(finite):
            raise TrainingDiverged(
                f"client {self._client}: training is not finite in round {round}; a smaller --lr may help"
            )
        return TrainStats(float(loss_sum) / max(triples, 1), triples, steps)

    def block_names(self, block: str) -> tuple[str, ...]:
        """Entities or relations, in the order of local ids. In a block of both, their names say which they are."""
        if block == BOTH:
            entities, relations = self.graph.entities, self.graph.relations
            return (*(f"entity {name}" for name in entities), *(f"relation {name}" for name in relations))
        return self.graph.relations if block == "relation" else self.graph.entities

    def export_block(self, block: str) -> Rows:
        """A copy of a table [n, width], in local ids; of both tables one after the other."""
        if block == BOTH:
            return np.concatenate([self.export_block(name) for name in _BLOCKS])
        return self._parameter(block).detach().cpu().numpy().copy()

    def load_block(self, block: str, rows: Rows) -> None:
        """Replace a table by rows [n, width] that arrived from outside.

        Adam's moments stay. FedR's code starts a new Adam every round; on UMLS (5 clients, 5 seeds) keeping the
        moments, dropping those of the shared table and dropping all of them rank tails alike within the noise of the
        seeds, and keeping is the one that needs no rule about when to drop.
        """
        if block == BOTH:
            for name, part in zip(_BLOCKS, np.split(rows, [len(self.graph.entities)]), strict=True):
                KgeLearner.load_block(self, name, part)
            return
        parameter = self._parameter(block)
        if rows.shape != tuple(parameter.shape):
            raise ValueError(f"{block} rows must have shape {tuple(parameter.shape)}, not {rows.shape}")
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32)))

    def rank(self, part: Part, sides: Sides = "tail") -> RankingSums:
        """Filtered ranking of one part of the graph."""
        return self._ranking.rank(self.model, self.graph.part(part), sides)

    def evaluate(self, part: Part, trained: TrainStats | None = None) -> RankingMetrics:
        tail = self.rank(part, "tail")
        both = tail + self.rank(part, "head")
        if trained is None:
            return RankingMetrics(tail, both)
        return RankingMetrics(tail, both, loss_sum=trained.loss * trained.triples, loss_triples=trained.triples)

    def about(self) -> dict[str, Any]:
        return about_graph(self.graph)

    def parameters_state(self) -> dict[str, Tensor]:
        """Copies of both tables, on the CPU: enough to evaluate, and to go back to the best round."""
        return copied(self.model)

    def digest(self) -> bytes:
        """SHA-256 of both tables: the same if and only if the parameters are."""
        return digest_of(self.model)

    def load_parameters(self, state: dict[str, Tensor]) -> None:
        """Take both tables back from `parameters_state`."""
        load_copied(self.model, state)

    def state(self) -> dict[str, Tensor]:
        """Both tables and Adam's state, flat, contiguous and on the CPU: training goes on from it bit for bit."""
        return state_of(self.model, self._optimiser)

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue where `state` was taken."""
        load_state_of(self.model, self._optimiser, state)

    def _parameter(self, block: str) -> torch.nn.Parameter:
        if block not in _BLOCKS:
            raise ValueError(f"a model of embeddings has no block '{block}'")
        return self.model.relation if block == "relation" else self.model.entity


def make_learner(settings: Settings, graph: ClientGraph, client: int, device: torch.device) -> KgeLearner:
    """A client's learner, by the settings of its run."""
    return KgeLearner(graph, settings.training, device, settings.seed, client)
