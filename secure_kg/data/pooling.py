"""All clients' graphs as one, for the setting that gives up privacy (FedE, section 3.2, "Entire").

Names decide what is the same: an entity or relation that several clients know becomes one row. A train triple that
several clients hold counts once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from secure_kg.data.graph import ClientGraph, Part, TripleArray
from secure_kg.data.triples import PARTS
from secure_kg.data.vocabulary import Vocabulary, distinct, triple_keys

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Member:
    """One client in the pool: its own graph, and for each of its local ids the id in the pool."""

    graph: ClientGraph
    entities: Ids
    relations: Ids

    def in_pool(self, part: Part) -> TripleArray:
        """The client's triples of that part in the pool's ids, shape (n, 3)."""
        local = self.graph.part(part)
        return np.column_stack((self.entities[local[:, 0]], self.relations[local[:, 1]], self.entities[local[:, 2]]))


@dataclass(frozen=True, slots=True)
class Pool:
    """`graph` holds the different triples of all members, part by part."""

    graph: ClientGraph
    members: tuple[Member, ...]
    trained_elsewhere: int
    """Test triples of one client that stand in another's train part: trained on here, as in every federation."""


def pool(graphs: Sequence[ClientGraph]) -> Pool:
    entities, relations = (_union([getattr(graph, kind) for graph in graphs]) for kind in ("entities", "relations"))
    entity_id = {name: number for number, name in enumerate(entities)}
    relation_id = {name: number for number, name in enumerate(relations)}
    members = tuple(
        Member(graph, _ids(graph.entities, entity_id), _ids(graph.relations, relation_id)) for graph in graphs
    )
    size = len(entities), len(relations)
    train, valid, test = (distinct(np.concatenate([one.in_pool(part) for one in members]), *size)[0] for part in PARTS)
    trained = triple_keys(train, *size)
    elsewhere = sum(int(np.isin(triple_keys(one.in_pool("test"), *size), trained).sum()) for one in members)
    return Pool(ClientGraph(entities, relations, train, valid, test), members, elsewhere)


def _union(vocabularies: Sequence[Vocabulary]) -> Vocabulary:
    return tuple(sorted(set().union(*vocabularies)))


def _ids(names: Vocabulary, ids: dict[str, int]) -> Ids:
    return np.fromiter(map(ids.__getitem__, names), dtype=np.int64, count=len(names))
