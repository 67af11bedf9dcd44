"""The form of a query: bounds, canonical text, disjunctive normal form and types."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secure_kg.queries.form import (
    MOST_DEPTH,
    MOST_NODES,
    Anchor,
    IdQuery,
    Intersection,
    Negation,
    Projection,
    Query,
    QueryError,
    Union,
    anchors,
    intersection,
    relations,
    translate,
    walk,
)
from secure_kg.queries.normal import MOST_BRANCHES, canonical, disjuncts, text
from secure_kg.queries.structures import (
    EIGHT,
    STRUCTURES,
    WITH_NEGATION,
    anchor_columns,
    as_row,
    columns,
    read_row,
    relation_columns,
    type_of,
)
from tests.support.small_queries import brute_force, graphs, id_queries


def shuffled(query: IdQuery, draw: st.DataObject) -> IdQuery:
    """The same query with the parts of every node in another order."""
    match query:
        case Anchor():
            return query
        case Projection(relation=relation, of=of, inverse=inverse):
            return Projection(relation, shuffled(of, draw), inverse)
        case Negation(of=of):
            return Negation(shuffled(of, draw))
        case Intersection(parts=parts) | Union(parts=parts):
            return type(query)(tuple(shuffled(part, draw) for part in draw.draw(st.permutations(parts))))


@given(st.data(), id_queries())
def test_the_canonical_form_does_not_depend_on_the_order_of_parts(data: st.DataObject, query: IdQuery) -> None:
    assert text(shuffled(query, data)) == text(query)
    assert canonical(canonical(query)) == canonical(query)


@given(graphs, id_queries())
@settings(max_examples=60)
def test_normal_forms_have_the_same_answers(triples: list[tuple[int, int, int]], query: IdQuery) -> None:
    expected = brute_force(triples, query)
    assert brute_force(triples, canonical(query)) == expected
    parts = disjuncts(query)
    assert not any(isinstance(node, Union) for part in parts for node in walk(part))
    assert set().union(*(brute_force(triples, part) for part in parts)) == expected


def test_the_text_is_as_documented() -> None:
    query: Query[str, int] = Intersection(
        (Projection(2, Anchor('a "b"'), True), Negation(Union((Projection(1, Anchor("é")), Anchor("c")))))
    )
    assert text(query) == r'i(n(u("c", p(1, "\u00e9"))), p(~2, "a \"b\""))'


def test_nested_and_repeated_parts_become_one() -> None:
    a, b = Projection(1, Anchor(1)), Projection(2, Anchor(2))
    assert text(Intersection((a, Intersection((b, a))))) == text(Intersection((b, a)))
    assert text(Union((a, a))) == text(a)
    assert text(Negation(Negation(a))) == text(a)
    assert text(Negation(Intersection((Negation(a), Negation(a))))) == text(a)
    assert intersection([a]) is a


def deep(steps: int) -> IdQuery:
    query: IdQuery = Anchor(0)
    for _ in range(steps):
        query = Projection(0, query)
    return query


def doubled(times: int) -> IdQuery:
    query: IdQuery = Anchor(0)
    for _ in range(times):
        query = Intersection((query, query))
    return query


def test_a_query_that_is_too_deep_or_too_large_cannot_be_made() -> None:
    assert deep(MOST_DEPTH - 1).depth == MOST_DEPTH
    with pytest.raises(QueryError, match="64 steps deep"):
        deep(MOST_DEPTH)
    many = Union(tuple(Anchor(n) for n in range(MOST_NODES - 1)))
    assert many.nodes == MOST_NODES
    with pytest.raises(QueryError, match="20,000 parts"):
        Negation(many)
    with pytest.raises(QueryError, match="parts"):
        doubled(40)  # one object, shared: small in memory, large as a tree
    with pytest.raises(QueryError, match="two parts"):
        Union((Anchor(1),))


def test_unions_that_multiply_are_refused_before_they_are_expanded() -> None:
    def pair(number: int) -> IdQuery:
        return Union((Projection(0, Anchor(number)), Projection(1, Anchor(number))))

    assert len(disjuncts(Intersection(tuple(pair(n) for n in range(8))))) == 256
    with pytest.raises(QueryError, match="1,048,576 queries"):
        disjuncts(Intersection(tuple(pair(n) for n in range(20))))
    with pytest.raises(QueryError, match=r"more than 10\^15"):
        disjuncts(Intersection(tuple(pair(n) for n in range(2000))))
    wide = Union(tuple(Anchor(n) for n in range(MOST_BRANCHES)))
    assert len(disjuncts(wide)) == MOST_BRANCHES
    nested: IdQuery = wide
    for _ in range(4):  # one branch each, whose size multiplies
        nested = Negation(Intersection((nested, Union(tuple(Anchor(n) for n in range(100))))))
    with pytest.raises(QueryError, match="multiply to"):
        disjuncts(nested)


@pytest.mark.parametrize("kind", STRUCTURES)
def test_every_named_type_is_recognised_whatever_the_order(kind: str) -> None:
    row = list(range(columns(STRUCTURES[kind])))
    query = read_row(
        STRUCTURES[kind], [2 * value + 1 if value in relation_columns(STRUCTURES[kind]) else value for value in row]
    )
    assert type_of(query) == kind
    assert type_of(translate(query, str, str)) == kind
    assert all(node.inverse for node in walk(query) if isinstance(node, Projection))
    assert relations(query)
    assert sorted(anchors(query)) == anchor_columns(STRUCTURES[kind])
    if isinstance(query, Intersection | Union):
        assert type_of(type(query)(tuple(reversed(query.parts)))) == kind


def test_types_without_a_name_have_none() -> None:
    assert type_of(Anchor(1)) is None
    assert type_of(deep(4)) is None
    assert type_of(Negation(deep(1))) is None
    assert len(STRUCTURES) == 14
    assert set(EIGHT) | set(WITH_NEGATION) | {"3p"} == set(STRUCTURES)


@given(id_queries())
def test_any_query_is_a_row_of_its_own_structure(query: IdQuery) -> None:
    structure, row = as_row(query)
    assert read_row(structure, row) == query
    assert len(row) == columns(structure)
