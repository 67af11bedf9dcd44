"""Steps of training on a batch of triples: by torch on any device, and by compiled loops on the CPU.

Both are the same function, and tests hold them together. Autograd sees only the rows of a batch. By torch, their
gradients are added into tables that are zero elsewhere, and Adam goes over whole tables, as its moments move those rows
too that a batch leaves out. On the CPU such rows are moved when they are next read (`RowAdam`), and distances, loss and
their gradients are one compiled pass over a group of rows (`secure_kg.kernels.self_adversarial`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final, cast

import numpy as np
import torch
from torch import Tensor

from secure_kg.data.graph import Side
from secure_kg.kernels import self_adversarial
from secure_kg.kernels.adam import add_rows
from secure_kg.learning.adam import Adam, gradient_of
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.loss import chained, given, loss_and_gradients
from secure_kg.learning.negatives import Negatives
from secure_kg.learning.row_adam import RowAdam
from secure_kg.models.base import EmbeddingModel, rows_per_group
from secure_kg.models.geometry import BY_NORM, COMPLEX_L1, Geometry

_BY_GEOMETRY: Final[dict[Geometry, tuple[Callable[..., float], int]]] = {
    BY_NORM[1]: (self_adversarial.l1_step, 1),
    COMPLEX_L1: (self_adversarial.complex_l1_step, 2),
}
"""The compiled pass of a geometry, and into how many parts its rows fall."""


class Steps(ABC):
    """Steps of one model. Between `begin` and `settle`, nobody else reads or writes its tables."""

    def __init__(self, model: EmbeddingModel, optimiser: Adam, config: TrainingConfig) -> None:
        self._model, self._optimiser, self._config = model, optimiser, config

    @abstractmethod
    def begin(self, steps: int) -> None:
        """Get ready for so many steps."""

    @abstractmethod
    def step(self, batch: Tensor, side: Side, negatives: Negatives) -> Tensor:
        """One optimiser step on batch [b, 3], with negatives for that side; its mean loss."""

    @abstractmethod
    def settle(self) -> None:
        """Leave the tables as they are after these steps."""

    def _row_gradients(self, batch: Tensor, side: Side, negatives: Negatives) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Loss; ids of entity rows, heads, tails and candidates; gradients of these; gradients of relation rows."""
        model = self._model
        ids = torch.cat((batch[:, 0], batch[:, 2], negatives.entities.view(-1)))
        entity = model.entity.detach().index_select(0, ids).requires_grad_()
        relation = model.relation.detach().index_select(0, batch[:, 1]).requires_grad_()
        h, t, candidates = torch.tensor_split(entity, (len(batch), 2 * len(batch)))
        candidates = candidates.view(*negatives.entities.shape, -1)
        r = model.relation_rows(batch[:, 1], relation)
        negative = model.score_tails(h, r, candidates) if side == "tail" else model.score_heads(candidates, r, t)
        positive = model.score(h, r, t)
        loss, *by_score = loss_and_gradients(positive, negative, negatives.false_negative, self._config.temperature)
        entity_gradient, relation_gradient = torch.autograd.grad(
            chained(positive, negative, *by_score), (entity, relation)
        )
        return loss, ids, entity_gradient, relation_gradient


class TorchSteps(Steps):
    """On any device."""

    def begin(self, steps: int) -> None:
        """Nothing to do: every step moves every row."""

    def step(self, batch: Tensor, side: Side, negatives: Negatives) -> Tensor:
        model = self._model
        loss, ids, *gradients = self._row_gradients(batch, side, negatives)
        tables = ((model.entity, ids), (model.relation, batch[:, 1]))
        for (parameter, rows), gradient in zip(tables, gradients, strict=True):
            gradient_of(parameter).index_add_(0, rows, gradient)
        self._optimiser.step()
        for parameter, rows in tables:
            gradient_of(parameter).index_fill_(0, rows, 0.0)
        return loss

    def settle(self) -> None:
        """Nothing to do."""


