"""Known answers of every query, as CSR: (h, r) -> tails and (r, t) -> heads.

Negative sampling and filtered ranking both ask "which candidates of this query are true?" for a batch at a time.
"""

from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from secure_kg.data.graph import Side, TripleArray

T = TypeVar("T", TripleArray, Tensor)


class KnownAnswers:
    """A CSR index from queries to their answers; memory grows with the triples, not with queries times entities."""

    def __init__(self, triples: TripleArray, relations: int, side: Side, device: torch.device) -> None:
        """`triples` [n, 3]; `relations` bounds the relation ids, so that (entity, relation) packs into one int64."""
        self.side = side
        self._relations = relations
        triples = np.unique(triples, axis=0)
        queries = _queries(triples, relations, side)
        order = np.argsort(queries, kind="stable")
        keys, counts = np.unique(queries, return_counts=True)
        starts = np.concatenate(([0], np.cumsum(counts)))[:-1]
        # A sentinel key with no answers: a query that is not in the index finds it, or a key that it does not equal.
        self._keys = torch.from_numpy(np.append(keys, np.iinfo(np.int64).max)).to(device)
        self._starts = torch.from_numpy(np.append(starts, 0)).to(device)
        self._counts = torch.from_numpy(np.append(counts, 0)).to(device)
        self._answers = torch.from_numpy(triples[order, 2 if side == "tail" else 0]).to(device)

    @property
    def all(self) -> Tensor:
        """The answers of all queries, one query after the other; `ranges` says where a query's own stand."""
        return self._answers

    def ranges(self, triples: Tensor) -> tuple[Tensor, Tensor]:
        """Where in `all` the answers to the queries of triples [b, 3] start [b], and how many there are [b]."""
        queries = _queries(triples, self._relations, self.side)
        group = torch.searchsorted(self._keys, queries)
        found = self._keys[group] == queries
        return self._starts[group], torch.where(found, self._counts[group], 0)

    def look_up(self, triples: Tensor) -> tuple[Tensor, Tensor]:
        """All answers to the queries of triples [b, 3]: their rows in the batch [k] and the entity ids [k]."""
        starts, counts = self.ranges(triples)
        rows = torch.repeat_interleave(torch.arange(len(triples), device=triples.device), counts)
        first = torch.cumsum(counts, 0) - counts
        offset = torch.arange(len(rows), device=triples.device) - first[rows]
        return rows, self._answers[starts[rows] + offset]


def _queries(triples: T, relations: int, side: Side) -> T:
    return triples[:, 0 if side == "tail" else 2] * relations + triples[:, 1]
