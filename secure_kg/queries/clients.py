"""Clients' graphs over common ids, for drawing queries within each of them and across them.

Only whoever has all triples can do this: it is for experiments, as is dividing a public graph among clients.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from secure_kg.data.graph import ClientGraph
from secure_kg.data.pooling import Pool, pool
from secure_kg.data.triples import PARTS
from secure_kg.data.vocabulary import Vocabulary
from secure_kg.queries.edges import Stages
from secure_kg.queries.holders import Holders


@dataclass(frozen=True, slots=True, eq=False)
class QueryClients:
    """The stages of all graphs together and of each client's own, in the ids of the common vocabularies."""

    entities: Vocabulary
    relations: Vocabulary
    together: Stages
    own: tuple[Stages, ...]
    holders: Holders

    @classmethod
    def of(cls, graphs: Sequence[ClientGraph]) -> "QueryClients":
        return cls.of_pool(pool(graphs))

    @classmethod
    def of_pool(cls, pooled: Pool) -> "QueryClients":
        whole = pooled.graph
        size = len(whole.entities), len(whole.relations)
        held = [np.unique(np.concatenate([one.in_pool(part)[:, 1] for part in PARTS])) for one in pooled.members]
        return cls(
            whole.entities,
            whole.relations,
            Stages.of([whole.part(part) for part in PARTS], *size),
            tuple(Stages.of([one.in_pool(part) for part in PARTS], *size) for one in pooled.members),
            Holders.of(held, size[1]),
        )

    def __repr__(self) -> str:
        return f"QueryClients({len(self.own)} clients, {len(self.entities)} entities, {len(self.relations)} relations)"
