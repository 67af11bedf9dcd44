"""Normal forms of a query: a canonical order of its parts, a text of its own, and unions moved to the top (DNF).

Two queries that differ only in the order, repetition or nesting of the parts of intersections and unions have the same
canonical form and the same text. The text is for records, keys and tests; people write the language of
`secure_kg.queries.language`.

    "BRCA1"  17      an anchor by name, by id
    p(R, Q)          a projection along R; p(~R, Q) against it
    i(Q, Q)  u(Q, Q) an intersection, a union
    n(Q)             a negation
"""

import itertools
import json
import math
from typing import Final

from secure_kg.queries.form import (
    MOST_NODES,
    Anchor,
    E,
    Intersection,
    Negation,
    Projection,
    Query,
    QueryError,
    R,
    Union,
    intersection,
    union,
)

MOST_BRANCHES: Final = 1024
"""Conjunctive queries that the normal form of one query may have. Their number can double with every part."""


def canonical(query: Query[E, R]) -> Query[E, R]:
    """The same set: parts sorted by their text and different, nested intersections and unions flat, no ¬¬."""
    match query:
        case Anchor():
            return query
        case Projection(relation=relation, of=of, inverse=inverse):
            return Projection(relation, canonical(of), inverse)
        case Negation(of=of):
            inner = canonical(of)
            return inner.of if isinstance(inner, Negation) else Negation(inner)
        case Intersection(parts=parts):
            return intersection(_sorted(intersection(map(canonical, parts)), Intersection))
        case Union(parts=parts):
            return union(_sorted(union(map(canonical, parts)), Union))


def _sorted(flat: Query[E, R], kind: type[Intersection[E, R]] | type[Union[E, R]]) -> list[Query[E, R]]:
    """The different parts of a flat node by their text."""
    parts = {_written(part): part for part in (flat.parts if isinstance(flat, kind) else (flat,))}
    return [parts[written] for written in sorted(parts)]


def text(query: Query[E, R]) -> str:
    """The canonical form in one line."""
    return _written(canonical(query))


def _written(query: Query[E, R]) -> str:
    match query:
        case Anchor(entity=entity):
            return _name(entity)
        case Projection(relation=relation, of=of, inverse=inverse):
            return f"p({'~' if inverse else ''}{_name(relation)}, {_written(of)})"
        case Negation(of=of):
            return f"n({_written(of)})"
        case Intersection(parts=parts):
            return f"i({', '.join(map(_written, parts))})"
        case Union(parts=parts):
            return f"u({', '.join(map(_written, parts))})"


def _name(name: object) -> str:
    return json.dumps(name) if isinstance(name, str) else str(name)


def disjuncts(query: Query[E, R]) -> tuple[Query[E, R], ...]:
    """Queries without a union whose answers together are those of `query`.

    A union under a negation becomes an intersection of negations, so it does not multiply; ¬ of an intersection stays.
    Their number and size are known before anything is expanded, and refused beyond the bounds.
    """
    branches, nodes = _expansion(query)
    if branches > MOST_BRANCHES:
        raise QueryError(f"a query whose unions multiply to {_count(branches)} queries; {MOST_BRANCHES:,} at most")
    if nodes > MOST_NODES:
        raise QueryError(f"a query whose unions multiply to {_count(nodes)} parts; {MOST_NODES:,} at most")
    return tuple(_disjuncts(query))


def _count(number: int) -> str:
    """Numbers that may have more digits than anybody reads."""
    return f"{number:,}" if number < 10**15 else "more than 10^15"


def _expansion(query: Query[E, R]) -> tuple[int, int]:
    """How many disjuncts there will be, and how many nodes they have together, at most.

    Both are exact up to what sharing a flat intersection saves. A depth of 64 keeps the numbers to some hundred digits.
    """
    match query:
        case Anchor():
            return 1, 1
        case Projection(of=of):
            branches, nodes = _expansion(of)
            return branches, nodes + branches
        case Negation(of=of):
            branches, nodes = _expansion(of)
            return 1, nodes + branches + 1
        case Union(parts=parts):
            found = [_expansion(part) for part in parts]
            return sum(one for one, _ in found), sum(nodes for _, nodes in found)
        case Intersection(parts=parts):
            found = [_expansion(part) for part in parts]
            every = math.prod(branches for branches, _ in found)
            # A disjunct of one part stands in as many combinations as the other parts have.
            return every, every + sum(nodes * (every // branches) for branches, nodes in found)


def _disjuncts(query: Query[E, R]) -> list[Query[E, R]]:
    match query:
        case Anchor():
            return [query]
        case Projection(relation=relation, of=of, inverse=inverse):
            return [Projection(relation, part, inverse) for part in _disjuncts(of)]
        case Negation(of=of):
            return [intersection(Negation(part) for part in _disjuncts(of))]
        case Union(parts=parts):
            return [found for part in parts for found in _disjuncts(part)]
        case Intersection(parts=parts):
            expanded = [_disjuncts(part) for part in parts]
            return [intersection(chosen) for chosen in itertools.product(*expanded)]
