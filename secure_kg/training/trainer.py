"""A client's local training: its model, its optimiser, and the rows it exchanges."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import embedding

from secure_kg.data.graph import ClientGraph, Part
from secure_kg.errors import TrainingDiverged
from secure_kg.evaluation.answers import Side
from secure_kg.evaluation.ranking import FilteredRanking, Sides
from secure_kg.evaluation.sums import RankingSums
from secure_kg.models.base import ModelSize
from secure_kg.models.registry import build_model
from secure_kg.seeds import generator, torch_seed
from secure_kg.training.config import TrainingConfig
from secure_kg.training.loss import self_adversarial_loss
from secure_kg.training.negatives import NegativeSampler

__all__ = ["LocalTrainer", "RankingSums", "Table", "TrainStats", "TrainingConfig"]

Table = Literal["entity", "relation"]


@dataclass(frozen=True, slots=True)
class TrainStats:
    """One round of local training: mean loss per triple, triples seen (with repetition), optimiser steps."""

    loss: float
    triples: int
    steps: int


class LocalTrainer:
    """Trains on one client's graph (FedR, algorithm 1, lines 9-11)."""

    def __init__(
        self, graph: ClientGraph, config: TrainingConfig, device: torch.device, seed: int, client: int
    ) -> None:
        self.graph, self.config = graph, config
        self._device, self._seed, self._client = device, seed, client
        size = ModelSize(len(graph.entities), len(graph.relations), config.dim, config.margin, config.norm)
        initial = torch.Generator().manual_seed(torch_seed(seed, "initial rows", client))
        self.model = build_model(config.model, size, initial).to(device)
        self._optimiser = torch.optim.Adam(self.model.parameters(), lr=config.lr, fused=True)
        self._train = torch.from_numpy(graph.train).to(device)
        self._negatives = NegativeSampler(graph, config.negatives, device)
        self._ranking = FilteredRanking(graph, device)

    def train_round(self, round: int) -> TrainStats:
        """`local_epochs` passes over the train part; raises `TrainingDiverged` if anything stops being finite."""
        order = generator(self._seed, "order", self._client, round)
        draws = generator(self._seed, "negatives", self._client, round)
        # Alternation starts from the round, so that one batch per round still sees both sides in turn.
        sides: tuple[Side, ...] = ("tail",) if self.config.corrupt == "tail" else ("tail", "head")
        loss_sum = torch.zeros((), dtype=torch.float64, device=self._device)
        triples = steps = 0
        for _ in range(self.config.local_epochs):
            shuffled = self._train[torch.from_numpy(order.permutation(len(self._train))).to(self._device)]
            for batch in torch.split(shuffled, self.config.batch_size):
                loss = self._step(batch, sides[(round + steps) % len(sides)], draws)
                loss_sum += loss * len(batch)
                triples += len(batch)
                steps += 1
        # One check per round: a value that is not finite stays so, and asking at every step would stall a GPU.
        finite = torch.stack([loss_sum.isfinite(), *(p.isfinite().all() for p in self.model.parameters())]).all()
        if not bool(finite):
            raise TrainingDiverged(
                f"client {self._client}: training is not finite in round {round}; a smaller --lr may help"
            )
        return TrainStats(float(loss_sum) / max(triples, 1), triples, steps)

    def _step(self, batch: Tensor, side: Side, draws: np.random.Generator) -> Tensor:
        """One optimiser step on batch [b, 3]; returns its mean loss."""
        negatives = self._negatives.draw(batch, side, draws)
        ids = torch.cat((batch[:, 0], batch[:, 2], negatives.entities))  # gathered at once: one scatter on the way back
        h, t, candidates = torch.tensor_split(embedding(ids, self.model.entity), (len(batch), 2 * len(batch)))
        r = embedding(batch[:, 1], self.model.relation)
        if side == "tail":
            negative = self.model.score_tails(h, r, candidates)
        else:
            negative = self.model.score_heads(candidates, r, t)
        positive = self.model.score(h, r, t)
        loss = self_adversarial_loss(positive, negative, negatives.false_negative, self.config.temperature)
        self._optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimiser.step()
        return loss.detach()

    def rows(self, table: Table) -> npt.NDArray[np.float32]:
        """A copy of a table [n, width], in local ids."""
        return self._parameter(table).detach().cpu().numpy().copy()

    def set_rows(self, table: Table, rows: npt.NDArray[np.float32]) -> None:
        """Replace a table by rows [n, width] that arrived from outside.

        Adam's moments stay. FedR's code starts a new Adam every round; on UMLS (5 clients, 5 seeds) keeping the
        moments, dropping those of the shared table and dropping all of them rank tails alike within the noise of the
        seeds, and keeping is the one that needs no rule about when to drop.
        """
        parameter = self._parameter(table)
        if rows.shape != tuple(parameter.shape):
            raise ValueError(f"{table} rows must have shape {tuple(parameter.shape)}, not {rows.shape}")
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32)))

    def evaluate(self, part: Part, sides: Sides = "tail") -> RankingSums:
        """Filtered ranking of one part of the graph."""
        return self._ranking.rank(self.model, self.graph.part(part), sides)

    def parameters_state(self) -> dict[str, Tensor]:
        """Copies of both tables, on the CPU: enough to evaluate, and to go back to the best round."""
        return {name: p.detach().cpu().clone() for name, p in self.model.named_parameters()}

    def load_parameters(self, state: dict[str, Tensor]) -> None:
        """Take both tables back from `parameters_state`."""
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(state[name])

    def state(self) -> dict[str, Tensor]:
        """Both tables and Adam's state, flat, contiguous and on the CPU: training goes on from it bit for bit."""
        moments = {
            f"{name}.{key}": value.detach().cpu().clone()
            for name, parameter in self.model.named_parameters()
            for key, value in self._optimiser.state.get(parameter, {}).items()
        }
        return self.parameters_state() | moments

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue where `state` was taken."""
        self.load_parameters(state)
        self._optimiser.state.clear()
        for name, parameter in self.model.named_parameters():
            prefix = f"{name}."
            saved = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
            if saved:  # nothing before the first step
                self._optimiser.state[parameter] = {k: v.to(self._device, copy=True) for k, v in saved.items()}

    def _parameter(self, table: Table) -> torch.nn.Parameter:
        return {"entity": self.model.entity, "relation": self.model.relation}[table]
