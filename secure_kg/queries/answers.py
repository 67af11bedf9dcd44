"""Exact answers of queries over a graph, by traversal, for any form and for whole tables of one structure.

Easy answers of a query are those that a smaller graph gives as well, hard ones those that only the larger graph gives.
Without negation every answer in the smaller graph is one in the larger. With it an answer can vanish as the graph
grows; such an answer is neither easy nor hard.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from secure_kg.queries.edges import TEST, TRAIN, VALID, Ids, Offsets, QueryGraph, Stages
from secure_kg.queries.form import IdQuery, QueryError
from secure_kg.queries.set_programs import set_program
from secure_kg.queries.structures import Structure, anchor_columns, as_row, columns, relation_columns
from secure_kg.queries.traversal import subtract, traverse


@dataclass(frozen=True, slots=True, eq=False)
class AnswerSets:
    """The answers of many queries, one after the other, each query's different and in no particular order."""

    starts: Offsets
    entities: Ids

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, number: int) -> Ids:
        if not 0 <= number < len(self):
            raise IndexError(number)
        return self.entities[self.starts[number] : self.starts[number + 1]]

    def __iter__(self) -> Iterator[Ids]:
        return (self[number] for number in range(len(self)))

    @property
    def counts(self) -> Offsets:
        return np.diff(self.starts)

    def without(self, others: "AnswerSets") -> "AnswerSets":
        """Query by query, the answers that `others` lacks."""
        return self._compared(others, False)

    def common(self, others: "AnswerSets") -> "AnswerSets":
        """Query by query, the answers that `others` has too."""
        return self._compared(others, True)

    def chosen(self, kept: npt.NDArray[np.bool_]) -> "AnswerSets":
        """The sets of some of the queries."""
        counts = self.counts
        entities = self.entities[np.repeat(kept, counts)]
        return AnswerSets(np.concatenate(([0], np.cumsum(counts[kept]))), entities)

    def _compared(self, others: "AnswerSets", keep_common: bool) -> "AnswerSets":
        if len(self) != len(others):
            raise ValueError(f"answers of {len(self)} and of {len(others)} queries")
        return AnswerSets(*subtract(self.starts, self.entities, others.starts, others.entities, keep_common))


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Answers of a larger graph, divided by whether the smaller one gives them."""

    easy: AnswerSets
    hard: AnswerSets

    @classmethod
    def between(cls, smaller: AnswerSets, larger: AnswerSets) -> "Judged":
        return cls(larger.common(smaller), larger.without(smaller))


@dataclass(frozen=True, slots=True, eq=False)
class StagedAnswers:
    """Answers of the same queries on the three stages of a graph."""

    train: AnswerSets
    valid: Judged
    """On train and valid together, against train alone."""
    test: Judged
    """On everything, against train and valid together."""


def answer_rows(graph: QueryGraph, structure: Structure, rows: Ids) -> AnswerSets:
    """The answers of every row of a table [n, columns] of entities and labels."""
    checked = check_rows(graph, structure, rows)
    starts, found, _ = traverse(graph.edges, set_program(structure), checked)
    return AnswerSets(starts, found)


def answers(graph: QueryGraph, query: IdQuery) -> Ids:
    """The answers of one query of any form, sorted."""
    structure, row = as_row(query)
    if not all(-(2**31) <= value < 2**31 for value in row):
        raise QueryError("an id outside of the graph's vocabulary")
    return np.sort(answer_rows(graph, structure, np.array([row], dtype=np.int32))[0])


def staged_answers(stages: Stages, structure: Structure, rows: Ids) -> StagedAnswers:
    """The answers on train, on train and valid, and on all triples, with their easy and hard parts."""
    checked = check_rows(stages.layered, structure, rows)
    starts, found, masks = traverse(stages.layered.edges, set_program(structure), checked)

    def where(given_by: int, but_not_by: int = 0) -> AnswerSets:
        kept = (masks & np.uint8(given_by | but_not_by)) == given_by
        return AnswerSets(np.concatenate(([0], np.cumsum(kept)))[starts], found[kept])

    return StagedAnswers(
        where(TRAIN),
        Judged(where(TRAIN | VALID), where(VALID, but_not_by=TRAIN)),
        Judged(where(VALID | TEST), where(TEST, but_not_by=VALID)),
    )


def check_rows(graph: QueryGraph, structure: Structure, rows: Ids) -> Ids:
    """The table as compiled loops take it. They check no bounds, so every id must be in range."""
    if rows.ndim != 2 or rows.shape[1] != columns(structure):
        raise QueryError(f"a table of shape {rows.shape} for queries of {columns(structure)} columns")
    limits = ((anchor_columns(structure), graph.entities), (relation_columns(structure), 2 * graph.relations))
    for chosen, limit in limits:
        ids = rows[:, chosen]
        if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= limit):
            raise QueryError("an id outside of the graph's vocabulary")
    return np.ascontiguousarray(rows, dtype=np.int32)
