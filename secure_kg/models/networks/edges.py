"""Edges of a client's own graph as an attention encoder walks them, sorted by the node that they lead to.

A triple (h, r, t) is an edge of t, from h and of kind r. Two triples (h, r, x), (x, s, t) make a 2-hop edge of t, from
h and of the kind r + s, whose vector is the sum of both relations' (Nathani et al., ACL 2019, section 3.2). There is
one for each pair of h and t that no edge joins, over the lowest x, then the lowest r and s; none from a node to itself.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from secure_kg.data.graph import TripleArray

_PATHS: Final = 4_000_000
"""Paths of two edges that are looked at together; a single node may have more."""
_Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Edges:
    """Sorted by node: those of node i stand at starts[i] to starts[i + 1].

    Memory: 24 bytes for an edge and 16 for a kind; there are at most relations + relations² kinds.
    """

    starts: Tensor
    """[nodes + 1]."""
    nodes: Tensor
    """[edges]: the node that each leads to."""
    sources: Tensor
    """[edges]: the node that each comes from."""
    kinds: Tensor
    """[edges]: a row of `relations`."""
    relations: Tensor
    """[kinds, 2]: the relations whose vectors a kind adds up; the number of relations stands for none."""

    def to(self, device: torch.device) -> "Edges":
        """The same on a device."""
        return Edges(*(getattr(self, name).to(device) for name in self.__dataclass_fields__))


def edges_of(train: TripleArray, nodes: int, relations: int, most: int, draws: np.random.Generator) -> Edges:
    """Edges of train triples [n, 3], each triple once, and 2-hop edges: at most `most` of each node, drawn if more."""
    triples = np.unique(train, axis=0)
    single = np.column_stack((triples[:, [2, 0, 1]], np.full(len(triples), relations)))
    found = np.concatenate((single, _two_hops(triples, nodes, most, draws))) if most else single
    found = found[np.lexsort(found.T[::-1])]
    names, kinds = np.unique(found[:, 2] * (relations + 1) + found[:, 3], return_inverse=True)
    starts = np.concatenate(([0], np.cumsum(np.bincount(found[:, 0], minlength=nodes))))
    arrays = starts, found[:, 0], found[:, 1], kinds.reshape(-1), np.column_stack(np.divmod(names, relations + 1))
    return Edges(*(torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64)) for array in arrays))


def _two_hops(triples: TripleArray, nodes: int, most: int, draws: np.random.Generator) -> _Ids:
    """[edges, 4]: node, source, and the two relations on the way from the source."""
    by_tail = triples[np.lexsort((triples[:, 1], triples[:, 0], triples[:, 2]))]
    starts = np.concatenate(([0], np.cumsum(np.bincount(by_tail[:, 2], minlength=nodes))))
    joined = np.unique(triples[:, 2] * nodes + triples[:, 0])
    before = np.diff(starts)[by_tail[:, 0]]  # edges that lead to where the second edge of a path begins
    blocks = np.cumsum(before) // _PATHS
    # A block ends with a node, so that all paths to a node are in one block.
    blocks = blocks[starts[1:][by_tail[:, 2]] - 1]
    found = [np.empty((0, 4), dtype=np.int64)]
    for block in np.unique(blocks):
        second = np.flatnonzero(blocks == block)
        paths = np.repeat(second, before[second])
        offset = np.arange(len(paths)) - np.repeat(np.cumsum(before[second]) - before[second], before[second])
        first = starts[by_tail[paths, 0]] + offset
        node, source = by_tail[paths, 2], by_tail[first, 0]
        new = (node != source) & ~np.isin(node * nodes + source, joined)
        columns = node, source, by_tail[paths, 0], by_tail[first, 1], by_tail[paths, 1]
        walked = np.column_stack([column[new] for column in columns])
        walked = walked[np.lexsort(walked.T[::-1])]
        _, one = np.unique(walked[:, 0] * nodes + walked[:, 1], return_index=True)
        found.append(_at_most(walked[one][:, [0, 1, 3, 4]], most, draws))
    return np.concatenate(found)


def _at_most(walked: _Ids, most: int, draws: np.random.Generator) -> _Ids:
    """`most` of each node's edges, all alike; sorted by node."""
    _, starts, counts = np.unique(walked[:, 0], return_index=True, return_counts=True)
    if not len(counts) or counts.max() <= most:
        return walked
    shuffled = walked[np.lexsort((draws.random(len(walked)), walked[:, 0]))]
    place = np.arange(len(walked)) - np.repeat(starts, counts)
    return shuffled[place < most]
