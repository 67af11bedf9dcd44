"""Drawn queries hold for their answers, repeat by their seed, lie in the graphs they should, and are not degenerate."""

import numpy as np
import pytest

from secure_kg.data.graph import ClientGraph
from secure_kg.foundation.errors import DataError
from secure_kg.foundation.seeds import generator, seed_sequence
from secure_kg.queries.answers import answer_rows, answers
from secure_kg.queries.clients import QueryClients
from secure_kg.queries.draw_programs import draw_program
from secure_kg.queries.edges import Ids, QueryGraph
from secure_kg.queries.form import Anchor, IdQuery, Intersection, Negation, Projection, QueryError, Union, relations
from secure_kg.queries.holders import Holders
from secure_kg.queries.sampling import Sampler, hard_queries
from secure_kg.queries.structures import STRUCTURES, WITH_NEGATION, Structure, read_row, type_of

ENTITIES, RELATIONS, CLIENTS = 60, 9, 3
DRAWS = 400


def client_graphs() -> list[ClientGraph]:
    """Three clients over the same entities; client k has relations 3 k to 3 k + 2."""
    names = tuple(f"e{number:02}" for number in range(ENTITIES))
    graphs = []
    for client in range(CLIENTS):
        rng = generator(7, "triples", client)
        triples = np.unique(rng.integers(0, [ENTITIES, 3, ENTITIES], size=(400, 3)), axis=0)
        triples = triples[rng.permutation(len(triples))]
        parts = triples[80:], triples[40:80], triples[:40]
        graphs.append(ClientGraph(names, tuple(f"r{3 * client + number}" for number in range(3)), *parts))
    return graphs


@pytest.fixture(scope="module")
def clients() -> QueryClients:
    return QueryClients.of(client_graphs())


@pytest.mark.parametrize("kind", STRUCTURES)
def test_the_drawn_answer_is_an_answer(clients: QueryClients, kind: str) -> None:
    graph = clients.own[1].train
    drawn = Sampler(graph, seed_sequence(1, kind)).draw(kind, DRAWS)
    found = answer_rows(graph, STRUCTURES[kind], drawn.rows)
    assert all(answer in every for answer, every in zip(drawn.answers, found, strict=True))
    assert len(np.unique(drawn.rows, axis=0)) > DRAWS // 3
    for row in drawn.rows[:50].tolist():
        query = read_row(STRUCTURES[kind], row)
        assert type_of(query) == kind
        assert clients.holders.holders_of(query) == [1]  # inverse relations too belong to their relation's client


def steps_back(query: IdQuery) -> bool:
    """Whether some projection goes back over the relation right below it."""
    match query:
        case Projection(relation=relation, of=of, inverse=inverse):
            below = of.parts if isinstance(of, Intersection | Union) else (of,)
            inner = [part.of if isinstance(part, Negation) else part for part in below]
            plain = [part for part, kept in zip(inner, below, strict=True) if not isinstance(kept, Negation)]
            undone = any(
                isinstance(part, Projection) and (part.relation, part.inverse) == (relation, not inverse)
                for part in plain
            )
            return undone or any(steps_back(part) for part in inner)
        case Intersection(parts=parts) | Union(parts=parts):
            return any(map(steps_back, parts))
        case Negation(of=of):
            return steps_back(of)
    return False


@pytest.mark.parametrize("kind", STRUCTURES)
def test_no_query_is_degenerate(clients: QueryClients, kind: str) -> None:
    for row in Sampler(clients.together.test, seed_sequence(2, kind)).draw(kind, DRAWS).rows.tolist():
        query = read_row(STRUCTURES[kind], row)
        assert not steps_back(query)
        assert type_of(query) == kind  # with two equal branches it would be of a smaller type


@pytest.mark.parametrize("kind", WITH_NEGATION)
def test_negation_takes_something_away(clients: QueryClients, kind: str) -> None:
    """For the negated branch is drawn from an answer of the first positive one."""
    graph, structure = clients.own[0].test, STRUCTURES[kind]
    drawn = Sampler(graph, seed_sequence(3, kind)).draw(kind, DRAWS)
    node = structure.of if isinstance(structure, Projection) else structure
    assert isinstance(node, Intersection)
    first = next(part for part in node.parts if not isinstance(part, Negation))
    negated = next(part.of for part in node.parts if isinstance(part, Negation))
    common = [entities_of(graph, first, drawn.rows, n) & entities_of(graph, negated, drawn.rows, n) for n in range(100)]
    assert all(common)


def entities_of(graph: QueryGraph, part: Structure, rows: Ids, n: int) -> set[int]:
    return set(answers(graph, read_row(part, rows[n].tolist())).tolist())


