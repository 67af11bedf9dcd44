"""Variables of negated parts.

A variable that occurs in a negated part and nowhere positively around it belongs to that part: "there is no ?y such
that". So two negated parts may use the same name for different things, and neither is tied to the other by it.
"""

import itertools
from collections.abc import Iterator, Mapping

from secure_kg.queries.language.formula import And, Atom, Constant, Formula, Not, Or, Same, Term, Variable


def separated(formula: Formula, answer: str) -> Formula:
    """The same formula in which variables of negated parts have names that occur nowhere else."""
    return _separated(formula, formula.positive | {answer}, itertools.count(1))


def _separated(formula: Formula, visible: frozenset[str], numbers: Iterator[int]) -> Formula:
    match formula:
        case Atom() | Same():
            return formula
        case And(parts=parts, place=place):
            return And(tuple(_separated(part, visible, numbers) for part in parts), place)
        case Or(parts=parts, place=place):
            return Or(tuple(_separated(part, visible, numbers) for part in parts), place)
        case Not(of=of, place=place):
            own = sorted(of.positive - visible)
            names = {name: f"{name}#{next(numbers)}" for name in own}  # nobody can write such a name
            return Not(_separated(_renamed(of, names), visible | frozenset(names.values()), numbers), place)


def _renamed(formula: Formula, names: Mapping[str, str]) -> Formula:
    if not names or not formula.variables & names.keys():
        return formula

    def term(old: Term) -> Term:
        return old if isinstance(old, Constant) else Variable(names.get(old.name, old.name))

    match formula:
        case Atom(relation=relation, first=first, second=second, place=place):
            return Atom(relation, term(first), term(second), place)
        case Same(variable=variable, entity=entity, place=place):
            return Same(Variable(names.get(variable.name, variable.name)), entity, place)
        case And(parts=parts, place=place):
            return And(tuple(_renamed(part, names) for part in parts), place)
        case Or(parts=parts, place=place):
            return Or(tuple(_renamed(part, names) for part in parts), place)
        case Not(of=of, place=place):
            return Not(_renamed(of, names), place)
