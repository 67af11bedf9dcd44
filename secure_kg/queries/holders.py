"""Who holds the relations of a query, and so whether it can be asked in one client's graph.

An atom lies in the graph of every client that holds its relation. An inverse relation belongs to its relation's
clients. A query is in-graph for a client that holds all its relations. It is cross-graph if no client does: then its
atoms lie in the graphs of at least two clients.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from secure_kg.queries.edges import Ids
from secure_kg.queries.form import IdQuery, QueryError, relations
from secure_kg.queries.structures import Structure, relation_columns

_BITS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Holders:
    """Bit k of words[relation, w]: client 64 w + k, counted from 0, holds the relation."""

    words: npt.NDArray[np.uint64]
    clients: int

    @classmethod
    def of(cls, held: Sequence[Iterable[int]], number: int) -> "Holders":
        """From the relations that each client holds; `number` relations in all."""
        words = np.zeros((number, -(-len(held) // _BITS)), dtype=np.uint64)
        for client, own in enumerate(held):
            chosen = np.unique(np.fromiter(own, dtype=np.int64))
            words[chosen, client // _BITS] |= np.uint64(1 << client % _BITS)
        return cls(words, len(held))

    def holders_of(self, query: IdQuery) -> list[int]:
        """The clients, from 0, that hold every relation of the query."""
        used = relations(query)
        if not used:
            raise QueryError("a query without a relation lies in no client's graph")
        common = np.bitwise_and.reduce(self.words[used], axis=0)
        return [k for k in range(self.clients) if int(common[k // _BITS]) >> k % _BITS & 1]

    def cross_graph(self, structure: Structure, rows: Ids) -> npt.NDArray[np.bool_]:
        """For each row of a table, whether no client holds all its relations, and every relation has a holder."""
        held = self.words[rows[:, relation_columns(structure)] // 2]  # [rows, atoms, words]
        alone: npt.NDArray[np.bool_] = np.any(np.bitwise_and.reduce(held, axis=1), axis=1)
        every: npt.NDArray[np.bool_] = np.all(np.any(held, axis=2), axis=1)
        return every & ~alone
