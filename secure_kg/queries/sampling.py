"""Drawn queries: in-graph from a client's own graph, cross-graph from all graphs together, for training or evaluation.

Whether a query is cross-graph is checked on the query that was drawn, row by row, before it counts. The same stream
over the same graph gives the same queries on every machine.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from secure_kg.foundation.errors import DataError
from secure_kg.queries.answers import Judged, answer_rows
from secure_kg.queries.draw_programs import draw_program
from secure_kg.queries.drawing import Condition, Words, draw_rows
from secure_kg.queries.edges import Ids, QueryGraph
from secure_kg.queries.holders import Holders
from secure_kg.queries.structures import columns, relation_columns, structure_of

Stream = np.random.SeedSequence
"""Of one purpose, from `secure_kg.foundation.seeds.seed_sequence`."""

_SMALLEST_BATCH, _LARGEST_BATCH = 256, 20_000
_FRUITLESS: Final = 20
"""Batches of `hard_queries` in a row without a new query before the graph counts as exhausted."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Queries of one type: rows [n, columns] of entities and labels, and one answer of each in the graph [n]."""

    kind: str
    rows: Ids
    answers: Ids


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Different queries of one type, each with at least one hard answer."""

    kind: str
    rows: Ids
    judged: Judged


class Sampler:
    """Draws from one graph; under `holders` only cross-graph queries."""

    def __init__(self, graph: QueryGraph, stream: Stream, holders: Holders | None = None) -> None:
        self._graph, self._holders = graph, holders
        self._state: Words = stream.generate_state(1, np.uint64).astype(np.uint64)
        if holders is not None and not holders.words[graph.edges.labels // 2].any(axis=1).all():
            raise DataError("a relation of the graph that no client holds")

    def draw(self, kind: str, number: int) -> Drawn:
        """The next `number` queries of a named type. The same query may come twice."""
        structure = structure_of(kind)
        chosen = np.array(relation_columns(structure), dtype=np.int64)
        if self._holders is None:
            holders = np.zeros((max(self._graph.relations, 1), 0), dtype=np.uint64)
        elif len(chosen) < 2:
            raise DataError(f"no query of type {kind} is cross-graph: it has one atom")
        else:
            holders = self._holders.words
        rows = np.empty((number, columns(structure)), dtype=np.int32)
        answers = np.empty(number, dtype=np.int32)
        edges, made = self._graph.edges, 0
        if len(edges.nodes):
            program, condition = draw_program(structure), Condition(chosen, holders)
            made = draw_rows(edges, program, condition, self._state, rows, answers)
        if made < number:
            where = "query" if self._holders is None else "cross-graph query"
            raise DataError(f"no {where} of type {kind} was found in a graph of {len(edges.targets) // 2} edges")
        return Drawn(kind, rows, answers)


def hard_queries(sampler: Sampler, kind: str, number: int, smaller: QueryGraph, larger: QueryGraph) -> Evaluation:
    """`number` different queries that the larger graph answers better than the smaller one.

    The sampler draws from the larger graph, or from anything else over the same ids.
    """
    structure = structure_of(kind)
    kept: dict[bytes, Ids] = {}
    fruitless = 0
    while len(kept) < number:
        size = min(max(2 * (number - len(kept)), _SMALLEST_BATCH), _LARGEST_BATCH)
        rows = sampler.draw(kind, size).rows
        hard = answer_rows(larger, structure, rows).without(answer_rows(smaller, structure, rows))
        before = len(kept)
        for row in rows[hard.counts > 0]:
            kept.setdefault(row.tobytes(), row)
        fruitless = 0 if len(kept) > before else fruitless + 1
        if fruitless == _FRUITLESS:
            raise DataError(f"{len(kept)} queries of type {kind} with hard answers were found; {number} were asked for")
    chosen = np.array(list(kept.values())[:number], dtype=np.int32).reshape(number, columns(structure))
    judged = Judged.between(answer_rows(smaller, structure, chosen), answer_rows(larger, structure, chosen))
    return Evaluation(kind, chosen, judged)