class CompiledSteps(Steps):
    """On the CPU, in 32 bits and one thread."""

    def __init__(self, model: EmbeddingModel, optimiser: Adam, config: TrainingConfig) -> None:
        super().__init__(model, optimiser, config)
        self._rows = RowAdam(optimiser)
        self._pass = _BY_GEOMETRY.get(model.geometry)
        self._scratch: dict[tuple[int, ...], self_adversarial.Scratch] = {}
        self._rooms: dict[tuple[int, tuple[int, ...]], Tensor] = {}
        self._terms = self_adversarial.Terms(np.float32(model.offset), np.float32(config.temperature))

    def begin(self, steps: int) -> None:
        self._rows.begin(steps)

    def step(self, batch: Tensor, side: Side, negatives: Negatives) -> Tensor:
        model = self._model
        heads, relations, tails = batch.t().contiguous()
        entities = torch.cat((heads, tails, negatives.entities.view(-1)))
        touched = ((model.entity, entities), (model.relation, relations))
        self._rows.catch_up(touched)
        if self._pass is None:
            loss, _, *gradients = self._row_gradients(batch, side, negatives)
            for (parameter, rows), gradient in zip(touched, gradients, strict=True):
                _add(gradient, rows, parameter)
        else:
            ends = (heads, tails) if side == "tail" else (tails, heads)
            loss = self._by_distance(side, relations, ends, negatives)
        self._rows.step()
        return loss

    def _by_distance(self, side: Side, relations: Tensor, ends: tuple[Tensor, Tensor], negatives: Negatives) -> Tensor:
        """The gradients of a step in the tables, and its loss. `ends`: the entities that are kept, those replaced."""
        model, (kept, replaced) = self._model, ends
        entity, relation = self._taken(model.entity, kept), self._taken(model.relation, relations)
        r = model.relation_rows(relations, relation)
        points = model.tail_points(entity, r) if side == "tail" else model.head_points(r, entity)
        loss, own = self._compare(points.detach(), replaced, model.weights(r), negatives)
        gradients = torch.autograd.grad(given(points, own), (entity, relation))
        for gradient, rows, parameter in zip(gradients, (kept, relations), (model.entity, model.relation), strict=True):
            _add(gradient, rows, parameter)
        return loss

    def _compare(
        self, points: Tensor, truths: Tensor, weights: Tensor | None, negatives: Negatives
    ) -> tuple[Tensor, Tensor]:
        """The mean loss of points [b, width] and its gradient by them; those by rows are added to the table's."""
        run, parts = cast(tuple[Callable[..., float], int], self._pass)
        groups, candidates = negatives.entities.shape
        shape = rows_per_group(len(points), groups), candidates, points.shape[1], parts
        if shape not in self._scratch:
            self._scratch[shape] = self_adversarial.scratch(*shape)
        scales = torch.ones(len(points)) if weights is None else weights.detach().contiguous()
        table, own = self._model.entity.detach(), self._room(0, *points.shape)
        compared = points.contiguous(), table, truths, negatives.entities, negatives.false_negative, scales
        batch = self_adversarial.Batch(*(tensor.numpy() for tensor in compared))
        into = self_adversarial.Gradients(own.numpy(), gradient_of(self._model.entity).numpy())
        return torch.tensor(run(batch, self._terms, self._scratch[shape], into) / len(points)), own

    def _taken(self, table: torch.nn.Parameter, ids: Tensor) -> Tensor:
        """Rows of a table as a leaf of autograd."""
        rows = self._room(id(table), len(ids), table.shape[1])
        return torch.index_select(table.detach(), 0, ids, out=rows).requires_grad_()

    def _room(self, name: int, *shape: int) -> Tensor:
        """Memory that is used again at the next step: new memory costs more than what is done in it."""
        if (name, shape) not in self._rooms:
            self._rooms[name, shape] = torch.empty(shape)
        return self._rooms[name, shape].detach()

    def settle(self) -> None:
        self._rows.settle()


def _add(gradient: Tensor, rows: Tensor, parameter: torch.nn.Parameter) -> None:
    add_rows(gradient.contiguous().numpy(), rows.numpy(), gradient_of(parameter).numpy())


def steps_for(model: EmbeddingModel, optimiser: Adam, config: TrainingConfig) -> Steps:
    """The fastest that there is where the model's tables are."""
    kind = CompiledSteps if model.entity.device.type == "cpu" and model.entity.dtype == torch.float32 else TorchSteps
    return kind(model, optimiser, config)
