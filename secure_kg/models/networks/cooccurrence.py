"""The graph of NoGE: entities and relations of a client as nodes, joined where they stand in one train triple.

A triple (h, r, t) is a sentence of three tokens, and each of its six ordered pairs of tokens counts once: n(v, u). With
N = Σ n, p(v, u) = n(v, u) / N and p(v) = Σ_u p(v, u),

    A_vu = p(v, u) / p(v)   between two entities
    A_vu = p(v, u)          if one of the two is a relation
    A_vv is raised by 1     and then every row is divided by its sum

Reference: Nguyen et al., "Node Co-occurrence based Graph Neural Networks for Knowledge Graph Link Prediction", WSDM
2022, section 2. Where an entity is head and tail of one triple, it meets itself twice, as in the authors' code.

Entities come first, then relations. There are at most 6 entries for each train triple and one for each node: with
their transpose 24 bytes an entry, some 8 MB for the 50,000 triples and 14,000 nodes of a client of FB15k-237.
"""

import numpy as np

from secure_kg.data.graph import TripleArray
from secure_kg.models.networks.sparse import SparseMatrix


def cooccurrence(train: TripleArray, entities: int, relations: int) -> SparseMatrix:
    """The matrix [n, n] of n = entities + relations nodes."""
    size = entities + relations
    tokens = train + np.array([0, entities, 0], dtype=np.int64)
    ordered = [(a, b) for a in range(3) for b in range(3) if a != b]
    keys = np.concatenate([tokens[:, a] * size + tokens[:, b] for a, b in ordered])
    pairs, counts = np.unique(keys, return_counts=True)
    rows, columns = np.divmod(pairs, size)
    count = counts.astype(np.float64)
    of_row = np.bincount(rows, weights=count, minlength=size)
    between_entities = (rows < entities) & (columns < entities)
    values = count / np.where(between_entities, of_row[rows], max(1.0, count.sum()))
    nodes = np.arange(size, dtype=np.int64)
    rows, columns = np.concatenate((rows, nodes)), np.concatenate((columns, nodes))
    values = np.concatenate((values, np.ones(size)))
    return SparseMatrix(size, *_merged(rows, columns, values, size))


def _merged(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Entries at the same place as one, and every row divided by its sum."""
    places, which = np.unique(rows * size + columns, return_inverse=True)
    summed = np.bincount(which, weights=values)
    rows, columns = np.divmod(places, size)
    return rows, columns, summed / np.bincount(rows, weights=summed, minlength=size)[rows]
