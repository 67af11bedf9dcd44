"""Exact answers equal brute force, for any form and for tables of every named type; easy and hard sets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secure_kg.foundation.errors import DataError
from secure_kg.queries.answers import AnswerSets, answer_rows, answers, staged_answers
from secure_kg.queries.edges import Ids, QueryGraph, Stages
from secure_kg.queries.form import Anchor, IdQuery, Negation, Projection, QueryError
from secure_kg.queries.structures import STRUCTURES, Structure, columns, read_row, relation_columns
from tests.support.small_queries import ENTITIES, RELATIONS, Triple, brute_force, graphs, id_queries


def graph_of(triples: list[Triple]) -> QueryGraph:
    return QueryGraph.of(np.array(triples, dtype=np.int64).reshape(-1, 3), ENTITIES, RELATIONS)


def table_of(structure: Structure, numbers: list[int]) -> Ids:
    """A table of random ids: each column's numbers are cut to its range."""
    width = columns(structure)
    rows = np.array(numbers, dtype=np.int32)[: len(numbers) // width * width].reshape(-1, width)
    labels = relation_columns(structure)
    rows %= [2 * RELATIONS if column in labels else ENTITIES for column in range(width)]
    return rows


@given(graphs, id_queries(leaves=6))
@settings(max_examples=150)
def test_answers_of_any_form_equal_brute_force(triples: list[Triple], query: IdQuery) -> None:
    assert answers(graph_of(triples), query).tolist() == sorted(brute_force(triples, query))


@pytest.mark.parametrize("kind", STRUCTURES)
@given(st.tuples(graphs, graphs, graphs), st.lists(st.integers(0, 59), min_size=6, max_size=40))
@settings(max_examples=12)
def test_easy_and_hard_answers_of_every_type_equal_brute_force(
    kind: str, parts: tuple[list[Triple], list[Triple], list[Triple]], numbers: list[int]
) -> None:
    structure = STRUCTURES[kind]
    rows = table_of(structure, numbers)
    train, valid, test = parts
    arrays = [np.array(part, dtype=np.int64).reshape(-1, 3) for part in parts]
    found = staged_answers(Stages.of(arrays, ENTITIES, RELATIONS), structure, rows)
    for number, row in enumerate(rows.tolist()):
        query = read_row(structure, row)
        first, second, third = (brute_force(triples, query) for triples in (train, train + valid, train + valid + test))
        assert sorted(found.train[number]) == sorted(first)
        assert sorted(found.valid.easy[number]) == sorted(second & first)
        assert sorted(found.valid.hard[number]) == sorted(second - first)
        assert sorted(found.test.easy[number]) == sorted(third & second)
        assert sorted(found.test.hard[number]) == sorted(third - second)


def test_an_answer_that_a_larger_graph_takes_away_is_neither_easy_nor_hard() -> None:
    train, valid = [(0, 0, 1), (0, 0, 2)], [(3, 1, 1)]
    rows = np.array([[0, 0, 3, 2]], dtype=np.int32)  # from 0 along relation 0, and not from 3 along relation 1
    stages = Stages.of([np.array(train), np.array(valid), np.empty((0, 3), np.int64)], ENTITIES, RELATIONS)
    found = staged_answers(stages, STRUCTURES["2in"], rows)
    assert sorted(found.train[0]) == [1, 2]
    assert (found.valid.easy[0].tolist(), found.valid.hard[0].tolist()) == ([2], [])


def test_a_complement_is_of_the_whole_vocabulary() -> None:
    graph = graph_of([(0, 0, 1)])
    assert answers(graph, Negation(Projection(0, Anchor(0)))).tolist() == [0, 2, 3, 4, 5]
    assert answers(graph_of([]), Negation(Anchor(2))).tolist() == [0, 1, 3, 4, 5]


@pytest.mark.parametrize("query", [Anchor(ENTITIES), Anchor(-1), Projection(RELATIONS, Anchor(0)), Anchor(2**40)])
def test_ids_outside_of_the_vocabulary_are_refused(query: IdQuery) -> None:
    with pytest.raises(QueryError, match="outside"):
        answers(graph_of([(0, 0, 1)]), query)


def test_tables_and_triples_of_the_wrong_form_are_refused() -> None:
    graph = graph_of([(0, 0, 1)])
    with pytest.raises(QueryError, match="3 columns"):
        answer_rows(graph, STRUCTURES["2p"], np.zeros((2, 2), np.int32))
    with pytest.raises(DataError, match="outside"):
        QueryGraph.of(np.array([[0, RELATIONS, 1]]), ENTITIES, RELATIONS)
    with pytest.raises(DataError, match="too many"):
        QueryGraph.of(np.empty((0, 3), np.int64), 2**31, 1)


def test_sets_of_different_numbers_of_queries_are_not_compared() -> None:
    one = AnswerSets(np.array([0, 1]), np.array([3], np.int32))
    none = AnswerSets(np.array([0]), np.array([], np.int32))
    assert (len(one), [found.tolist() for found in one]) == (1, [[3]])
    with pytest.raises(ValueError, match="1 and of 0"):
        one.without(none)
    with pytest.raises(IndexError):
        one[1]


def test_some_of_the_sets_are_chosen() -> None:
    sets = AnswerSets(np.array([0, 2, 2, 3]), np.array([4, 5, 6], np.int32))
    assert [found.tolist() for found in sets.chosen(np.array([True, False, True]))] == [[4, 5], [6]]


def test_the_graph_shows_sizes_only() -> None:
    assert repr(graph_of([(0, 0, 1), (0, 0, 1), (1, 2, 1)])) == "QueryGraph(6 entities, 3 relations, 2 edges)"
