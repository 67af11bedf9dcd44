"""Random rows of a structure: the compiled loop that runs a draw program.

An entity is left over a uniformly drawn one of its labels and then over a uniformly drawn edge of that label, as in
BetaE's sampler: relations with few edges are drawn more often than their edges are.

Random numbers are SplitMix64 (Steele et al. 2014), written out here: a row depends on the seed and the graph alone, and
on no version of numpy or numba. A number below n is the upper half of a product, which favours some numbers by less
than n / 2^32. For experiments only; secrets never come from here.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from secure_kg.kernels.compiling import compiled
from secure_kg.queries.draw_programs import DrawStep
from secure_kg.queries.edges import Edges, Ids
from secure_kg.queries.set_programs import Table
from secure_kg.queries.traversal import slot_of

Words = npt.NDArray[np.uint64]

_STEP, _FIX, _FRESH, _SIBLING = int(DrawStep.STEP), int(DrawStep.FIX), int(DrawStep.FRESH), int(DrawStep.SIBLING)
_DIFFER, _TURN, _ACROSS = int(DrawStep.DIFFER), int(DrawStep.TURN), int(DrawStep.ACROSS)
_GOLDEN, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_MOST_TRIES = 100_000
"""Tries for one row before a graph counts as one that has no such query."""


class Condition(NamedTuple):
    """Rows are kept only if no client holds all relations in `columns`.

    Bit k of holders[relation, w] says that client 64 w + k holds it. Without words there is no condition.
    """

    columns: Table
    holders: Words


@compiled
def _below(state: Words, limit: int) -> int:
    state[0] += _GOLDEN
    word = state[0]
    word = (word ^ (word >> np.uint64(30))) * _FIRST
    word = (word ^ (word >> np.uint64(27))) * _SECOND
    word = word ^ (word >> np.uint64(31))
    return np.int64(((word >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32))  # type: ignore[return-value]


@compiled
def _holds(edges: Edges, source: int, label: int, target: int) -> bool:
    """Whether there is an edge, by bisection."""
    slot = slot_of(edges, source, label)
    if slot < 0:
        return False
    low, end = edges.starts[slot], edges.starts[slot + 1]
    high = end
    while low < high:
        middle = (low + high) >> 1
        if edges.targets[middle] < target:
            low = middle + 1
        else:
            high = middle
    return bool(low < end and edges.targets[low] == target)


@compiled
def _leads(edges: Edges, source: int, first: int, second: int, target: int) -> bool:
    """Whether two labels lead from source to target; with second < 0, whether the first alone does.

    The two ends are walked towards each other, from the side with fewer edges.
    """
    if second < 0:
        return _holds(edges, source, first, target)
    back = slot_of(edges, target, second ^ 1)
    forth = slot_of(edges, source, first)
    if back < 0 or forth < 0:
        return False
    if edges.starts[forth + 1] - edges.starts[forth] <= edges.starts[back + 1] - edges.starts[back]:
        for place in range(edges.starts[forth], edges.starts[forth + 1]):
            if _holds(edges, edges.targets[place], second, target):
                return True
        return False
    for place in range(edges.starts[back], edges.starts[back + 1]):
        if _holds(edges, source, first, edges.targets[place]):
            return True
    return False


@compiled
def _in_one_graph(condition: Condition, row: Ids) -> bool:
    for word in range(condition.holders.shape[1]):
        common = condition.holders[row[condition.columns[0]] >> 1, word]
        for column in condition.columns[1:]:
            common &= condition.holders[row[column] >> 1, word]
        if common != 0:
            return True
    return False


@compiled
def _try(edges: Edges, program: Table, condition: Condition, state: Words, registers: Ids, row: Ids) -> bool:
    """One try at a row, from the answer in register 0; False: start over."""
    for number in range(len(program)):
        step, a, b, c, d = program[number]
        if step == _STEP:
            here = registers[a]
            slot = edges.slots[here] + _below(state, edges.slots[here + 1] - edges.slots[here])
            place = edges.starts[slot] + _below(state, edges.starts[slot + 1] - edges.starts[slot])
            registers[b] = edges.targets[place]
            row[c] = edges.labels[slot] ^ 1
        elif step == _FIX:
            row[b] = registers[a]
        elif step == _FRESH:
            registers[a] = edges.nodes[_below(state, len(edges.nodes))]
        elif step == _SIBLING:
            slot = slot_of(edges, registers[a], row[b])
            place = edges.starts[slot] + _below(state, edges.starts[slot + 1] - edges.starts[slot])
            registers[c] = edges.targets[place]
            if registers[c] == registers[d]:
                return False
        elif step == _DIFFER:
            if registers[a] == registers[c] and row[b] == row[d]:
                return False
        elif step == _TURN:
            if row[b] == row[a] ^ 1:
                return False
        elif step == _ACROSS:
            if _in_one_graph(condition, row):
                return False
        elif _leads(edges, row[a], row[b], row[c] if c >= 0 else -1, registers[d]):
            return False
    return True


@compiled
def draw_rows(edges: Edges, program: Table, condition: Condition, state: Words, rows: Ids, answers: Ids) -> int:
    """Fill rows [n, columns] and one answer of each [n]; returns how many could be drawn before tries ran out."""
    registers = np.empty(len(program) + 1, np.int32)
    for number in range(len(rows)):
        tries = 0
        while True:
            if tries == _MOST_TRIES:
                return number
            tries += 1
            registers[0] = edges.nodes[_below(state, len(edges.nodes))]
            if _try(edges, program, condition, state, registers, rows[number]):
                break
        answers[number] = registers[0]
    return len(rows)
