"""Small graphs and queries of any form, and their answers by the definition, entity by entity."""

from collections.abc import Callable, Iterable

from hypothesis import strategies as st

from secure_kg.queries.form import Anchor, IdQuery, Intersection, Negation, Projection, Union

ENTITIES, RELATIONS = 6, 3

Triple = tuple[int, int, int]

graphs: st.SearchStrategy[list[Triple]] = st.lists(
    st.tuples(st.integers(0, ENTITIES - 1), st.integers(0, RELATIONS - 1), st.integers(0, ENTITIES - 1)), max_size=25
)


def brute_force(triples: Iterable[Triple], query: IdQuery, entities: int = ENTITIES) -> set[int]:
    """All entities for which the query holds. Nothing but the definition: no index, no order, no sets of answers."""
    edges = set(triples)

    def holds(node: IdQuery, entity: int) -> bool:
        match node:
            case Anchor(entity=own):
                return own == entity
            case Projection(relation=relation, of=of, inverse=inverse):
                return any(
                    ((entity, relation, other) if inverse else (other, relation, entity)) in edges and holds(of, other)
                    for other in range(entities)
                )
            case Intersection(parts=parts):
                return all(holds(part, entity) for part in parts)
            case Union(parts=parts):
                return any(holds(part, entity) for part in parts)
            case Negation(of=of):
                return not holds(of, entity)

    return {entity for entity in range(entities) if holds(query, entity)}


def queries(
    entity: st.SearchStrategy[object], relation: st.SearchStrategy[object], leaves: int
) -> st.SearchStrategy[object]:
    """Trees of every kind of node."""

    def larger(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
        parts: st.SearchStrategy[tuple[object, ...]] = st.lists(inner, min_size=2, max_size=3).map(tuple)
        made: list[Callable[..., object]] = [Intersection, Union]
        return st.one_of(
            st.builds(Projection, relation, inner, st.booleans()),
            st.builds(Negation, inner),
            *(st.builds(kind, parts) for kind in made),
        )

    return st.recursive(st.builds(Anchor, entity), larger, max_leaves=leaves)


def id_queries(leaves: int = 5) -> "st.SearchStrategy[IdQuery]":
    return queries(st.integers(0, ENTITIES - 1), st.integers(0, RELATIONS - 1), leaves)  # type: ignore[return-value]
