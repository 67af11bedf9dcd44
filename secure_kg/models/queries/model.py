"""A query model: one table of rows, entities first and then labels of relations, and one vector of operators."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from secure_kg.models.queries.encoder import Encoder, encode
from secure_kg.models.queries.registry import bound_encoder, first_operators
from secure_kg.models.queries.scoring import pairs
from secure_kg.models.queries.shapes import EncoderShape, Score, encoder_kind, initial_span
from secure_kg.queries.structures import Structure


@dataclass(frozen=True, slots=True)
class QueryModelSize:
    """How large a model is, and how it encodes and scores."""

    entities: int
    relations: int
    encoder: str
    shape: EncoderShape
    score: Score = "usual"

    @property
    def compares(self) -> Score:
        """The score, the usual one resolved."""
        return encoder_kind(self.encoder).score if self.score == "usual" else self.score

    @property
    def rows(self) -> int:
        """One for each entity, two for each relation: the way there and the way back."""
        return self.entities + 2 * self.relations


class QueryModel(nn.Module):
    """Owns the parameters; an encoder is bound to the operators when it is asked for."""

    def __init__(self, size: QueryModelSize, rows: torch.Generator, operators: torch.Generator) -> None:
        """CPU generators: the same seeds give the same model on every device. Clients share that of the operators."""
        super().__init__()
        self.size = size
        span = initial_span(size.shape.dim)
        self.rows = nn.Parameter(torch.empty(size.rows, size.shape.dim).uniform_(-span, span, generator=rows))
        self.operators = nn.Parameter(first_operators(size.encoder, size.shape, operators))

    @property
    def entity(self) -> Tensor:
        """Rows of entities [n, d]."""
        return self.rows[: self.size.entities]

    def encoder(self) -> Encoder:
        """Over the operators as they are now."""
        return bound_encoder(self.size.encoder, self.size.shape, self.operators)

    def points(self, structure: Structure, ids: Tensor) -> Tensor:
        """Points [b, k, d] of queries ids [b, columns] of one structure, in entities and labels."""
        first = self.size.entities
        return encode(
            self.encoder(),
            structure,
            lambda column: self.rows[ids[:, column]],
            lambda column: self.rows[first + ids[:, column]],
        )

    def scores(self, structure: Structure, ids: Tensor) -> Tensor:
        """[b, entities]: every entity as an answer to each query, in the order of the score but not scaled."""
        return pairs(self.points(structure, ids), self.entity, self.size.compares)
