"""A graph as queries walk it: edges in both directions, grouped by entity and label.

A label is 2 r for relation r and 2 r + 1 for its inverse, so the label of the way back is one bit away. An edge
(h, r, t) stands at h under 2 r and at t under 2 r + 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from secure_kg.data.graph import TripleArray
from secure_kg.data.vocabulary import triple_keys
from secure_kg.foundation.errors import DataError

Ids = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]
Masks = npt.NDArray[np.uint8]
"""Of the graphs that have an edge or give an answer, one bit for each."""

TRAIN, VALID, TEST = 1, 2, 4
"""The bits of the stages of a graph, each of which has the edges of the one before."""
_OF_PART = (TRAIN | VALID | TEST, VALID | TEST, TEST)
"""Where the triples of train, valid and test lie."""


class Edges(NamedTuple):
    """Compressed rows, as compiled loops take them. A slot is one entity with one of its labels.

    The slots of entity e are slots[e] : slots[e + 1], in the order of their labels; slot s leads to
    targets[starts[s] : starts[s + 1]], which are sorted and different.
    """

    slots: Offsets
    labels: Ids
    starts: Offsets
    targets: Ids
    masks: Masks
    """In which graphs an edge lies, in the order of `targets`; all ones for a graph by itself."""
    nodes: Ids
    """Entities that have an edge."""
    every: int
    """The mask of all graphs."""


@dataclass(frozen=True, slots=True, eq=False)
class QueryGraph:
    """Edges over a vocabulary of entities and relations, not all of which need to occur."""

    edges: Edges
    entities: int
    relations: int

    @classmethod
    def of(cls, triples: TripleArray, entities: int, relations: int, masks: Masks | None = None) -> "QueryGraph":
        """From triples [n, 3] in ids and, if they are of several graphs, their masks [n]; repetitions count once."""
        triples = np.asarray(triples, dtype=np.int64).reshape(-1, 3)
        _check(triples, entities, relations)
        masks = np.ones(len(triples), dtype=np.uint8) if masks is None else masks
        heads, tails = triples[:, 0], triples[:, 2]
        both = np.concatenate(
            (
                np.column_stack((heads, 2 * triples[:, 1], tails)),
                np.column_stack((tails, 2 * triples[:, 1] + 1, heads)),
            )
        )
        every_key = triple_keys(both, entities, 2 * relations)
        order = np.argsort(every_key, kind="stable")
        keys, repeated = np.unique(every_key[order], return_index=True)
        slot_of_edge, targets = np.divmod(keys, max(entities, 1))
        slot, first = np.unique(slot_of_edge, return_index=True)
        owner, labels = np.divmod(slot, max(2 * relations, 1))
        edges = Edges(
            slots=np.searchsorted(owner, np.arange(entities + 1)).astype(np.int64),
            labels=labels.astype(np.int32),
            starts=np.append(first, len(targets)).astype(np.int64),
            targets=targets.astype(np.int32),
            masks=np.bitwise_or.reduceat(np.tile(masks, 2)[order], repeated) if len(keys) else masks,
            nodes=np.unique(owner).astype(np.int32),
            every=int(np.bitwise_or.reduce(masks, initial=1)),
        )
        return cls(edges, entities, relations)

    def __repr__(self) -> str:  # sizes only: triples are private and must not reach a log by accident
        return f"QueryGraph({self.entities} entities, {self.relations} relations, {len(self.edges.targets) // 2} edges)"


def _check(triples: TripleArray, entities: int, relations: int) -> None:
    if entities >= 2**31 or relations >= 2**30:
        raise DataError(f"{entities} entities and {relations} relations are too many for queries")
    for column, limit in ((0, entities), (1, relations), (2, entities)):
        if len(triples) and (triples[:, column].min() < 0 or triples[:, column].max() >= limit):
            raise DataError("a triple with an id outside of its vocabulary")


@dataclass(frozen=True, slots=True, eq=False)
class Stages:
    """One graph as it grows: train, then with valid, then with test as well, all over the same ids.

    `layered` has the edges of all of them with their masks (`TRAIN`, `VALID`, `TEST`), to answer on all three at once.
    """

    train: QueryGraph
    valid: QueryGraph
    test: QueryGraph
    layered: QueryGraph

    @classmethod
    def of(cls, parts: Sequence[TripleArray], entities: int, relations: int) -> "Stages":
        """From the triples of train, valid and test."""
        train, valid, test = parts
        every = np.concatenate((train, valid, test))
        masks = np.repeat(np.array(_OF_PART, dtype=np.uint8), [len(part) for part in parts])
        return cls(
            QueryGraph.of(train, entities, relations),
            QueryGraph.of(np.concatenate((train, valid)), entities, relations),
            QueryGraph.of(every, entities, relations),
            QueryGraph.of(every, entities, relations, masks),
        )
