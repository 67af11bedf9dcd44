"""TransM: f(h, r, t) = margin − w_r ‖h + r − t‖_p, with p = 1 or 2 and w_r = 1 / log(hpt_r + tph_r).

Reference: Fan et al., "Transition-based Knowledge Graph Embedding with Relational Mapping Properties", PACLIC 2014;
used by DPKGE (Han et al., J. Web Semantics 2022). hpt_r is the mean number of heads per tail of relation r in the
training triples, tph_r that of tails per head. The weights are computed from the client's own triples, before training,
and are shared with nobody; a relation that maps many to many is held less strictly. The sum of the two means is at
least 2, so weights lie between 0 and 1 / log 2; a relation without training triples gets that.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from secure_kg.data.graph import TripleArray
from secure_kg.models import transe
from secure_kg.models.base import EmbeddingModel, ModelSize
from secure_kg.models.geometry import BY_NORM


def relation_weights(train: TripleArray, relations: int) -> npt.NDArray[np.float32]:
    """w [relations] from the different triples of train [n, 3]."""
    triples = np.unique(train, axis=0)
    number = np.bincount(triples[:, 1], minlength=relations)
    degree = np.full(relations, 2.0)
    seen = number > 0
    for column in (0, 2):
        ends = np.unique(triples[:, [1, column]], axis=0)
        different = np.bincount(ends[:, 0], minlength=relations)
        degree[seen] += number[seen] / different[seen] - 1.0
    return np.asarray(1.0 / np.log(degree), dtype=np.float32)


class TransM(EmbeddingModel):
    """Translations that count the less, the more ends a relation links to one end. A row's last value is its weight."""

    name = "TransM"
    weight: Tensor

    def __init__(self, size: ModelSize, generator: torch.Generator) -> None:
        super().__init__(size, generator)
        self.geometry, self.offset = BY_NORM[size.norm], size.margin
        weight = torch.from_numpy(relation_weights(size.train, size.relations))
        self.register_buffer("weight", weight, persistent=False)

    def relation_rows(self, ids: Tensor, rows: Tensor) -> Tensor:
        return torch.cat((rows, self.weight[ids][:, None].to(rows.dtype)), dim=-1)

    def weights(self, r: Tensor) -> Tensor:
        return r[..., -1]

    def tail_points(self, h: Tensor, r: Tensor) -> Tensor:
        return transe.tail_points(h, r[..., :-1])

    def head_points(self, r: Tensor, t: Tensor) -> Tensor:
        return transe.head_points(r[..., :-1], t)
