"""How to draw a row of a structure, as a program for a compiled loop: backwards, from an answer to the anchors.

Branches of an intersection start from the same entity. Of a union only the first one does: the others are independent
of the answer. A negated branch starts from another answer of the first branch, so that it takes something away, and
must not hold for the drawn answer itself.
"""

from enum import IntEnum

import numpy as np

from secure_kg.queries.form import Anchor, Intersection, Negation, Projection, QueryError, Union
from secure_kg.queries.set_programs import Table
from secure_kg.queries.structures import Structure

Step = tuple[int, int, int, int, int]
Last = tuple[int, int]
"""The last edge of a branch: the register of its source, and the column of its label."""


class DrawStep(IntEnum):
    """Steps that fill a row; registers hold entities, and the answer is in register 0."""

    STEP = 0
    """Over a random edge into register a: its source goes to register b, its label to column c."""
    FIX = 1
    """Register a goes to column b."""
    FRESH = 2
    """A random entity goes to register a."""
    SIBLING = 3
    """A random target of register a under the label in column b goes to register c; start over if it is register d."""
    DIFFER = 4
    """Start over if registers a and c are equal and columns b and d are: two branches would be one."""
    TURN = 5
    """Start over if the label in column b is the way back of that in column a: the step would undo the other."""
    ACROSS = 6
    """Start over if the condition on the holders of the relations is not met; all labels are drawn."""
    ABSENT = 7
    """Start over if, from the entity in column a, the labels in columns b and c lead to register d; c −1: b alone."""


def draw_program(structure: Structure) -> Table:
    """Steps [n, 5]: step, a, b, c, d. Refuses structures that cannot be drawn."""
    drawing = _Drawing()
    drawing.branch(structure, 0)
    steps = [*drawing.steps, (int(DrawStep.ACROSS), 0, 0, 0, 0), *drawing.last_steps]
    return np.array(steps, dtype=np.int64)


class _Drawing:
    """The steps so far."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.last_steps: list[Step] = []
        """Those that cost most, for rows that pass everything else."""
        self._registers = 1

    def _register(self) -> int:
        self._registers += 1
        return self._registers - 1

    def _emit(self, step: DrawStep, *operands: int) -> None:
        first, second, third, fourth = (*operands, 0, 0, 0, 0)[:4]
        steps = self.last_steps if step == DrawStep.ABSENT else self.steps
        steps.append((int(step), first, second, third, fourth))

    def branch(self, node: Structure, at: int) -> list[Last]:
        """Draw a node whose set holds the entity in register `at`; returns the last edges into it."""
        match node:
            case Anchor(entity=column):
                self._emit(DrawStep.FIX, at, column)
                return []
            case Projection(relation=label, of=of):
                source = self._register()
                self._emit(DrawStep.STEP, at, source, label)
                for _, earlier in self.branch(of, source):
                    self._emit(DrawStep.TURN, label, earlier)
                return [(source, label)]
            case Intersection(parts=parts):
                return self._intersection(parts, at)
            case Union(parts=parts):
                return self._different([self.branch(part, self._start(at, n)) for n, part in enumerate(parts)])
            case Negation():
                raise QueryError("no query can be drawn whose negation stands outside of an intersection")

    def _start(self, at: int, number: int) -> int:
        """The register that part `number` of a union starts from."""
        if number == 0:
            return at
        fresh = self._register()
        self._emit(DrawStep.FRESH, fresh)
        return fresh

    def _intersection(self, parts: tuple[Structure, ...], at: int) -> list[Last]:
        lasts = self._different([self.branch(part, at) for part in parts if not isinstance(part, Negation)])
        if not lasts:
            raise QueryError("no query can be drawn of which all parts of an intersection are negated")
        for part in parts:
            if isinstance(part, Negation):
                sibling = self._register()
                self._emit(DrawStep.SIBLING, *lasts[0], sibling, at)
                self.branch(part.of, sibling)
                self._emit(DrawStep.ABSENT, *_short_chain(part.of), at)
        return lasts

    def _different(self, found: list[list[Last]]) -> list[Last]:
        """No two branches may end with the same edge: one of them would be implied by the other."""
        for number, lasts in enumerate(found):
            for one in (last for earlier in found[:number] for last in earlier):
                for other in lasts:
                    self._emit(DrawStep.DIFFER, *one, *other)
        return [last for lasts in found for last in lasts]


def _short_chain(node: Structure) -> tuple[int, int, int]:
    """Columns of the anchor and of one or two labels of a negated branch."""
    match node:
        case Projection(relation=label, of=Anchor(entity=column)):
            return column, label, -1
        case Projection(relation=second, of=Projection(relation=first, of=Anchor(entity=column))):
            return column, first, second
    raise QueryError("no query can be drawn whose negated part is more than two steps from an anchor")
