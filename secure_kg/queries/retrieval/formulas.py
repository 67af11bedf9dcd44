"""A question as atoms and a formula over them (`protocols.exact`), if it is one that stored facts can answer.

Each atom leads from one entity to the answer, along a relation or against it. A question that goes through a variable
in between is refused: its set of values would have to stay secret while everybody goes on from it.
"""

from dataclasses import dataclass

from protocols.exact.formula import ATOM, BOTH, EITHER, NEGATED, Formula
from protocols.exact.terms import MOST_ATOMS
from secure_kg.queries.form import Anchor, Intersection, NamedQuery, Negation, Projection, QueryError, Union
from secure_kg.queries.normal import canonical
from secure_kg.queries.retrieval.requests import Atom


@dataclass(frozen=True, slots=True)
class ExactPlan:
    """The atoms, in the order in which the formula takes them."""

    atoms: tuple[Atom, ...]
    formula: Formula

    @classmethod
    def of(cls, query: NamedQuery) -> "ExactPlan":
        """`QueryError` in one line for a question that has no exact answer here."""
        atoms: list[Atom] = []
        steps = _steps(canonical(query), atoms)
        if len(atoms) > MOST_ATOMS:
            raise QueryError(f"an exact answer has {MOST_ATOMS} atoms at most, and this question has {len(atoms)}")
        try:
            return cls(tuple(atoms), Formula(tuple(steps)))
        except ValueError:
            raise QueryError("an exact answer needs a part without negation that bounds it") from None


def _steps(node: NamedQuery, atoms: list[Atom]) -> list[int]:
    """Those of a node, from its leaves on; its atoms are added to `atoms`."""
    match node:
        case Projection(relation=relation, of=Anchor(entity=entity), inverse=inverse):
            atoms.append(Atom(entity, relation, inverse))
            return [ATOM]
        case Negation(of=of):
            *before, last = _steps(of, atoms)
            return [*before, last ^ NEGATED]
        case Intersection(parts=parts):
            return _joined(parts, BOTH, atoms)
        case Union(parts=parts):
            return _joined(parts, EITHER, atoms)
        case Projection():
            raise QueryError(
                "an exact answer is for relations between the answer and a given entity, and this question goes "
                "through a variable in between"
            )
        case Anchor():
            raise QueryError("an exact answer is for relations to the answer, and this question names it")


def _joined(parts: tuple[NamedQuery, ...], how: int, atoms: list[Atom]) -> list[int]:
    first, *others = (_steps(part, atoms) for part in parts)
    return first + [step for other in others for step in (*other, how)]
