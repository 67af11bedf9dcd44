"""The rows that clients start from: the same for all who hold a name, and unknown to the server.

A row is drawn from its name and a seed that one client offers to the others (`protocols.common_seed`). That client
derives it from the run's seed and its own graph: the same data and the same seed give the same run again, and whoever
does not know the graph does not know the seed. If the rows followed from a public seed, the server could tell the names
behind the first means by comparing.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

from secure_kg.data.graph import ClientGraph
from secure_kg.federation.row_sum import Rows
from secure_kg.seeds import generator


def offered_seed(graph: ClientGraph, seed: int) -> bytes:
    """What a client offers: 32 bytes that nobody computes who lacks the graph."""
    state = hashlib.sha256(f"secure-kg/first rows/1/{seed}/".encode())
    for names in (graph.entities, graph.relations):
        state.update(len(names).to_bytes(8, "little"))
        for name in names:
            encoded = name.encode("utf-8", "surrogatepass")
            state.update(len(encoded).to_bytes(8, "little") + encoded)
    state.update(np.ascontiguousarray(graph.train, dtype="<i8").tobytes())
    return state.digest()


def first_rows(names: Sequence[str], seed: bytes, width: int, span: float) -> Rows:
    """Rows [names, width], uniform in ±span."""
    rows = np.empty((len(names), width), dtype=np.float32)
    for row, name in zip(rows, names, strict=True):
        digest = hashlib.sha256(seed + name.encode("utf-8", "surrogatepass")).hexdigest()
        row[:] = generator(0, "first row", digest).uniform(-span, span, size=width)
    return rows
