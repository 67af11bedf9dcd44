"""The control of link prediction: counts of tails and of heads by relation. It sees no other end and trains nothing.

A model with privacy that does not beat the counts of unrestricted statements is not worth its training. Under noise a
statement is in one cell of each table: sensitivity √2, one release of both.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from secure_kg.data.graph import ClientGraph, Side, TripleArray
from secure_kg.privacy.accounting.accountant import Budget, noise_for
from secure_kg.privacy.confidential.marking import Divided
from secure_kg.privacy.draws.noise import NoiseSource, SecretNoise
from secure_kg.privacy.mechanisms.counts import Counts, counted

_THRESHOLD = 1.0  # in deviations of a cell's noise, as `benchmarks.private_training` has it


@dataclass(frozen=True, slots=True)
class CountTables:
    """Scores for `FilteredRanking`."""

    tails: Tensor
    """[relations, entities]."""
    heads: Tensor

    def scores(self, triples: Tensor, side: Side) -> Tensor:
        """triples [b, 3] -> [b, entities]."""
        return (self.tails if side == "tail" else self.heads)[triples[:, 1]]


def count_tables(
    graph: ClientGraph, statements: Divided, budget: Budget | None, source: NoiseSource | None = None
) -> CountTables:
    """Counts over U, and with a budget over C too, under noise of that budget."""
    clear = _both(statements.unrestricted, graph)
    if budget is None:
        return CountTables(*(table.float() for table in clear))
    counts = Counts(math.sqrt(2.0) * noise_for(budget, 1), _THRESHOLD)
    drawn = SecretNoise() if source is None else source
    secret = _both(statements.confidential, graph)
    summed = [
        public.float() + counts.privatise(private, drawn).table for public, private in zip(clear, secret, strict=True)
    ]
    return CountTables(*summed)


def _both(triples: TripleArray, graph: ClientGraph) -> tuple[Tensor, Tensor]:
    """Exact counts of tails and of heads."""
    rows = torch.from_numpy(triples)
    sizes = len(graph.relations), len(graph.entities)
    return counted(rows, *sizes), counted(rows[:, [2, 1, 0]], *sizes)
