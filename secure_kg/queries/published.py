"""Published query sets: those of Query2box (Ren et al. 2020) and BetaE (Ren and Leskovec 2020), as `.npz` in ids.

    {type}_q                          (n, columns): one query a row, entities and labels (see `structures.py`)
    {type}_hard_ptr, {type}_hard_idx  (n + 1,), (m,): row j has the hard answers hard_idx[hard_ptr[j] : hard_ptr[j + 1]]
    {type}_n_all                      (n,): how many answers a query has, easy and hard

Answers may be missing, and are in BetaE's. Beside the file, `entities.tsv(.gz)` and `relations.tsv(.gz)` list the names
by id. Relation 2 k is the k-th relation there and 2 k + 1 its inverse, with `_reverse` at the end of its name.

The triples may stand in another folder and may have entities that the list has not: Query2box left out the held-out
triples of FB15k-237 whose entities nothing trains. They are left out here too, and counted.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from secure_kg.data.archives import CheckedArrays, names_of_ids, open_arrays
from secure_kg.data.triples import PARTS, NamedTriples, part_file, read_triples, shown
from secure_kg.foundation.errors import DataError
from secure_kg.queries.answers import AnswerSets
from secure_kg.queries.edges import Ids, Offsets, Stages
from secure_kg.queries.structures import STRUCTURES, anchor_columns, columns, relation_columns

_INVERSE = "_reverse"
_MOST = 2**31


@dataclass(frozen=True, slots=True)
class PublishedNames:
    """Entities and relations by id; of a relation and its inverse, the relation."""

    entities: tuple[str, ...]
    relations: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class PublishedQueries:
    """Queries of one type [n, columns]; hard answers, and numbers of all answers, where they were published."""

    kind: str
    rows: Ids
    hard: AnswerSets | None
    counts: Offsets | None


def read_names(folder: Path) -> PublishedNames:
    """The vocabularies of a published set."""
    entities, labels = names_of_ids(folder, "entities"), names_of_ids(folder, "relations")
    if entities is None or labels is None:
        raise DataError(f"{shown(folder)}: no entities.tsv.gz or no relations.tsv.gz")
    forward, inverse = labels[0::2], labels[1::2]
    if [name + _INVERSE for name in forward] != inverse:
        raise DataError(f"{shown(folder)}: relations must be listed in pairs, the second one as NAME{_INVERSE}")
    return PublishedNames(tuple(entities), tuple(forward))


def read_queries(path: Path, names: PublishedNames) -> dict[str, PublishedQueries]:
    """The queries of a file by type."""
    limits = len(names.entities), 2 * len(names.relations)
    with open_arrays(path) as arrays:
        kinds = [name.removesuffix("_q") for name in arrays.names if name.endswith("_q")]
        for kind in kinds:
            if kind not in STRUCTURES:
                raise arrays.refuse(f"{ascii(kind)[1:-1]}_q", f"is of no known type ({', '.join(STRUCTURES)})")
        return {kind: _of_kind(arrays, kind, *limits) for kind in kinds}


def _of_kind(arrays: CheckedArrays, kind: str, entities: int, labels: int) -> PublishedQueries:
    structure = STRUCTURES[kind]
    rows = arrays.integers(f"{kind}_q", (None, columns(structure)), max(entities, labels)).astype(np.int32)
    for chosen, limit in ((anchor_columns(structure), entities), (relation_columns(structure), labels)):
        if len(rows) and int(rows[:, chosen].max()) >= limit:
            raise arrays.refuse(f"{kind}_q", "holds an id that is not in the list of names")
    hard, counts = None, None
    if f"{kind}_hard_ptr" in arrays.names:
        starts = arrays.integers(f"{kind}_hard_ptr", (len(rows) + 1,), _MOST)
        found = arrays.integers(f"{kind}_hard_idx", (None,), entities).astype(np.int32)
        if starts[0] != 0 or starts[-1] != len(found) or (np.diff(starts) < 0).any():
            raise arrays.refuse(f"{kind}_hard_ptr", f"does not divide {kind}_hard_idx")
        hard = AnswerSets(starts, found)
    if f"{kind}_n_all" in arrays.names:
        counts = arrays.integers(f"{kind}_n_all", (len(rows),), _MOST)
    return PublishedQueries(kind, rows, hard, counts)


def read_stages(folder: Path, names: PublishedNames) -> tuple[Stages, int]:
    """The graph that published queries are about, and how many triples were left out for an entity without an id."""
    entity = {name: number for number, name in enumerate(names.entities)}
    relation = {name: number for number, name in enumerate(names.relations)}
    parts, left_out = [], 0
    for part in PARTS:
        path = part_file(folder, part)
        if path is None:
            raise DataError(f"{shown(folder)}: no {part}.tsv; train, valid and test are all needed")
        named = read_triples(path)
        triples = _ids(named, entity, relation)
        if len(triples) < len(named) and part == "train":
            raise DataError(f"{shown(path)}: {len(named) - len(triples)} triples with a name that the lists have not")
        left_out += len(named) - len(triples)
        parts.append(triples)
    return Stages.of(parts, len(names.entities), len(names.relations)), left_out


def _ids(named: NamedTriples, entity: dict[str, int], relation: dict[str, int]) -> Offsets:
    columns_of_ids = [
        np.fromiter((ids.get(name, -1) for name in column), dtype=np.int64, count=len(named))
        for ids, column in ((entity, named.heads), (relation, named.relations), (entity, named.tails))
    ]
    triples = np.column_stack(columns_of_ids)
    return triples[(triples >= 0).all(axis=1)]


def different_answers(published: PublishedQueries, hard: AnswerSets, counts: Offsets) -> Offsets:
    """The rows, by number, whose hard answers or number of answers are not as published."""
    equal = np.ones(len(published.rows), dtype=np.bool_)
    if published.hard is not None:
        lacking = published.hard.without(hard).counts + hard.without(published.hard).counts
        equal &= (lacking == 0) & (hard.counts == published.hard.counts)
    if published.counts is not None:
        equal &= counts == published.counts
    return np.flatnonzero(~equal)
