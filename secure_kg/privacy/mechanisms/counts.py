"""A table of counts relation → tail under Gaussian noise: no embeddings, no training, blind to the head.

The control of every table of private link prediction. Without noise it has a tail MRR of .331 on FB15k-237; embeddings
that stay below the row of counts at the same ε are not worth their training.

A triple adds one to one cell, so the table has L2 sensitivity 1, and one full-batch release is all there is. Cells
below a threshold are set to zero, which is post-processing: without it, on a large graph, noise in the many empty cells
outranks small true counts.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from secure_kg.data.graph import Side
from secure_kg.foundation.errors import UserError
from secure_kg.privacy.accounting.releases import Release
from secure_kg.privacy.draws.noise import Grid, NoiseSource

_CELLS = Grid(sensitivity=1.0, coordinates=1)


@dataclass(frozen=True, slots=True)
class NoisedCounts:
    """Counts that may be seen. Scores tails for `FilteredRanking`."""

    table: Tensor
    """[relations, entities]."""

    def scores(self, triples: Tensor, side: Side) -> Tensor:
        """triples [b, 3] -> [b, entities]."""
        if side != "tail":
            raise UserError("the table of counts ranks tails only")
        return self.table[triples[:, 1]]


@dataclass(frozen=True, slots=True)
class Counts:
    """Noise of a cell, and a threshold in multiples of it."""

    noise: float
    threshold: float = 2.0

    def __post_init__(self) -> None:
        Release(self.noise)
        if not (math.isfinite(self.threshold) and self.threshold >= 0):
            raise UserError("the threshold of counts must not be negative")

    def releases(self) -> tuple[Release, ...]:
        """One, in all."""
        return (Release(self.noise),)

    def privatise(self, exact: Tensor, source: NoiseSource) -> NoisedCounts:
        """Exact counts [relations, entities] with noise on every cell."""
        noised = _CELLS.noised(exact, self.noise, source)
        below = noised < self.threshold * self.noise
        return NoisedCounts(noised.masked_fill_(below, 0.0).float())


def counted(triples: Tensor, relations: int, entities: int) -> Tensor:
    """Exact counts [relations, entities] of the tails of triples [b, 3]; private."""
    places = triples[:, 1] * entities + triples[:, 2]
    return torch.bincount(places, minlength=relations * entities).view(relations, entities).double()
