"""A question as it is written: atoms over variables and names, joined by and, or and not.

Every node knows its variables, so that whoever takes a formula apart does not walk it again and again.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from secure_kg.queries.language.places import Place


@dataclass(frozen=True, slots=True)
class Variable:
    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """An entity by name."""

    name: str


Term: TypeAlias = Variable | Constant


@dataclass(frozen=True, slots=True)
class Atom:
    """The triple first, relation, second."""

    relation: str
    first: Term
    second: Term
    place: Place

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(term.name for term in (self.first, self.second) if isinstance(term, Variable))

    @property
    def positive(self) -> frozenset[str]:
        return self.variables


@dataclass(frozen=True, slots=True)
class Same:
    """A variable is a given entity."""

    variable: Variable
    entity: Constant
    place: Place

    @property
    def variables(self) -> frozenset[str]:
        return frozenset((self.variable.name,))

    @property
    def positive(self) -> frozenset[str]:
        return self.variables


@dataclass(frozen=True, slots=True)
class _Joined:
    """One part or more."""

    parts: "tuple[Formula, ...]"
    place: Place
    variables: frozenset[str] = field(init=False, repr=False, compare=False)
    positive: frozenset[str] = field(init=False, repr=False, compare=False)
    """Variables that occur outside of negated parts."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", frozenset().union(*(part.variables for part in self.parts)))
        object.__setattr__(self, "positive", frozenset().union(*(part.positive for part in self.parts)))


@dataclass(frozen=True, slots=True)
class And(_Joined):
    """All parts hold."""


@dataclass(frozen=True, slots=True)
class Or(_Joined):
    """At least one part holds."""


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold, whatever the variables are that occur in it alone."""

    of: "Formula"
    place: Place
    variables: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", self.of.variables)

    @property
    def positive(self) -> frozenset[str]:
        return frozenset()


Formula: TypeAlias = Atom | Same | And | Or | Not


def conjuncts(formulas: Iterable[Formula]) -> list[Formula]:
    """The parts of which all must hold, none of them an And."""
    found: list[Formula] = []
    for formula in formulas:
        if isinstance(formula, And):
            found += conjuncts(formula.parts)
        else:
            found.append(formula)
    return found
