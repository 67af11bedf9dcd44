"""Answers of a table of queries by traversal: the compiled loop.

Several graphs are answered in one pass. Every edge has a mask that says in which of them it lies, one bit for each, and
so has every entity of a set. Along an edge masks are joined by "and", over all edges into an entity by "or"; sets are
intersected, united and subtracted bit by bit. Graphs that share most of their edges cost little more than one of them.

A set is a list of different entities, and a table of the masks of all entities, zero for those that are not in the
list. Whoever consumes a set leaves its table zero.
"""

import numpy as np

from secure_kg.kernels.compiling import compiled
from secure_kg.queries.edges import Edges, Ids, Masks, Offsets
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
def _fetch(edges: Edges, slot: int, into: Ids, masks: Masks) -> int:
    if slot < 0:
        return 0
    begin, end = edges.starts[slot], edges.starts[slot + 1]
    for place in range(begin, end):
        target = edges.targets[place]
        into[place - begin] = target
        masks[target] = edges.masks[place]
    return int(end - begin)


@compiled
def _project(edges: Edges, label: int, source: Ids, source_masks: Masks, into: Ids, masks: Masks) -> int:
    size = 0
    for entity in source:
        mask = source_masks[entity]
        source_masks[entity] = 0
        slot = slot_of(edges, entity, label)
        if slot >= 0:
            for place in range(edges.starts[slot], edges.starts[slot + 1]):
                reached = mask & edges.masks[place]
                target = edges.targets[place]
                if masks[target] == 0 and reached != 0:
                    into[size] = target
                    size += 1
                masks[target] |= reached
    return size


@compiled
def _combine(step: int, one: Ids, size: int, masks: Masks, other: Ids, other_masks: Masks) -> int:
    """The intersection, difference or union of the first `size` entities of one set and another, in place of the one.

    `one` has room for all entities. Returns the size of the result.
    """
    if step == _UNION:
        for entity in other:
            if masks[entity] == 0:
                one[size] = entity
                size += 1
            masks[entity] |= other_masks[entity]
            other_masks[entity] = 0
        return size
    kept = 0
    for number in range(size):
        entity = one[number]
        wanted = other_masks[entity] if step == _INTERSECT else ~other_masks[entity]
        masks[entity] &= wanted
        if masks[entity] != 0:
            one[kept] = entity
            kept += 1
    for entity in other:
        other_masks[entity] = 0
    return kept


@compiled
def _run(edges: Edges, program: SetProgram, row: Ids, stack: Ids, place: Offsets, masks: Masks) -> int:
    """Runs the program for one row; returns the size of the set, which is in stack[place[0]] and masks[place[0]].

    stack [depth + 1, entities] and masks [depth + 1, entities]; place [depth + 1] says which of their rows is at which
    height, the last one being free.
    """
    sizes = np.zeros(len(place), np.int64)
    top, spare = -1, len(place) - 1
    for turn in range(len(program.steps)):
        step, first, second = program.steps[turn]
        if step == _FETCH:
            top += 1
            slot = slot_of(edges, row[first], row[second])
            sizes[top] = _fetch(edges, slot, stack[place[top]], masks[place[top]])
        elif step == _ANCHOR:
            top += 1
            stack[place[top], 0] = row[first]
            masks[place[top], row[first]] = edges.every
            sizes[top] = 1
        elif step == _PROJECT:
            here, free = place[top], place[spare]
            source = stack[here, : sizes[top]]
            sizes[top] = _project(edges, row[first], source, masks[here], stack[free], masks[free])
            place[top], place[spare] = free, here
        elif _INTERSECT <= step <= _UNION:
            top -= 1
            here, above = place[top], place[top + 1]
            other = stack[above, : sizes[top + 1]]
            sizes[top] = _combine(step, stack[here], sizes[top], masks[here], other, masks[above])
        else:
            top += 1
            sizes[top] = stack.shape[1]
            for entity in range(stack.shape[1]):
                stack[place[top], entity] = entity
                masks[place[top], entity] = edges.every
    return int(sizes[0])


@compiled
def traverse(edges: Edges, program: SetProgram, rows: Ids) -> tuple[Offsets, Ids, Masks]:
    """The answers of every row, one row after the other: those of row i are at starts[i] : starts[i + 1].

    A query's answers are different, each with the mask of the graphs that give it, and in the order in which they were
    found, which is the same every time.
    """
    entities = len(edges.slots) - 1
    starts = np.zeros(len(rows) + 1, np.int64)
    found, found_masks = np.empty(1 << 12, np.int32), np.empty(1 << 12, np.uint8)
    stack = np.empty((program.depth + 1, entities), np.int32)
    masks = np.zeros((program.depth + 1, entities), np.uint8)
    place = np.arange(program.depth + 1)
    for number in range(len(rows)):
        size = _run(edges, program, rows[number], stack, place, masks)
        begin = starts[number]
        if begin + size > len(found):
            room = max(2 * len(found), begin + size)
            larger, larger_masks = np.empty(room, np.int32), np.empty(room, np.uint8)
            for copied in range(begin):
                larger[copied], larger_masks[copied] = found[copied], found_masks[copied]
            found, found_masks = larger, larger_masks
        for answer in range(size):
            entity = stack[place[0], answer]
            found[begin + answer], found_masks[begin + answer] = entity, masks[place[0], entity]
            masks[place[0], entity] = 0
        starts[number + 1] = begin + size
    return starts, found[: starts[-1]], found_masks[: starts[-1]]


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
