"""The general form of a logical query: a tree of anchors, projections, intersections, unions and negations.

A query is read from its leaves to its root, and every node stands for a set of entities. An anchor is one entity. A
projection goes from its set along one relation, or against it (`inverse`). A negation is every entity that is not in
its set. The answers are the set at the root.

Entities and relations are of any type: `int` for ids of a graph, `str` for names. Trees of the two kinds are the same
otherwise, so whoever reads a query by names and whoever computes with ids share everything in this package.

Depth and size are bounded when a node is made. So nobody who walks down a tree needs to fear for the stack, whoever
wrote the query.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Generic, TypeAlias, TypeVar

from secure_kg.foundation.errors import UserError

MOST_DEPTH: Final = 64
"""Nodes from the root of a query to a leaf. Published queries have 4; every step of a walk costs a frame or two."""
MOST_NODES: Final = 20_000
"""Nodes of a query, those of its disjunctive normal form included."""

E = TypeVar("E", bound=Hashable)
R = TypeVar("R", bound=Hashable)
E2 = TypeVar("E2", bound=Hashable)
R2 = TypeVar("R2", bound=Hashable)


class QueryError(UserError):
    """A query that cannot be used: too deep, too large, malformed. The text is one line."""


@dataclass(frozen=True, slots=True)
class Anchor(Generic[E]):
    """One given entity."""

    entity: E

    @property
    def depth(self) -> int:
        return 1

    @property
    def nodes(self) -> int:
        return 1


@dataclass(frozen=True, slots=True)
class _Inner:
    """A node over others. It knows how deep and how large its tree is: asking the tree would walk it."""

    depth: int = field(init=False, repr=False, compare=False, default=0)
    nodes: int = field(init=False, repr=False, compare=False, default=0)

    def _measure(self, parts: Iterable["Query[E, R]"]) -> None:
        parts = tuple(parts)
        depth, nodes = 1 + max(part.depth for part in parts), 1 + sum(part.nodes for part in parts)
        if depth > MOST_DEPTH:
            raise QueryError(f"a query that is more than {MOST_DEPTH} steps deep")
        if nodes > MOST_NODES:
            raise QueryError(f"a query of more than {MOST_NODES:,} parts")
        object.__setattr__(self, "depth", depth)
        object.__setattr__(self, "nodes", nodes)


@dataclass(frozen=True, slots=True)
class Projection(_Inner, Generic[E, R]):
    """All entities that `relation` leads to from those of `of`; inverse: all that it leads from to those of `of`."""

    relation: R
    of: "Query[E, R]"
    inverse: bool = False

    def __post_init__(self) -> None:
        self._measure((self.of,))


@dataclass(frozen=True, slots=True)
class Intersection(_Inner, Generic[E, R]):
    """Entities that are in every part."""

    parts: tuple["Query[E, R]", ...]

    def __post_init__(self) -> None:
        _require_two(self.parts)
        self._measure(self.parts)


@dataclass(frozen=True, slots=True)
class Union(_Inner, Generic[E, R]):
    """Entities that are in at least one part."""

    parts: tuple["Query[E, R]", ...]

    def __post_init__(self) -> None:
        _require_two(self.parts)
        self._measure(self.parts)


@dataclass(frozen=True, slots=True)
class Negation(_Inner, Generic[E, R]):
    """Entities of the graph that are not in `of`."""

    of: "Query[E, R]"

    def __post_init__(self) -> None:
        self._measure((self.of,))


Query: TypeAlias = Anchor[E] | Projection[E, R] | Intersection[E, R] | Union[E, R] | Negation[E, R]
IdQuery: TypeAlias = Query[int, int]
NamedQuery: TypeAlias = Query[str, str]


def _require_two(parts: tuple["Query[E, R]", ...]) -> None:
    if len(parts) < 2:
        raise QueryError("an intersection or a union needs two parts or more")


def intersection(parts: Iterable[Query[E, R]]) -> Query[E, R]:
    """The intersection of one part or more; one alone stays as it is, and intersections inside are taken apart."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, Intersection) else (part,))]
    return flat[0] if len(flat) == 1 else Intersection(tuple(flat))


def union(parts: Iterable[Query[E, R]]) -> Query[E, R]:
    """The union of one part or more, likewise."""
    flat = [inner for part in parts for inner in (part.parts if isinstance(part, Union) else (part,))]
    return flat[0] if len(flat) == 1 else Union(tuple(flat))


def children(query: Query[E, R]) -> tuple[Query[E, R], ...]:
    """The nodes right below the root, from left to right."""
    match query:
        case Anchor():
            return ()
        case Projection(of=of) | Negation(of=of):
            return (of,)
        case Intersection(parts=parts) | Union(parts=parts):
            return parts


def walk(query: Query[E, R]) -> Iterator[Query[E, R]]:
    """Every node, a node before those below it, from left to right."""
    yield query
    for child in children(query):
        yield from walk(child)


def relations(query: Query[E, R]) -> list[R]:
    """The relation of every projection, repetitions included: one for each atom of the query."""
    return [node.relation for node in walk(query) if isinstance(node, Projection)]


def anchors(query: Query[E, R]) -> list[E]:
    """The entities that the query starts from, repetitions included."""
    return [node.entity for node in walk(query) if isinstance(node, Anchor)]


def translate(query: Query[E, R], entity: Callable[[E], E2], relation: Callable[[R], R2]) -> Query[E2, R2]:
    """The same tree over other entities and relations."""
    match query:
        case Anchor(entity=own):
            return Anchor(entity(own))
        case Projection(relation=name, of=of, inverse=inverse):
            return Projection(relation(name), translate(of, entity, relation), inverse)
        case Negation(of=of):
            return Negation(translate(of, entity, relation))
        case Intersection(parts=parts):
            return Intersection(tuple(translate(part, entity, relation) for part in parts))
        case Union(parts=parts):
            return Union(tuple(translate(part, entity, relation) for part in parts))
