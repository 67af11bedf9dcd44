"""Negatives that some triples of a batch share, drawn from the client's own entities, with true triples marked.

Sharing turns scoring into one matrix product or distance table per group instead of a gather of rows for every pair.
The smaller the groups, the more different entities a step moves, up to those of negatives drawn for each triple alone.
As in FedR (appendix B), entities that a client does not hold are never drawn.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from secure_kg.data.graph import ClientGraph, Side
from secure_kg.evaluation.answers import KnownAnswers
from secure_kg.kernels.known import Known
from secure_kg.kernels.marks import Places, make_distinct, mark_known
from secure_kg.learning.device import to_device
from secure_kg.models.base import rows_per_group


@dataclass(frozen=True, slots=True)
class Negatives:
    """Candidates [groups, m], different within a group; which are false negatives of which triple [b, m].

    A group is `rows_per_group(b, groups)` triples that follow each other.
    """

    entities: Tensor
    false_negative: Tensor


class NegativeSampler:
    """Draws candidates for one side of a batch at a time."""

    def __init__(self, graph: ClientGraph, negatives: int, share: int, device: torch.device) -> None:
        """`share`: at most so many triples share their negatives."""
        self._entities = len(graph.entities)
        self._negatives = min(negatives, self._entities)
        self._share, self._device = share, device
        self._places = Places(np.zeros(self._entities, dtype=np.bool_), np.empty(self._entities, dtype=np.int32))
        sides: tuple[Side, Side] = ("tail", "head")
        self._known = {side: KnownAnswers(graph.train, len(graph.relations), side, device) for side in sides}

    def draw(self, triples: Tensor, side: Side, generator: np.random.Generator) -> Negatives:
        """Candidates to replace that side of triples [b, 3]; without replacement, all entities if there are few."""
        groups = -(-len(triples) // self._share)
        if self._negatives == self._entities:
            drawn = np.broadcast_to(np.arange(self._entities), (groups, self._entities)).copy()
        else:
            # One call for all groups, by the algorithm with which `Generator.choice` draws few of many.
            bounds = np.arange(self._entities - self._negatives, self._entities)
            drawn = generator.integers(0, bounds, (groups, self._negatives), endpoint=True)
            make_distinct(drawn, self._entities, self._places.drawn)
        entities = to_device(drawn, self._device)
        mark = self._marks_by_kernel if self._device.type == "cpu" else self._marks_by_torch
        return Negatives(entities, mark(triples, side, entities))

    def _marks_by_kernel(self, triples: Tensor, side: Side, entities: Tensor) -> Tensor:
        known = self._known[side]
        starts, counts = known.ranges(triples)
        marks = torch.zeros(len(triples), entities.shape[1], dtype=torch.bool)
        rows = rows_per_group(len(triples), len(entities))
        ranges = Known(starts.numpy(), counts.numpy(), known.all.numpy())
        mark_known(self._places, entities.numpy(), rows, ranges, marks.numpy())
        return marks

    def _marks_by_torch(self, triples: Tensor, side: Side, entities: Tensor) -> Tensor:
        groups, candidates = entities.shape
        # Of an entity among the candidates of a group.
        position = torch.full((groups, self._entities), -1, device=self._device)
        order = torch.arange(candidates, device=self._device).expand(groups, candidates)
        position.scatter_(1, entities, order)
        rows, answers = self._known[side].look_up(triples)
        columns = position[rows // rows_per_group(len(triples), groups), answers]
        drawn_too = columns >= 0
        marks = torch.zeros(len(triples), candidates, dtype=torch.bool, device=self._device)
        marks[rows[drawn_too], columns[drawn_too]] = True
        return marks
