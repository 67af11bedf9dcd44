"""Names of a query against a vocabulary: ids, and the nearest of those that are unknown."""

import time

import pytest

from secure_kg.queries.form import Anchor, Intersection, NamedQuery, Projection
from secure_kg.queries.naming import name_shown, to_ids, to_names, unknown_names

ENTITIES = ("BRCA1", "BRCA2", "TP53", "aspirin")
RELATIONS = ("associated", "treats")


def query(relation: str, entity: str) -> NamedQuery:
    return Intersection((Projection(relation, Anchor(entity), True), Projection("treats", Anchor("TP53"))))


def test_known_names_become_ids_and_come_back() -> None:
    known = query("associated", "BRCA1")
    assert unknown_names(known, ENTITIES, RELATIONS) == []
    ids = to_ids(known, ENTITIES, RELATIONS)
    assert ids == Intersection((Projection(0, Anchor(0), True), Projection(1, Anchor(2))))
    assert to_names(ids, ENTITIES, RELATIONS) == known


def test_a_name_that_says_there_is_none_is_in_quotes() -> None:
    names = [None, "TP53", "(not named)", "(Not\u00a0named)", "'(not named)'"]
    told = ["(not named)", "TP53", "'(not named)'", "'(Not\\xa0named)'", "\"'(not named)'\""]
    assert [name_shown(name) for name in names] == told


def test_unknown_names_come_with_the_nearest_own_names() -> None:
    relation, entity = unknown_names(query("Asociated", "brca-1"), ENTITIES, RELATIONS)
    assert (relation.kind, relation.name, relation.nearest) == ("relation", "Asociated", ("associated",))
    assert entity.kind == "entity"
    assert entity.nearest[0] == "BRCA1"
    assert entity.warning() == 'unknown entity "brca-1"; the nearest known: "BRCA1", "BRCA2"'
    assert unknown_names(query("xyz", "TP53"), ENTITIES, RELATIONS)[0].warning() == 'unknown relation "xyz"'
    with pytest.raises(KeyError):
        to_ids(query("xyz", "TP53"), ENTITIES, RELATIONS)


def test_a_name_with_odd_characters_stays_on_one_line() -> None:
    (odd,) = unknown_names(query("treats", "line\nbreak\0"), ENTITIES, RELATIONS)
    assert odd.warning() == r"unknown entity 'line\nbreak\x00'"


def test_long_and_many_unknown_names_take_no_time() -> None:
    many = Intersection(tuple(Projection("treats", Anchor(f"drug {n}" + "x" * 100)) for n in range(2000)))
    vocabulary = [f"drug {n}" for n in range(2000)] + ["y" * 10**6]
    started = time.process_time()
    found = unknown_names(many, vocabulary, RELATIONS)
    assert unknown_names(Projection("treats", Anchor("z" * 10**6)), vocabulary, RELATIONS)[0].nearest == ()
    assert time.process_time() - started < 5
    assert len(found) == 2000
    assert found[-1].nearest == ()
