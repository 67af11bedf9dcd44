"""How to compute the set of a structure, as a program: a short table of integers that a compiled loop runs for a row.

One loop serves all types, named or not, so a new type needs no compiled code of its own.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from secure_kg.queries.form import Anchor, Intersection, Negation, Projection, Union
from secure_kg.queries.structures import Structure

Table = npt.NDArray[np.int64]


class SetStep(IntEnum):
    """Steps over a stack of sets; a and b are columns of the row."""

    FETCH = 0
    """Push the targets of entity row[a] under label row[b]."""
    ANCHOR = 1
    """Push {row[a]}."""
    PROJECT = 2
    """Replace the top by all targets of its entities under label row[a]."""
    INTERSECT = 3
    SUBTRACT = 4
    UNION = 5
    EVERY = 6
    """Push all entities."""


class SetProgram(NamedTuple):
    """Steps [n, 3]: step, a, b. `depth` is the height that the stack reaches."""

    steps: Table
    depth: int


def set_program(structure: Structure) -> SetProgram:
    """How to compute the set of a structure's root. Negated parts are subtracted, so complements are rare."""
    steps: list[tuple[int, int, int]] = []

    def positive(node: Structure, below: int) -> int:
        """Append the steps of a node over a stack of height `below`; returns the height that they reach."""
        match node:
            case Anchor(entity=column):
                steps.append((SetStep.ANCHOR, column, 0))
                return below + 1
            case Projection(relation=label, of=Anchor(entity=column)):
                steps.append((SetStep.FETCH, column, label))
                return below + 1
            case Projection(relation=label, of=of):
                reached = positive(of, below)
                steps.append((SetStep.PROJECT, label, 0))
                return reached
            case Negation():
                return joined([node], below)
            case Intersection(parts=parts):
                return joined(list(parts), below)
            case Union(parts=parts):
                reached = positive(parts[0], below)
                for part in parts[1:]:
                    reached = max(reached, positive(part, below + 1))
                    steps.append((SetStep.UNION, 0, 0))
                return reached

    def joined(parts: list[Structure], below: int) -> int:
        kept = [part for part in parts if not isinstance(part, Negation)]
        removed = [part.of for part in parts if isinstance(part, Negation)]
        reached = below + 1
        if not kept:
            steps.append((SetStep.EVERY, 0, 0))
        for number, part in enumerate(kept):
            reached = max(reached, positive(part, below + (number > 0)))
            if number:
                steps.append((SetStep.INTERSECT, 0, 0))
        for negated in removed:
            reached = max(reached, positive(negated, below + 1))
            steps.append((SetStep.SUBTRACT, 0, 0))
        return reached

    depth = positive(structure, 0)
    return SetProgram(np.array(steps, dtype=np.int64), depth)
