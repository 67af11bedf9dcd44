"""Optimiser steps on drawn queries: all types in one batch, every row gathered once, one set of negatives."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding

from secure_kg.learning.adam import Adam
from secure_kg.learning.device import to_device
from secure_kg.learning.query_config import Answers
from secure_kg.learning.query_loss import sampled_softmax
from secure_kg.models.queries.encoder import encode
from secure_kg.models.queries.model import QueryModel
from secure_kg.models.queries.scoring import alike, pairs
from secure_kg.queries.edges import Ids, QueryGraph
from secure_kg.queries.sampling import Drawn
from secure_kg.queries.structures import STRUCTURES, relation_columns


class QuerySteps:
    """Steps of one model with one optimiser."""

    def __init__(self, model: QueryModel, optimiser: Adam) -> None:
        self._model, self._optimiser = model, optimiser

    def step(self, drawn: Sequence[Drawn], negatives: Ids) -> float:
        """One step on queries of several types against negatives [m], all different; returns their mean loss."""
        parameters = self._model.rows, self._model.operators
        loss = self.loss(drawn, negatives)
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.grad = gradient
        self._optimiser.step()
        return float(loss.detach())

    def loss(self, drawn: Sequence[Drawn], negatives: Ids) -> Tensor:
        """The mean loss of the queries."""
        model, size, device = self._model, self._model.size, self._model.rows.device
        asked = [_in_table(one, size.entities) for one in drawn]
        answers = np.concatenate([one.answers for one in drawn])
        # Rows of one lookup have one gradient, as large as the table; several lookups would have one each.
        ids = np.concatenate([*(one.reshape(-1) for one in asked), answers, negatives]).astype(np.int64)
        gathered = embedding(to_device(ids, device), model.rows)
        *columns, positive, negative = torch.split(
            gathered, [*(one.size for one in asked), len(answers), len(negatives)]
        )
        own = to_device(answers[:, None] == negatives[None], device)
        sizes = [len(one.rows) for one in drawn]
        encoder, losses = model.encoder(), []
        # Type by type: the scores of some hundred queries stay in the cache, those of the whole batch would not.
        for one, rows, right, hit in zip(
            drawn, columns, torch.split(positive, sizes), torch.split(own, sizes), strict=True
        ):
            by_column = rows.view(one.rows.shape[1], len(one.rows), -1).unbind(0)
            points = encode(encoder, STRUCTURES[one.kind], by_column.__getitem__, by_column.__getitem__)
            found = alike(points, right, size.compares), pairs(points, negative, size.compares)
            scores = [encoder.operators["scale"] * one for one in found]
            losses.append(sampled_softmax(scores[0], scores[1], hit, size.entities))
        return torch.stack(losses).sum() / len(answers)


def _in_table(drawn: Drawn, entities: int) -> Ids:
    """Rows of the model's table [columns, n], in which labels of relations come after the entities."""
    table = np.ascontiguousarray(drawn.rows.T)
    table[relation_columns(STRUCTURES[drawn.kind])] += entities
    return table


def drawn_from(graph: QueryGraph, answers: Answers) -> QueryGraph:
    """The graph as training queries are drawn from it.

    Held-out triples are edges, so entities of many edges are asked for more often than others. docs/fedcqa.md compares
    the two.
    """
    if answers == "entities":
        return graph
    return QueryGraph(graph.edges._replace(nodes=graph.edges.targets), graph.entities, graph.relations)


def draw_negatives(draws: np.random.Generator, entities: int, number: int) -> Ids:
    """Different entities, uniformly; all of them if there are not so many."""
    return draws.choice(entities, min(number, entities), replace=False).astype(np.int32)
