"""Answers of a table of queries by traversal: the compiled loop.

Sets are lists of different entities. A mark per entity, one number for each set that was ever built, tells in one look
whether an entity is in a set, and is never wiped.
"""

import numpy as np

from secure_kg.kernels.compiling import compiled
from secure_kg.queries.edges import Edges, Ids, Offsets
from secure_kg.queries.set_programs import SetProgram, SetStep

_FETCH, _ANCHOR, _PROJECT = int(SetStep.FETCH), int(SetStep.ANCHOR), int(SetStep.PROJECT)
_INTERSECT, _UNION = int(SetStep.INTERSECT), int(SetStep.UNION)  # with the difference between them


@compiled
def slot_of(edges: Edges, entity: int, label: int) -> int:
    """The slot of an entity under a label; −1 if it has none."""
    low, end = edges.slots[entity], edges.slots[entity + 1]
    high = end
    while low < high:
        middle = (low + high) >> 1
        if edges.labels[middle] < label:
            low = middle + 1
        else:
            high = middle
    return low if low < end and edges.labels[low] == label else -1


@compiled
def _project(edges: Edges, source: Ids, label: int, into: Ids, marks: Offsets, mark: int) -> int:
    size = 0
    for entity in source:
        slot = slot_of(edges, entity, label)
        if slot >= 0:
            for place in range(edges.starts[slot], edges.starts[slot + 1]):
                target = edges.targets[place]
                if marks[target] != mark:
                    marks[target] = mark
                    into[size] = target
                    size += 1
    return size


@compiled
def _combine(step: int, one: Ids, other: Ids, into: Ids, marks: Offsets, mark: int) -> int:
    """The intersection, difference or union of two sets; returns its size."""
    size = 0
    if step == _UNION:
        for entity in one:
            marks[entity] = mark
            into[size] = entity
            size += 1
        for entity in other:
            if marks[entity] != mark:
                into[size] = entity
                size += 1
        return size
    for entity in other:
        marks[entity] = mark
    for entity in one:
        if (marks[entity] == mark) == (step == _INTERSECT):
            into[size] = entity
            size += 1
    return size


@compiled
def _run(edges: Edges, program: SetProgram, row: Ids, stack: Ids, place: Offsets, marks: Offsets) -> int:
    """Runs the program for one row; returns the size of the set, which is in stack[place[0]].

    stack [depth + 1, entities]; place [depth + 1] says which of its rows is at which height, the last being free.
    marks [entities + 1]: the last entry is the number of the newest mark.
    """
    sizes = np.zeros(len(place), np.int64)
    top, spare = -1, len(place) - 1
    for turn in range(len(program.steps)):
        step, first, second = program.steps[turn]
        marks[-1] += 1
        if step == _FETCH:
            top += 1
            slot = slot_of(edges, row[first], row[second])
            sizes[top] = 0
            if slot >= 0:
                begin = edges.starts[slot]
                sizes[top] = edges.starts[slot + 1] - begin
                for number in range(sizes[top]):
                    stack[place[top], number] = edges.targets[begin + number]
        elif step == _ANCHOR:
            top += 1
            stack[place[top], 0] = row[first]
            sizes[top] = 1
        elif step == _PROJECT:
            source = stack[place[top], : sizes[top]]
            sizes[top] = _project(edges, source, row[first], stack[place[spare]], marks, marks[-1])
            place[top], place[spare] = place[spare], place[top]
        elif _INTERSECT <= step <= _UNION:
            top -= 1
            one, other = stack[place[top], : sizes[top]], stack[place[top + 1], : sizes[top + 1]]
            sizes[top] = _combine(step, one, other, stack[place[spare]], marks, marks[-1])
            place[top], place[spare] = place[spare], place[top]
        else:
            top += 1
            sizes[top] = len(marks) - 1
            for entity in range(len(marks) - 1):
                stack[place[top], entity] = entity
    return int(sizes[0])


@compiled
def traverse(edges: Edges, program: SetProgram, rows: Ids) -> tuple[Offsets, Ids]:
    """The answers of every row, one row after the other: those of row i are found[starts[i] : starts[i + 1]].

    A query's answers are different and in the order in which they were found, which is the same every time.
    """
    entities = len(edges.slots) - 1
    starts = np.zeros(len(rows) + 1, np.int64)
    found = np.empty(1 << 12, np.int32)
    stack = np.empty((program.depth + 1, entities), np.int32)
    place = np.arange(program.depth + 1)
    marks = np.zeros(entities + 1, np.int64)
    for number in range(len(rows)):
        size = _run(edges, program, rows[number], stack, place, marks)
        begin = starts[number]
        if begin + size > len(found):
            larger = np.empty(max(2 * len(found), begin + size), np.int32)
            for copied in range(begin):
                larger[copied] = found[copied]
            found = larger
        for answer in range(size):
            found[begin + answer] = stack[place[0], answer]
        starts[number + 1] = begin + size
    return starts, found[: starts[-1]]


@compiled
def subtract(starts: Offsets, found: Ids, other_starts: Offsets, others: Ids, keep_common: bool) -> tuple[Offsets, Ids]:
    """Of every row's answers those that the other table does not have for it; `keep_common`: those that it has."""
    largest = 0
    for entity in found:
        largest = max(largest, entity)
    for entity in others:
        largest = max(largest, entity)
    marks = np.full(largest + 1, -1, np.int64)
    kept_starts = np.zeros(len(starts), np.int64)
    kept = np.empty(len(found), np.int32)
    size = 0
    for row in range(len(starts) - 1):
        for place in range(other_starts[row], other_starts[row + 1]):
            marks[others[place]] = row
        for place in range(starts[row], starts[row + 1]):
            if (marks[found[place]] == row) == keep_common:
                kept[size] = found[place]
                size += 1
        kept_starts[row + 1] = size
    return kept_starts, kept[:size]