@pytest.mark.parametrize("kind", [kind for kind in STRUCTURES if kind != "1p"])
def test_cross_graph_queries_lie_in_no_single_graph(clients: QueryClients, kind: str) -> None:
    drawn = Sampler(clients.together.test, seed_sequence(4, kind), clients.holders).draw(kind, DRAWS)
    assert clients.holders.cross_graph(STRUCTURES[kind], drawn.rows).all()
    for row in drawn.rows.tolist():
        query = read_row(STRUCTURES[kind], row)
        assert clients.holders.holders_of(query) == []
        owners = {int(clients.relations[relation].removeprefix("r")) // 3 for relation in relations(query)}
        assert len(owners) > 1
    anywhere = Sampler(clients.together.test, seed_sequence(4, kind)).draw(kind, DRAWS)
    assert not clients.holders.cross_graph(STRUCTURES[kind], anywhere.rows).all()  # the check can fail


def test_the_same_stream_gives_the_same_queries(clients: QueryClients) -> None:
    one, same, other = (Sampler(clients.together.train, seed_sequence(seed, "q")) for seed in (0, 0, 1))
    first = one.draw("pi", 50).rows
    assert (first == same.draw("pi", 50).rows).all()
    assert (first != other.draw("pi", 50).rows).any()
    assert (first != one.draw("pi", 50).rows).any()  # the stream goes on


def test_a_recorded_draw_is_drawn_again() -> None:
    """The generator is written out in its module: these rows may not change with a version of numpy or numba."""
    graph = QueryGraph.of(np.array([[h, r, (3 * h + r) % 10] for h in range(10) for r in range(3)]), 10, 3)
    drawn = Sampler(graph, seed_sequence(0, "recorded")).draw("2p", 4)
    assert drawn.rows.tolist() == [[5, 5, 0], [8, 0, 4], [2, 4, 1], [1, 4, 0]]


@pytest.mark.parametrize("kind", ["1p", "2i", "up", "pni"])
def test_queries_for_evaluation_differ_and_have_hard_answers(clients: QueryClients, kind: str) -> None:
    stages = clients.together
    sampler = Sampler(stages.test, seed_sequence(5, kind), clients.holders if kind != "1p" else None)
    found = hard_queries(sampler, kind, 60, stages.valid, stages.test)
    assert len(np.unique(found.rows, axis=0)) == len(found.rows) == 60
    assert (found.judged.hard.counts > 0).all()
    assert (found.judged.easy.counts > 0).any()


def test_what_cannot_be_drawn_is_refused_in_one_line(clients: QueryClients) -> None:
    one_edge = QueryGraph.of(np.array([[0, 0, 1]]), 3, 2)
    stream = seed_sequence(0, "none")
    assert len(Sampler(one_edge, stream).draw("1p", 5).rows) == 5
    with pytest.raises(QueryError, match="there are 1p, 2p"):
        Sampler(one_edge, stream).draw("4p", 1)
    with pytest.raises(DataError, match="no query of type 3i was found in a graph of 1 edges"):
        Sampler(one_edge, stream).draw("3i", 1)
    with pytest.raises(DataError, match="no query of type 1p"):
        Sampler(QueryGraph.of(np.empty((0, 3), np.int64), 3, 2), stream).draw("1p", 1)
    with pytest.raises(DataError, match="one atom"):
        Sampler(clients.together.test, stream, clients.holders).draw("1p", 1)
    everybody = Holders.of([range(RELATIONS)] * 2, RELATIONS)
    with pytest.raises(DataError, match="no cross-graph query of type 2p"):
        Sampler(clients.together.test, stream, everybody).draw("2p", 1)
    with pytest.raises(DataError, match="no client holds"):
        Sampler(clients.together.test, stream, Holders.of([[0], [1]], RELATIONS))
    with pytest.raises(DataError, match="0 queries of type 2p with hard answers"):
        hard_queries(Sampler(clients.own[0].test, stream), "2p", 5, clients.own[0].test, clients.own[0].test)


def test_structures_that_cannot_be_drawn_are_refused() -> None:
    branch: Structure = Projection(1, Anchor(0))
    with pytest.raises(QueryError, match="outside of an intersection"):
        draw_program(Negation(branch))
    with pytest.raises(QueryError, match="are negated"):
        draw_program(Intersection((Negation(branch), Negation(branch))))
    with pytest.raises(QueryError, match="two steps"):
        draw_program(Intersection((branch, Negation(Union((branch, branch))))))


def test_holders_of_more_clients_than_a_word_has_bits() -> None:
    holders = Holders.of([[client % RELATIONS] for client in range(130)], RELATIONS)
    atom = Projection(1, Anchor(0), True)
    assert holders.holders_of(atom) == [client for client in range(130) if client % RELATIONS == 1]
    assert holders.holders_of(Intersection((atom, Projection(2, Anchor(0))))) == []
    rows = np.array([[0, 2, 3], [0, 2, 5]], dtype=np.int32)
    assert holders.cross_graph(STRUCTURES["2p"], rows).tolist() == [False, True]
    assert Holders.of([[0], [1]], 3).cross_graph(STRUCTURES["2p"], np.array([[0, 0, 4]])).tolist() == [False]
    with pytest.raises(QueryError, match="without a relation"):
        holders.holders_of(Anchor(0))


def test_clients_show_sizes_only(clients: QueryClients) -> None:
    assert repr(clients) == f"QueryClients(3 clients, {ENTITIES} entities, {RELATIONS} relations)"
