"""Ids depend on the set of names only, and every way back gives the same names."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secure_kg.data.triples import NamedTriples
from secure_kg.data.vocabulary import client_graph, compact, decode, distinct, encode, triple_keys
from secure_kg.foundation.errors import DataError

rows = st.lists(st.tuples(*[st.text(min_size=1, max_size=3)] * 3), min_size=1, max_size=20)


def named(triples: list[tuple[str, str, str]]) -> NamedTriples:
    return NamedTriples(*map(tuple, zip(*triples, strict=True)))


@given(rows=rows)
@settings(deadline=None)
def test_encode_and_decode(rows: list[tuple[str, str, str]]) -> None:
    entities, relations, (triples,) = encode([named(rows)])
    assert list(entities) == sorted({name for head, _, tail in rows for name in (head, tail)})
    assert list(relations) == sorted({relation for _, relation, _ in rows})
    assert triples.shape == (len(rows), 3)
    assert triples.dtype == np.int64
    assert decode(entities, relations, triples) == named(rows)


@given(rows=rows, data=st.data())
@settings(deadline=None)
def test_client_graph_keeps_only_its_own_names(rows: list[tuple[str, str, str]], data: st.DataObject) -> None:
    entities, relations, (triples,) = encode([named(rows)])
    cut = data.draw(st.integers(0, len(rows)))
    graph = client_graph(entities.__getitem__, relations.__getitem__, triples[:cut], triples[:0], triples[:0])
    if cut:
        again = encode([named(rows[:cut])])
        assert (graph.entities, graph.relations) == again[:2]
        assert np.array_equal(graph.train, again[2][0])
    else:
        assert (graph.entities, graph.relations, graph.train.shape) == ((), (), (0, 3))


def test_compact_sorts_names_of_unsorted_ids() -> None:
    entities, relations, (part,) = compact(["z", "unused", "a"].__getitem__, str, [np.array([[0, 10, 2], [2, 9, 2]])])
    assert (entities, relations) == (("a", "z"), ("10", "9"))
    assert part.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert compact(str, str, []) == ((), (), [])


@given(triples=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3)), max_size=60))
@settings(deadline=None)
def test_distinct_is_the_sorted_set(triples: list[tuple[int, int, int]]) -> None:
    different, removed = distinct(np.array(triples, dtype=np.int64).reshape(-1, 3), 4, 3)
    assert [tuple(row) for row in different.tolist()] == sorted(set(triples))
    assert removed == len(triples) - len(set(triples))


def test_keys_refuse_to_overflow() -> None:
    with pytest.raises(DataError, match="too many"):
        triple_keys(np.zeros((1, 3), np.int64), 2**31, 2)
