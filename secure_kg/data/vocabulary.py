"""Names to ids and back. A vocabulary is the sorted tuple of names that occur; an id is a position in it.

So ids depend on the set of names only, not on the order of a file, and two machines agree on them.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from secure_kg.data.graph import ClientGraph, TripleArray
from secure_kg.data.triples import NamedTriples
from secure_kg.foundation.errors import DataError

Vocabulary = tuple[str, ...]
Namer = Callable[[int], str]
"""The name of an id: `vocabulary.__getitem__`, or `str` where ids are the names."""


def encode(parts: Sequence[NamedTriples]) -> tuple[Vocabulary, Vocabulary, list[TripleArray]]:
    """Entities, relations and, for each part in order, its triples as ids, shape (n, 3)."""
    entities = tuple(sorted(set().union(*(part.heads for part in parts), *(part.tails for part in parts))))
    relations = tuple(sorted(set().union(*(part.relations for part in parts))))
    entity_id = {name: number for number, name in enumerate(entities)}
    relation_id = {name: number for number, name in enumerate(relations)}

    def column(names: tuple[str, ...], ids: dict[str, int]) -> npt.NDArray[np.int64]:
        return np.fromiter(map(ids.__getitem__, names), dtype=np.int64, count=len(names))

    return (
        entities,
        relations,
        [
            np.column_stack(
                (column(part.heads, entity_id), column(part.relations, relation_id), column(part.tails, entity_id))
            )
            for part in parts
        ],
    )


def decode(entities: Vocabulary, relations: Vocabulary, triples: TripleArray) -> NamedTriples:
    """The inverse of `encode` for one part."""
    entity, relation = np.array(entities, dtype=object), np.array(relations, dtype=object)
    return NamedTriples(
        tuple(entity[triples[:, 0]].tolist()),
        tuple(relation[triples[:, 1]].tolist()),
        tuple(entity[triples[:, 2]].tolist()),
    )


def compact(
    entity_name: Namer, relation_name: Namer, parts: Sequence[TripleArray]
) -> tuple[Vocabulary, Vocabulary, list[TripleArray]]:
    """Renumber `parts` so that their vocabularies hold exactly the names that occur in them, sorted.

    The old ids may be in any order; different ids must have different names.
    """
    together = np.concatenate(parts) if parts else np.empty((0, 3), np.int64)
    entity_names, old_entities, entity_rank = _ranked(entity_name, together[:, [0, 2]])
    relation_names, old_relations, relation_rank = _ranked(relation_name, together[:, 1])
    renumbered = [np.empty_like(part, dtype=np.int64) for part in parts]
    for new, part in zip(renumbered, parts, strict=True):
        new[:, [0, 2]] = entity_rank[np.searchsorted(old_entities, part[:, [0, 2]])]
        new[:, 1] = relation_rank[np.searchsorted(old_relations, part[:, 1])]
    return entity_names, relation_names, renumbered


def client_graph(
    entity_name: Namer, relation_name: Namer, train: TripleArray, valid: TripleArray, test: TripleArray
) -> ClientGraph:
    """One client's graph from its triples in a larger vocabulary; of that, only the client's own names remain."""
    own_entities, own_relations, parts = compact(entity_name, relation_name, (train, valid, test))
    return ClientGraph(own_entities, own_relations, *parts)


def triple_keys(triples: TripleArray, entities: int, relations: int) -> npt.NDArray[np.int64]:
    """One integer for each triple, shape (n,), equal exactly where triples are equal and ordered as they are."""
    if entities * entities * relations > np.iinfo(np.int64).max:
        raise DataError(f"{entities} entities and {relations} relations are too many to number their triples")
    keys: npt.NDArray[np.int64] = (triples[:, 0] * relations + triples[:, 1]) * entities + triples[:, 2]
    return keys


def distinct(triples: TripleArray, entities: int, relations: int) -> tuple[TripleArray, int]:
    """The different triples, sorted, and how many repetitions were removed."""
    _, first = np.unique(triple_keys(triples, entities, relations), return_index=True)
    return triples[first], len(triples) - len(first)


def _ranked(
    name: Namer, used: npt.NDArray[np.int64]
) -> tuple[Vocabulary, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Sorted names of the ids in `used`; these ids, sorted; and for each of them the position of its name."""
    old = np.unique(used)
    chosen = [name(number) for number in old.tolist()]
    order = sorted(range(len(chosen)), key=chosen.__getitem__)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return tuple(chosen[position] for position in order), old, rank
