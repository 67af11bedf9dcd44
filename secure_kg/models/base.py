"""What every embedding model shares: two tables of rows, and three routes to the same score."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from secure_kg.models.shapes import entity_width, initial_range, relation_width


@dataclass(frozen=True, slots=True)
class ModelSize:
    """How large a model is and which constants its scores take."""

    entities: int
    relations: int
    dim: int
    margin: float
    norm: int = 1  # TransE's p; the other models ignore it


class EmbeddingModel(nn.Module, ABC):
    """A shell that owns the rows; scores come from the pure functions in the model's own file.

    Higher scores mean more plausible triples. Rows are arguments of the score methods, so callers gather each row once.
    """

    name: str

    def __init__(self, size: ModelSize, generator: torch.Generator) -> None:
        """`generator` is a CPU generator: the same seed gives the same rows whichever device the model moves to."""
        super().__init__()
        self.size = size
        bound = initial_range(size.margin, size.dim)

        def table(rows: int, width: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(rows, width).uniform_(-bound, bound, generator=generator))

        self.entity = table(size.entities, entity_width(self.name, size.dim))
        self.relation = table(size.relations, relation_width(self.name, size.dim))

    def scores(self, triples: Tensor, side: Literal["tail", "head"]) -> Tensor:
        """triples [b, 3] -> [b, entities]: every entity as that side of each triple."""
        head, relation, tail = triples.t()
        if side == "tail":
            return self.score_tails(self.entity[head], self.relation[relation], self.entity)
        return self.score_heads(self.entity, self.relation[relation], self.entity[tail])

    @abstractmethod
    def score(self, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
        """Rows [..., width], broadcast together, to scores [...]."""

    @abstractmethod
    def score_tails(self, h: Tensor, r: Tensor, tails: Tensor) -> Tensor:
        """h [b, width], r [b, width] against candidates tails [m, width] that the batch shares, to scores [b, m]."""

    @abstractmethod
    def score_heads(self, heads: Tensor, r: Tensor, t: Tensor) -> Tensor:
        """Candidates heads [m, width] that the batch shares against r [b, width], t [b, width], to scores [b, m]."""
