"""Published federated splits as `.npz`: who holds which triple was decided by a paper's authors, and is kept.

    n_clients                          scalar
    c{i}_train, c{i}_valid, c{i}_test  (n, 3): head, relation, tail in global ids, i = 0 .. n_clients - 1
    c{i}_ent, c{i}_rel                 (m,): the global ids that client i knows

Other arrays are ignored. Names come from `entities.tsv(.gz)` and `relations.tsv(.gz)` beside the file, lines
`id<TAB>name` with ids 0, 1, 2, ...; without them, the decimal id is the name. Client 1 here is c0 in the file.

`archives.py` checks everything before it is used, and nothing is ever unpickled.
"""

import dataclasses
import re
from pathlib import Path

import numpy as np

from secure_kg.data.archives import CheckedArrays, Ids, names_of_ids, open_arrays
from secure_kg.data.graph import ClientGraph
from secure_kg.data.soundness import trained_elsewhere
from secure_kg.data.triples import PARTS
from secure_kg.data.vocabulary import Namer, client_graph

_MOST_IDS = 2**31  # with no list of names beside the file, ids are only bounded by this


def read_federated(path: Path) -> tuple[ClientGraph, ...]:
    """The clients in order, exactly as published: rows keep their order, repetitions and leaks stay.

    Here all clients' parts are at hand, so each graph's `origin` counts what of it other clients train on.
    """
    entities, relations = (names_of_ids(path.parent, kind) for kind in ("entities", "relations"))
    with open_arrays(path) as arrays:
        return _clients(arrays, entities, relations)


def _clients(arrays: CheckedArrays, entities: list[str] | None, relations: list[str] | None) -> tuple[ClientGraph, ...]:
    count = int(arrays.integers("n_clients", (), _MOST_IDS))
    if count < 1:
        raise arrays.refuse("n_clients", "is 0")
    for name in arrays.names:
        if (match := re.match(r"c([0-9]{1,9})_", name)) and int(match[1]) >= count:
            raise arrays.refuse(name, f"belongs to no client: n_clients is {count}")
    limits = [_MOST_IDS if names is None else len(names) for names in (entities, relations)]
    clients = [_parts(arrays, number, limits) for number in range(count)]
    entity_name: Namer = str if entities is None else entities.__getitem__
    relation_name: Namer = str if relations is None else relations.__getitem__
    return tuple(
        dataclasses.replace(client_graph(entity_name, relation_name, *parts), origin=origin)
        for parts, origin in zip(clients, trained_elsewhere(clients), strict=True)
    )


def _parts(arrays: CheckedArrays, number: int, limits: list[int]) -> list[Ids]:
    """Train, valid and test of one client in global ids."""
    parts = [arrays.integers(f"c{number}_{part}", (None, 3), max(limits)) for part in PARTS]
    together = np.concatenate(parts)
    for kind, column, limit in (("ent", [0, 2], limits[0]), ("rel", [1], limits[1])):
        own = arrays.integers(f"c{number}_{kind}", (None,), limit)
        if not np.array_equal(np.sort(own), np.unique(together[:, column])):
            raise arrays.refuse(f"c{number}_{kind}", "does not list each id of the client's triples exactly once")
    return parts
