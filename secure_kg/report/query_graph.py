"""A query as a graph to be drawn: spots for entities, variables and connectives, and links between them.

The graph is a tree whose root is the target, the variable that is asked for. Every atom of the query is one link. Parts
of an intersection meet in their variable; inside of a union or a negation they meet in a spot "and". Variables have the
names that `secure_kg.queries.language.writing` gives them.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from secure_kg.queries.form import Anchor, Intersection, NamedQuery, Negation, Projection, Union
from secure_kg.queries.language.writing import atom_text, name_text, quoted

SpotKind = Literal["target", "variable", "entity", "and", "or", "not"]


@dataclass(frozen=True, slots=True)
class Spot:
    """`name`: as it is written in a question, quotes and escapes included."""

    kind: SpotKind
    name: str
    links: tuple["Link", ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """From the spot `source` to the one that has the link, which is nearer to the target."""

    source: Spot
    relation: str = ""
    """As it is written. Empty: no atom; both ends are the same variable, or the source is the entity that it equals."""
    inverse: bool = False
    """The relation leads to the source, and so away from the target."""
    negated: bool = False
    """Below a negation."""
    atom: str = ""
    """As it is written in a question."""


def query_graph(query: NamedQuery) -> Spot:
    variables = (f"?x{number}" if number else "?x" for number in itertools.count())
    target = next(variables)
    return Spot("target", target, _links(query, target, variables, negated=False))


def _links(query: NamedQuery, at: str, variables: Iterator[str], *, negated: bool) -> tuple[Link, ...]:
    """Those of a spot that stands for the variable `at`."""
    match query:
        case Anchor(entity=entity):
            return (Link(Spot("entity", quoted(entity)), negated=negated),)
        case Projection(relation=relation, of=of, inverse=inverse):
            if isinstance(of, Anchor):
                source = Spot("entity", quoted(of.entity))
            else:
                name = next(variables)
                source = Spot("variable", name, _links(of, name, variables, negated=negated))
            atom = atom_text(relation, source.name, at, inverse)
            return (Link(source, name_text(relation), inverse, negated, atom),)
        case Intersection(parts=parts):
            return tuple(link for part in parts for link in _links(part, at, variables, negated=negated))
        case Union(parts=parts):
            either = tuple(_joined(part, at, variables, negated=negated) for part in parts)
            return (Link(Spot("or", at, either), negated=negated),)
        case Negation(of=of):
            return (Link(Spot("not", at, (_joined(of, at, variables, negated=True),)), negated=negated),)


def _joined(query: NamedQuery, at: str, variables: Iterator[str], *, negated: bool) -> Link:
    """All that a part says of the variable as one link."""
    links = _links(query, at, variables, negated=negated)
    return links[0] if len(links) == 1 else Link(Spot("and", at, links), negated=negated)
