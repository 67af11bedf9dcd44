"""A published split with the faults that published splits have had: triples in two parts, and at two clients."""

from pathlib import Path

import numpy as np

from secure_kg.data.partition import partition
from secure_kg.data.sources import load_source
from secure_kg.data.triples import PARTS

LEAKS_OWN, LEAKS_OTHER, REPEATED = 5, 3, 2


def write_archive(path: Path, clients: int, *, leaky: bool = True, untrained: bool = False) -> None:
    """Nations, divided by triples and then damaged at client 1; ids stand for names.

    `leaky`: its test part also has 5 triples of its own train and 3 of client 2's; its train part repeats 2 rows.
    `untrained`: its test part also has one triple with an entity of its own.
    """
    graphs = partition(load_source("nations"), clients, "triples", 0)
    entities = sorted({name for graph in graphs for name in graph.entities})
    relations = sorted({name for graph in graphs for name in graph.relations})
    arrays: dict[str, np.ndarray] = {"n_clients": np.array(clients)}
    for number, graph in enumerate(graphs):
        entity = np.array([entities.index(name) for name in graph.entities])
        relation = np.array([relations.index(name) for name in graph.relations])
        for part in PARTS:
            head, middle, tail = graph.part(part).T
            arrays[f"c{number}_{part}"] = np.column_stack((entity[head], relation[middle], entity[tail]))
    if leaky:
        own, other = arrays["c0_train"][:LEAKS_OWN], arrays["c1_train"][:LEAKS_OTHER]
        arrays["c0_test"] = np.concatenate((arrays["c0_test"], own, other))
        arrays["c0_train"] = np.concatenate((arrays["c0_train"], arrays["c0_train"][-REPEATED:]))
    if untrained:
        arrays["c0_test"] = np.concatenate((arrays["c0_test"], [[0, 0, len(entities)]]))
    for number in range(clients):
        together = np.concatenate([arrays[f"c{number}_{part}"] for part in PARTS])
        arrays |= {f"c{number}_ent": np.unique(together[:, [0, 2]]), f"c{number}_rel": np.unique(together[:, 1])}
    np.savez(path, **arrays)
