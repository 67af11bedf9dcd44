"""Trained models of all kinds as one interface: scores of candidates, scores of triples, likeness of entities.

An encoder of queries scores a triple as the query with one projection: tails along the relation, heads along its
inverse, which has a row of its own. So its score of a triple depends on the side that is asked for.
"""

from abc import ABC, abstractmethod
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from secure_kg.data.graph import Side
from secure_kg.evaluation import ranking
from secure_kg.foundation.errors import UserError
from secure_kg.fusion.scores import FusedScorer, ScorePair, Weights
from secure_kg.models.base import EmbeddingModel
from secure_kg.models.geometry import DOT
from secure_kg.models.networks.base import Decoder, Nodes, NodeScorer
from secure_kg.models.queries.model import QueryModel
from secure_kg.models.queries.scoring import alike, pairs
from secure_kg.queries.structures import STRUCTURES

Tables = dict[str, npt.NDArray[np.float32]]
COSINE: Final = "cosine"
DISTANCE: Final = "minus distance"
"""The model's own, of two rows."""


class Scorer(ABC):
    """A trained model of one client's graph. Higher scores mean more plausible triples."""

    name: str
    likeness: str
    """What `like` computes, in words."""

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """Where its rows are; triples come there, and scores are there."""

    @property
    def ranked(self) -> "EmbeddingModel | ranking.Scorer":
        """What the filtered ranking takes: a model itself has faster routes."""
        return self

    @abstractmethod
    def scores(self, triples: Tensor, side: Side) -> Tensor:
        """triples [b, 3] -> [b, entities]: every entity as that side of each triple."""

    @abstractmethod
    def of_triples(self, triples: Tensor, side: Side) -> Tensor:
        """triples [b, 3] -> [b], as an answer on that side."""

    @abstractmethod
    def like(self, entity: int) -> Tensor:
        """How much every entity [n] is like this one; the largest are the nearest."""

    @abstractmethod
    def tables(self) -> Tables:
        """Rows and whatever else the scores are made of."""


class EmbeddingScorer(Scorer):
    """A model of embeddings."""

    def __init__(self, model: EmbeddingModel) -> None:
        self.model, self.name = model, model.name
        self.likeness = COSINE if model.geometry is DOT else DISTANCE

    @property
    def device(self) -> torch.device:
        return self.model.entity.device

    @property
    def ranked(self) -> EmbeddingModel:
        return self.model

    def scores(self, triples: Tensor, side: Side) -> Tensor:
        return self.model.scores(triples, side)

    def of_triples(self, triples: Tensor, side: Side) -> Tensor:
        head, relation, tail = triples.t()
        rows = self.model.relation_rows(relation, self.model.relation[relation])
        return self.model.score(self.model.entity[head], rows, self.model.entity[tail])

    def like(self, entity: int) -> Tensor:
        rows = self.model.entity
        if self.likeness == COSINE:
            return cosine_similarity(rows[entity], rows, dim=-1)
        return self.model.geometry.pairs(rows[entity : entity + 1], rows)[0]

    def tables(self) -> Tables:
        named = {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}
        return {name: value.detach().cpu().numpy() for name, value in named.items()}


class QueryScorer(Scorer):
    """An encoder of logical queries, asked queries with one projection. Scores are not scaled: no order needs it."""

    def __init__(self, model: QueryModel) -> None:
        self.model, self.name = model, model.size.encoder
        self.likeness = COSINE if model.size.compares == "dot" else DISTANCE

    @property
    def device(self) -> torch.device:
        return self.model.rows.device

    def scores(self, triples: Tensor, side: Side) -> Tensor:
        return self.model.scores(STRUCTURES["1p"], _queries(triples, side))

    def of_triples(self, triples: Tensor, side: Side) -> Tensor:
        points = self.model.points(STRUCTURES["1p"], _queries(triples, side))
        return alike(points, self.model.entity[triples[:, 2 if side == "tail" else 0]], self.model.size.compares)

    def like(self, entity: int) -> Tensor:
        rows = self.model.entity
        if self.likeness == COSINE:
            return cosine_similarity(rows[entity], rows, dim=-1)
        return pairs(rows[None, entity : entity + 1], rows, self.model.size.compares)[0]

    def tables(self) -> Tables:
        """Relations have two rows each: the way there and the way back."""
        rows, entities = self.model.rows.detach().cpu().numpy(), self.model.size.entities
        operators = self.model.operators.detach().cpu().numpy()
        return {"entity": rows[:entities], "relation": rows[entities:], "operators": operators}


class NetworkScorer(Scorer):
    """A graph network: encoded rows of the client's own graph, and the decoder that compares them."""

    likeness = COSINE

    def __init__(self, name: str, nodes: Nodes, decoder: Decoder) -> None:
        self.name, self.described = name, decoder.described
        self._nodes, self._decoder = nodes, decoder

    @property
    def device(self) -> torch.device:
        return self._nodes.entity.device

    def scores(self, triples: Tensor, side: Side) -> Tensor:
        return NodeScorer(self._nodes, self._decoder).scores(triples, side)

    def of_triples(self, triples: Tensor, side: Side) -> Tensor:
        return self._decoder.of_triples(self._nodes, triples)

    def like(self, entity: int) -> Tensor:
        return cosine_similarity(self._nodes.entity[entity], self._nodes.entity, dim=-1)

    def tables(self) -> Tables:
        """Encoded rows, and the decoder's parameters."""
        decoder = {f"decoder.{name}": value.cpu().numpy() for name, value in self._decoder.state_dict().items()}
        rows = {"entity": self._nodes.entity, "relation": self._nodes.relation}
        return {**{name: value.cpu().numpy() for name, value in rows.items()}, **decoder}


def _queries(triples: Tensor, side: Side) -> Tensor:
    """Rows of the structure 1p: the entity that is given, and the label of the way from it."""
    head, relation, tail = triples.t()
    return torch.stack((head, 2 * relation) if side == "tail" else (tail, 2 * relation + 1), dim=1)


class FusedPairScorer(Scorer):
    """A federated model joined with the one that the client trained alone."""

    def __init__(self, single: EmbeddingModel, federated: EmbeddingModel, weights: Weights) -> None:
        self.name = f"{federated.name}, fused"
        self.likeness = ""
        self._models, self._weights = (single, federated), weights

    @property
    def device(self) -> torch.device:
        return self._models[0].entity.device

    def scores(self, triples: Tensor, side: Side) -> Tensor:
        return FusedScorer(ScorePair(*self._models), self._weights).scores(triples, side)

    def of_triples(self, triples: Tensor, side: Side) -> Tensor:
        single, federated = (EmbeddingScorer(model).of_triples(triples, side).double() for model in self._models)
        return self._weights.single * single + self._weights.federated * federated + self._weights.bias

    def like(self, entity: int) -> Tensor:
        raise UserError("a fused model has two rows for each entity; ask either of its runs for similar ones")

    def tables(self) -> Tables:
        raise UserError("a fused model is two models with weights; export either of its runs")
