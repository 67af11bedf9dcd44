"""Negatives that a batch shares, drawn from the client's own entities, with true triples marked.

Sharing turns scoring into one matrix product or distance table per batch instead of a gather of rows for every pair.
As in FedR (appendix B), entities that a client does not hold are never drawn.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from secure_kg.data.graph import ClientGraph
from secure_kg.evaluation.answers import KnownAnswers, Side
from secure_kg.kernels.marks import mark_known
from secure_kg.training.device import to_device


@dataclass(frozen=True, slots=True)
class Negatives:
    """Candidates [m], all different, for a whole batch; which of them are false negatives of which triple [b, m]."""

    entities: Tensor
    false_negative: Tensor


class NegativeSampler:
    """Draws candidates for one side of a batch at a time."""

    def __init__(self, graph: ClientGraph, negatives: int, device: torch.device) -> None:
        self._entities = len(graph.entities)
        self._negatives = min(negatives, self._entities)
        self._device = device
        self._position = np.full(self._entities, -1, dtype=np.int64)
        sides: tuple[Side, Side] = ("tail", "head")
        self._known = {side: KnownAnswers(graph.train, len(graph.relations), side, device) for side in sides}

    def draw(self, triples: Tensor, side: Side, generator: np.random.Generator) -> Negatives:
        """Candidates to replace that side of triples [b, 3]; without replacement, all entities if there are few."""
        if self._negatives == self._entities:
            drawn = np.arange(self._entities)
        else:
            drawn = generator.choice(self._entities, self._negatives, replace=False, shuffle=False)
        entities = to_device(drawn, self._device)
        mark = self._marks_by_kernel if self._device.type == "cpu" else self._marks_by_torch
        return Negatives(entities, mark(triples, side, entities))

    def _marks_by_kernel(self, triples: Tensor, side: Side, entities: Tensor) -> Tensor:
        known = self._known[side]
        starts, counts = known.ranges(triples)
        marks = torch.zeros(len(triples), len(entities), dtype=torch.bool)
        arrays = (tensor.numpy() for tensor in (entities, starts, counts, known.all, marks))
        mark_known(self._position, *arrays)
        return marks

    def _marks_by_torch(self, triples: Tensor, side: Side, entities: Tensor) -> Tensor:
        position = torch.full((self._entities,), -1, device=self._device)  # of an entity among the candidates
        position[entities] = torch.arange(len(entities), device=self._device)
        rows, answers = self._known[side].look_up(triples)
        columns = position[answers]
        drawn_too = columns >= 0
        marks = torch.zeros(len(triples), len(entities), dtype=torch.bool, device=self._device)
        marks[rows[drawn_too], columns[drawn_too]] = True
        return marks
