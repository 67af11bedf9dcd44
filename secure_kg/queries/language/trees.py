"""A formula with one answer variable as a query: every variable becomes a node of a tree with the answer at its root.

From a variable, parts that share no other variable are independent branches. Parts that do share one hang together on
the one atom that leads there. Where no such atom exists the question is no tree and is refused: variables that are tied
in a circle, parts that are not connected to the answer, variables that lead to no named entity.

An alternative that mentions two variables, (r(?x, ?y) | s(?x, ?y)) & t(?y, "A"), is multiplied out. The work and the
depth are bounded.
"""

from typing import Final

from secure_kg.queries.form import MOST_DEPTH, Anchor, NamedQuery, Negation, Projection, QueryError, intersection, union
from secure_kg.queries.language.formula import And, Atom, Constant, Formula, Not, Or, Same, Variable, conjuncts
from secure_kg.queries.language.places import LanguageError, Place
from secure_kg.queries.language.scopes import separated

MOST_WORK: Final = 100_000
"""Parts and variables looked at in one translation: less than a second. A chain of `MOST_ATOMS` needs less."""


def to_query(answer: str, formula: Formula, place: Place) -> NamedQuery:
    """The query of the entities that `answer` may be. `place` is where the question begins."""
    if answer not in formula.variables:
        raise LanguageError(place, "the answer variable does not occur in the question")
    try:
        return _Translation(place).solve(answer, [separated(formula, answer)])
    except LanguageError:
        raise
    except QueryError as problem:  # a bound of the form, which knows no place
        raise LanguageError(place, str(problem)) from None


class _Translation:
    """One question, how much work is left for it, and how deep it is in its tree."""

    def __init__(self, place: Place) -> None:
        self._place, self._left, self._depth = place, MOST_WORK, 0

    def solve(self, variable: str, parts: list[Formula]) -> NamedQuery:
        """The entities that `variable` may be so that all parts hold."""
        parts = conjuncts(parts)
        self._left -= sum(1 + len(part.variables) for part in parts)
        if self._left < 0:
            raise LanguageError(self._place, "the alternatives of the question multiply to too many")
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise LanguageError(parts[0].place, f"the question is more than {MOST_DEPTH} steps deep here")
        found = intersection([self._branch(variable, branch) for branch in _branches(variable, parts)])
        self._depth -= 1
        return found

    def _branch(self, variable: str, parts: list[Formula]) -> NamedQuery:
        """Parts that share other variables, or one part alone."""
        here = [part for part in parts if variable in part.variables]
        if not here:
            raise LanguageError(parts[0].place, "this part is not connected to the answer variable")
        if len(parts) == 1:
            return self._alone(variable, here[0])
        alternatives = next((part for part in here if isinstance(part, Or)), None)
        if alternatives is not None:
            rest = [part for part in parts if part is not alternatives]
            return union([self.solve(variable, [choice, *rest]) for choice in alternatives.parts])
        if len(here) > 1:
            raise LanguageError(here[1].place, "this part closes a circle of variables; questions must be trees")
        (only,) = here
        if not isinstance(only, Atom):
            raise LanguageError(
                only.place, "a negated part may share one variable with the rest, and this one shares two"
            )
        return self._step(variable, only, [part for part in parts if part is not only])

    def _alone(self, variable: str, part: Formula) -> NamedQuery:
        match part:
            case Atom():
                return self._step(variable, part, [])
            case Same(entity=entity):
                return Anchor(entity.name)
            case Or(parts=parts):
                return union([self.solve(variable, [choice]) for choice in parts])
            case Not(of=of):
                return Negation(self.solve(variable, [of]))
            case And(parts=parts):
                return self.solve(variable, list(parts))

    def _step(self, variable: str, atom: Atom, rest: list[Formula]) -> NamedQuery:
        """Over the atom to its other end, where the rest must hold."""
        inverse = atom.first == Variable(variable)
        other = atom.second if inverse else atom.first
        if isinstance(other, Constant):
            return Projection(atom.relation, Anchor(other.name), inverse)
        if other.name == variable:
            raise LanguageError(atom.place, "this part ties a variable to itself; questions must be trees")
        if not rest:
            raise LanguageError(atom.place, "a variable of this part leads to no named entity")
        return Projection(atom.relation, self.solve(other.name, rest), inverse)


def _branches(variable: str, parts: list[Formula]) -> list[list[Formula]]:
    """The parts in groups that share no variable but `variable`, in the order of their first parts."""
    group = list(range(len(parts)))

    def root(number: int) -> int:
        while group[number] != number:
            group[number] = group[group[number]]
            number = group[number]
        return number

    first_with: dict[str, int] = {}
    for number, part in enumerate(parts):
        for name in part.variables - {variable}:
            one, other = sorted((root(first_with.setdefault(name, number)), root(number)))
            group[other] = one
    found: dict[int, list[Formula]] = {}
    for number, part in enumerate(parts):
        found.setdefault(root(number), []).append(part)
    return list(found.values())
