"""The named types of the field as structures: queries over columns of a row instead of entities and relations.

Query2box and BetaE write the queries of a type as rows of integers. A structure says what the columns mean: an anchor's
entity is the column that holds it, a projection's relation the column that holds its label. So one structure serves to
read a row, to draw one and to answer a table of them.

A label is 2 r for relation r and 2 r + 1 for its inverse, as in the published files.
"""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

from secure_kg.queries.form import (
    Anchor,
    E,
    IdQuery,
    Intersection,
    Negation,
    Projection,
    Query,
    QueryError,
    R,
    Union,
    walk,
)
from secure_kg.queries.normal import canonical

Structure = Query[int, int]
"""Entities and relations are columns."""


def _branch(anchor: int, *relations: int) -> Structure:
    """From the anchor in one column along the labels in others."""
    query: Structure = Anchor(anchor)
    for relation in relations:
        query = Projection(relation, query)
    return query


STRUCTURES: Final = MappingProxyType[str, Structure](
    {
        "1p": _branch(0, 1),
        "2p": _branch(0, 1, 2),
        "3p": _branch(0, 1, 2, 3),
        "2i": Intersection((_branch(0, 1), _branch(2, 3))),
        "3i": Intersection((_branch(0, 1), _branch(2, 3), _branch(4, 5))),
        "ip": Projection(4, Intersection((_branch(0, 1), _branch(2, 3)))),
        "pi": Intersection((_branch(0, 1, 2), _branch(3, 4))),
        "2u": Union((_branch(0, 1), _branch(2, 3))),
        "up": Projection(4, Union((_branch(0, 1), _branch(2, 3)))),
        "2in": Intersection((_branch(0, 1), Negation(_branch(2, 3)))),
        "3in": Intersection((_branch(0, 1), _branch(2, 3), Negation(_branch(4, 5)))),
        "inp": Projection(4, Intersection((_branch(0, 1), Negation(_branch(2, 3))))),
        "pin": Intersection((_branch(0, 1, 2), Negation(_branch(3, 4)))),
        "pni": Intersection((Negation(_branch(0, 1, 2)), _branch(3, 4))),
    }
)
"""By name: p projection, i intersection, u union, n negation, in the order in which they are computed."""


EIGHT: Final = ("1p", "2p", "2i", "3i", "ip", "pi", "2u", "up")
"""The types of FedCQA."""
WITH_NEGATION: Final = ("2in", "3in", "inp", "pin", "pni")


def structure_of(kind: str) -> Structure:
    """The structure of a named type; refuses other names."""
    if kind not in STRUCTURES:
        raise QueryError(f"no such type of query; there are {', '.join(STRUCTURES)}")
    return STRUCTURES[kind]


def _shape(query: Query[E, R]) -> str:
    """The query without its entities, relations and directions, parts in a fixed order."""
    match query:
        case Anchor():
            return "a"
        case Projection(of=of):
            return f"p({_shape(of)})"
        case Negation(of=of):
            return f"n({_shape(of)})"
        case Intersection(parts=parts):
            return f"i({','.join(sorted(map(_shape, parts)))})"
        case Union(parts=parts):
            return f"u({','.join(sorted(map(_shape, parts)))})"


_NAMES: Final = {_shape(structure): name for name, structure in STRUCTURES.items()}


def type_of(query: Query[E, R]) -> str | None:
    """The name of the query's type, whatever the order of its parts; None if the field has no name for it."""
    return _NAMES.get(_shape(canonical(query)))


def columns(structure: Structure) -> int:
    """How many columns a row has."""
    return 1 + max(node.entity if isinstance(node, Anchor) else node.relation for node in atoms(structure))


def atoms(structure: Structure) -> list[Anchor[int] | Projection[int, int]]:
    """The nodes that have a column."""
    return [node for node in walk(structure) if isinstance(node, Anchor | Projection)]


def relation_columns(structure: Structure) -> list[int]:
    return sorted(node.relation for node in walk(structure) if isinstance(node, Projection))


def anchor_columns(structure: Structure) -> list[int]:
    return sorted(node.entity for node in walk(structure) if isinstance(node, Anchor))


def read_row(structure: Structure, row: Sequence[int]) -> IdQuery:
    """The query that a row of entities and labels stands for."""
    match structure:
        case Anchor(entity=column):
            return Anchor(int(row[column]))
        case Projection(relation=column, of=of):
            relation, inverse = divmod(int(row[column]), 2)
            return Projection(relation, read_row(of, row), bool(inverse))
        case Negation(of=of):
            return Negation(read_row(of, row))
        case Intersection(parts=parts):
            return Intersection(tuple(read_row(part, row) for part in parts))
        case Union(parts=parts):
            return Union(tuple(read_row(part, row) for part in parts))


def as_row(query: IdQuery) -> tuple[Structure, list[int]]:
    """Any query as a structure and one row of it: the inverse of `read_row`, columns in the order of the walk."""
    row: list[int] = []

    def place(value: int) -> int:
        row.append(value)
        return len(row) - 1

    def build(node: IdQuery) -> Structure:
        match node:
            case Anchor(entity=entity):
                return Anchor(place(entity))
            case Projection(relation=relation, of=of, inverse=inverse):
                return Projection(place(2 * relation + inverse), build(of))
            case Negation(of=of):
                return Negation(build(of))
            case Intersection(parts=parts):
                return Intersection(tuple(build(part) for part in parts))
            case Union(parts=parts):
                return Union(tuple(build(part) for part in parts))

    structure = build(query)
    return structure, row
