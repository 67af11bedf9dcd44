"""Formulas over atoms: intersections, unions and negations, as a walk and as bytes.

A formula is written from its leaves to its root, one byte for each atom and each join. The atoms stand in order, each
once. So a formula of k atoms has 2 k - 1 bytes, whatever it says. A negation is a bit of what it negates.

It must be bounded: no answer may be one for the only reason that nothing is stored of it. Else a question would have
every position as its answer that nobody knows anything about.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from protocols.foundation.errors import PeerMisbehaved

T = TypeVar("T")
ATOM: Final = 0
BOTH: Final = 1
EITHER: Final = 2
NEGATED: Final = 4
"""Added to any of them."""
_KINDS: Final = (ATOM, BOTH, EITHER)


@dataclass(frozen=True, slots=True)
class Formula:
    """`steps`: over a stack, each an atom or a join of the two sets on top."""

    steps: tuple[int, ...]

    def __post_init__(self) -> None:
        height = 0
        for step in self.steps:
            if step & ~NEGATED not in _KINDS:
                raise ValueError("a formula with a step that is none")
            height += 1 if step & ~NEGATED == ATOM else -1
            if height < 1:
                raise ValueError("a formula that joins what is not there")
        if height != 1:
            raise ValueError("a formula that is not one set")
        if not self._bounded():
            raise ValueError("a formula with nothing in it that bounds its answers")

    @property
    def atoms(self) -> int:
        return sum(step & ~NEGATED == ATOM for step in self.steps)

    def walk(self, atoms: Sequence[T], both: Callable[[T, T], T], invert: Callable[[T], T]) -> T:
        """The set of the formula over sets of any kind, in the order in which it is written."""
        if len(atoms) != self.atoms:
            raise ValueError(f"{len(atoms)} sets for a formula of {self.atoms} atoms")
        left: Iterator[T] = iter(atoms)
        stack: list[T] = []
        for step in self.steps:
            kind = step & ~NEGATED
            if kind == ATOM:
                found = next(left)
            else:
                second, first = stack.pop(), stack.pop()
                found = both(first, second) if kind == BOTH else invert(both(invert(first), invert(second)))
            stack.append(invert(found) if step & NEGATED else found)
        return stack.pop()

    def _bounded(self) -> bool:
        """Whether the set of nothing but empty atoms is empty. Positions that no atom has are outside of it then."""
        return not self.walk([False] * self.atoms, lambda first, second: first and second, lambda one: not one)

    def encode(self) -> bytes:
        return bytes(self.steps)

    @classmethod
    def read(cls, written: bytes, atoms: int) -> "Formula":
        """`PeerMisbehaved` for bytes that are no formula of so many atoms."""
        try:
            formula = cls(tuple(written))
        except ValueError as problem:
            raise PeerMisbehaved(f"the asker sent {problem}") from None
        if formula.atoms != atoms:
            raise PeerMisbehaved("the asker sent a formula of another number of atoms")
        return formula


def formula_bytes(atoms: int) -> int:
    """Of a formula of so many atoms."""
    return 2 * atoms - 1
