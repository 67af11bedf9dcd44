"""Base of every embedding model: two tables of rows, and several routes to the same score.

    score(h, r, t) = offset + weight(r) · similarity(point(h, r), t)

A model is a geometry and two maps: `tail_points` takes (h, r) to the point that tails are compared with, `head_points`
takes (r, t) to the one that heads are compared with. Negatives of a batch and the candidates of a ranking are then
pairs of two sets of points.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from secure_kg.data.graph import Side, TripleArray
from secure_kg.models.geometry import Geometry
from secure_kg.models.shapes import entity_width, initial_range, relation_width

_NO_TRIPLES = np.empty((0, 3), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class ModelSize:
    """How large a model is and which constants its scores take."""

    entities: int
    relations: int
    dim: int
    margin: float
    norm: int = 1  # of TransE and TransM; the other models ignore it
    train: TripleArray = field(default_factory=lambda: _NO_TRIPLES, repr=False)
    """Training triples, from which TransM takes its relation weights; the other models ignore them."""


class EmbeddingModel(nn.Module, ABC):
    """A shell that owns the rows; points come from the pure functions in the model's own file.

    Higher scores mean more plausible triples. Rows are arguments of the score methods, so callers gather each row once;
    relation rows come with what `relation_rows` adds to them.
    """

    name: str
    geometry: Geometry
    offset: float = 0.0

    def __init__(self, size: ModelSize, generator: torch.Generator) -> None:
        """`generator` is a CPU generator: the same seed gives the same rows whichever device the model moves to."""
        super().__init__()
        self.size = size
        bound = initial_range(size.margin, size.dim)

        def table(rows: int, width: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(rows, width).uniform_(-bound, bound, generator=generator))

        self.entity = table(size.entities, entity_width(self.name, size.dim))
        self.relation = table(size.relations, relation_width(self.name, size.dim))

    @abstractmethod
    def tail_points(self, h: Tensor, r: Tensor) -> Tensor:
        """h, r [..., width] to the points [..., entity width] that tails are compared with."""

    @abstractmethod
    def head_points(self, r: Tensor, t: Tensor) -> Tensor:
        """r, t [..., width] to the points [..., entity width] that heads are compared with."""

    def weights(self, r: Tensor) -> Tensor | None:
        """Fixed positive factors [...] of the similarity, by relation; None: 1."""
        return None

    def relation_rows(self, ids: Tensor, rows: Tensor) -> Tensor:
        """What the score methods take for relations `ids` [b] with rows [b, width]."""
        return rows

    def score(self, h: Tensor, r: Tensor, t: Tensor) -> Tensor:
        """Rows [..., width], broadcast together, to scores [...]."""
        return self._scores(self.geometry.alike(self.tail_points(h, r), t), self.weights(r))

    def score_tails(self, h: Tensor, r: Tensor, tails: Tensor) -> Tensor:
        """h [b, width], r [b, width] against candidates tails [m, width] that the batch shares, to scores [b, m].

        Or against tails [groups, m, width]: each group of ceil(b / groups) triples that follow each other has its own.
        """
        return self._scores(self._pairs(self.tail_points(h, r), tails), _column(self.weights(r)))

    def score_heads(self, heads: Tensor, r: Tensor, t: Tensor) -> Tensor:
        """Candidates heads [m, width] or [groups, m, width] against r [b, width], t [b, width], to scores [b, m]."""
        return self._scores(self._pairs(self.head_points(r, t), heads), _column(self.weights(r)))

    def query_points(self, triples: Tensor, side: Side) -> Tensor:
        """The points [b, width] with which candidates for that side of triples [b, 3] are compared."""
        head, relation, tail = triples.t()
        rows = self.relation_rows(relation, self.relation[relation])
        if side == "tail":
            return self.tail_points(self.entity[head], rows)
        return self.head_points(rows, self.entity[tail])

    def scores(self, triples: Tensor, side: Side) -> Tensor:
        """triples [b, 3] -> [b, entities]: every entity as that side of each triple."""
        relation = triples[:, 1]
        weights = self.weights(self.relation_rows(relation, self.relation[relation]))
        return self._scores(self.geometry.pairs(self.query_points(triples, side), self.entity), _column(weights))

    def _pairs(self, points: Tensor, candidates: Tensor) -> Tensor:
        if candidates.dim() == 2:
            return self.geometry.pairs(points, candidates)
        groups, rows = len(candidates), rows_per_group(len(points), len(candidates))
        filled = pad(points, (0, 0, 0, groups * rows - len(points)))
        pairs = self.geometry.pairs(filled.view(groups, rows, -1), candidates)
        return pairs.flatten(0, 1)[: len(points)]

    def _scores(self, similarity: Tensor, weights: Tensor | None) -> Tensor:
        return self.offset + (similarity if weights is None else weights * similarity)


def rows_per_group(rows: int, groups: int) -> int:
    """How many of a batch's rows share candidates; the last groups may have fewer."""
    return -(-rows // groups)


def _column(weights: Tensor | None) -> Tensor | None:
    return None if weights is None else weights[..., None]
