"""Every triple has exactly one place, held-out names are trained, and the same seed gives the same partition."""

import hashlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from secure_kg.data.graph import ClientGraph, Part
from secure_kg.data.partition import DIVIDING_RULES, By, divide, load_client, partition
from secure_kg.data.soundness import Faults, check_split, faults
from secure_kg.data.sources import FederatedSource, PooledSource, load_source
from secure_kg.data.triples import PARTS, NamedTriples
from secure_kg.data.vocabulary import decode, distinct, encode
from secure_kg.foundation.errors import DataError

Row = tuple[str, str, str]


def source_of(rows: list[Row]) -> PooledSource:
    entities, relations, (triples,) = encode([NamedTriples(*map(tuple, zip(*rows, strict=True)))])
    return PooledSource(entities, relations, *distinct(triples, len(entities), len(relations)))


def rows_of(graph: ClientGraph, parts: tuple[Part, ...] = PARTS) -> list[Row]:
    named = [decode(graph.entities, graph.relations, graph.part(part)) for part in parts]
    return [row for part in named for row in zip(part.heads, part.relations, part.tails, strict=True)]


def all_rows(source: PooledSource) -> list[Row]:
    named = decode(source.entities, source.relations, source.triples)
    return list(zip(named.heads, named.relations, named.tails, strict=True))


@st.composite
def sources(draw: st.DrawFn) -> PooledSource:
    """Graphs dense enough that most partitions succeed, with names from all of Unicode."""
    entities = draw(st.lists(st.text(min_size=1, max_size=4), min_size=2, max_size=9, unique=True))
    relations = draw(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=5, unique=True))
    row = st.tuples(st.sampled_from(entities), st.sampled_from(relations), st.sampled_from(entities))
    return source_of(draw(st.lists(row, min_size=40, max_size=120)))


@pytest.mark.long
@given(source=sources(), clients=st.integers(1, 4), by=st.sampled_from(DIVIDING_RULES), seed=st.integers(0, 2**70))
@settings(deadline=None, max_examples=80)
def test_partition_properties(source: PooledSource, clients: int, by: By, seed: int) -> None:
    try:
        graphs = partition(source, clients, by, seed)
    except DataError:  # a client got too little; the messages have their own test
        event("refused")
        return
    event("divided")
    # Nothing is lost, and nothing stands twice: not in a part, not in two parts, not at two clients.
    assert Counter(row for graph in graphs for row in rows_of(graph)) == Counter(all_rows(source))
    assert len(set(all_rows(source))) == len(all_rows(source))
    for graph in graphs:
        train, valid, test = (set(rows_of(graph, (part,))) for part in PARTS)
        assert len(train) + len(valid) + len(test) == len(train | valid | test)
        trained = {name for row in train for name in (row[0], row[2])}
        assert {name for row in valid | test for name in (row[0], row[2])} <= trained
        assert {row[1] for row in valid | test} <= {row[1] for row in train}
        assert faults(graph) == Faults(valid_triples=len(graph.valid), test_triples=len(graph.test))
        assert list(graph.entities) == sorted({name for row in rows_of(graph) for name in (row[0], row[2])})
        assert list(graph.relations) == sorted({row[1] for row in rows_of(graph)})
    again = partition(source, clients, by, seed)
    assert list(map(rows_of, graphs)) == list(map(rows_of, again))
    owners = {
        "triples": None,
        "relations": [set(graph.relations) for graph in graphs],
        "entities": [{row[0] for row in rows_of(graph)} for graph in graphs],
    }[by]
    if owners is None:
        sizes = [len(rows_of(graph)) for graph in graphs]
        assert max(sizes) - min(sizes) <= 1
    else:
        assert sum(map(len, owners)) == len(set().union(*owners))  # nothing has two owners


local_triples = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 3), st.integers(0, 12)), min_size=0, max_size=150, unique=True
)


@given(rows=local_triples, seed=st.integers(0, 1000))
@settings(deadline=None, max_examples=200)
def test_divide_properties(rows: list[tuple[int, int, int]], seed: int) -> None:
    triples = np.array(sorted(rows), dtype=np.int64).reshape(-1, 3)
    train, valid, test = divide(triples, np.random.default_rng(seed))
    assert sorted(map(tuple, np.concatenate((train, valid, test)).tolist())) == sorted(rows)
    tenth = max(1, (len(rows) + 5) // 10)
    assert len(valid) <= len(test) <= tenth
    assert len(test) - len(valid) <= 1
    held_out = np.concatenate((valid, test))
    assert set(held_out[:, [0, 2]].ravel()) <= set(train[:, [0, 2]].ravel())
    assert set(held_out[:, 1]) <= set(train[:, 1])


def test_divide_is_nearly_uniform() -> None:
    # A hub with many neighbours, each with three links: all can be held out, and none much more often than another.
    pairs = [(0, 0, leaf) for leaf in range(1, 41)] + [(leaf, 1, leaf % 40 + 1) for leaf in range(1, 41)]
    triples = np.array(pairs, dtype=np.int64)
    chosen = Counter()
    for seed in range(400):
        _, valid, test = divide(triples, np.random.default_rng(seed))
        chosen.update(map(tuple, np.concatenate((valid, test)).tolist()))
    assert set(chosen) == set(pairs)
    assert max(chosen.values()) < 3 * min(chosen.values())


@pytest.mark.parametrize("by", DIVIDING_RULES)
def test_umls_is_divided_80_10_10(by: By) -> None:
    source = load_source("umls")
    graphs = partition(source, 5, by, 0)
    for graph in graphs:
        total = len(graph.train) + len(graph.valid) + len(graph.test)
        assert len(graph.valid) == len(graph.test) == (total + 5) // 10
        assert not faults(graph).damage() + faults(graph).blemishes()
    if by != "relations":
        sizes = [len(graph.train) for graph in graphs]
        assert max(sizes) < 1.1 * min(sizes)
    else:
        assert sorted(len(graph.relations) for graph in graphs) == [9, 9, 9, 9, 10]


# Own vectors (numpy 2.4): a change of rule or of numpy's streams changes every result, so it must not pass unnoticed.
FINGERPRINTS = {"triples": "f5ce51dc34669df9", "relations": "9a29b6dbfdd23126", "entities": "9cd0dc1bd8b84142"}


@pytest.mark.parametrize("by", DIVIDING_RULES)
def test_umls_partition_is_the_same_everywhere(by: By) -> None:
    digest = hashlib.sha256()
    for graph in partition(load_source("umls"), 5, by, 0):
        digest.update("\n".join("\t".join(row) for row in rows_of(graph)).encode())
    assert digest.hexdigest()[:16] == FINGERPRINTS[by]


def test_seeds_and_rules_give_different_partitions() -> None:
    source = load_source("nations")
    results = {
        repr([rows_of(graph) for graph in partition(source, clients, by, seed)])
        for by in DIVIDING_RULES
        for seed in (0, 1)
        for clients in (2, 3)
    }
    assert len(results) == 12


def test_a_client_derives_its_own_part() -> None:
    graphs = partition(load_source("umls"), 3, "relations", 7)
    for client, graph in enumerate(graphs, start=1):
        own = load_client("umls", 3, client, "relations", 7)
        assert rows_of(own) == rows_of(graph)
        assert own.entities == graph.entities


@pytest.mark.parametrize("client", [0, -1, 4])
def test_no_such_client(client: int) -> None:
    with pytest.raises(DataError, match=rf"^client {client} is not one of 1 \.\. 3$"):
        load_client("umls", 3, client, "triples", 0)


def test_bad_arguments() -> None:
    source = load_source("nations")
    with pytest.raises(DataError, match="at least 1"):
        partition(source, 0, "triples", 0)
    with pytest.raises(DataError, match="choose one of triples, relations, entities, whole"):
        partition(source, 2, "colour", 0)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="negative"):
        partition(source, 2, "triples", -1)


def test_too_many_clients() -> None:
    source = source_of([("a", "r", f"b{number}") for number in range(3)])
    with pytest.raises(DataError, match=r"^client 1 has no training triples; use fewer clients or another split$"):
        partition(source, 2, "entities", 0)
    with pytest.raises(DataError, match=r"^client 4 has no training triples; "):
        partition(source, 10**15, "triples", 0)
    with pytest.raises(DataError, match=r"^client 1 has no validation triples; "):
        partition(source, 1, "triples", 0)


def test_published_split_is_kept() -> None:
    first, second = partition(load_source("nations"), 2, "relations", 0)
    source = FederatedSource((second, first))
    assert partition(source, 2, "triples", 5) == [second, first]
    with pytest.raises(DataError, match="has 2 clients, not 3"):
        partition(source, 3, "triples", 0)
    empty = ClientGraph(first.entities, first.relations, first.train[:0], first.valid, first.test)
    with pytest.raises(DataError, match="client 2 has no training triples"):
        partition(FederatedSource((first, empty)), 2, "triples", 0)


# --- not divided ----------------------------------------------------------------------------------------------------


def write_parts(folder: Path, **parts: str) -> str:
    folder.mkdir()
    for name, text in parts.items():
        (folder / f"{name}.tsv").write_text(text)
    return str(folder)


def test_whole_is_the_data_set_as_published(tmp_path: Path) -> None:
    """Rows, their order and names of held-out parts stay; only repeated lines of train are left out, and counted."""
    train = "b\tr\tc\na\tr\tb\nb\tr\tc\nc\ts\ta\n"
    dataset = write_parts(tmp_path / "data", train=train, valid="b\tr\ta\n", test="z\tr\ta\na\tr\tc\n")
    (graph,) = partition(load_source(dataset), 1, "whole", 0)
    assert graph.entities == ("a", "b", "c", "z")
    assert rows_of(graph, ("train",)) == [("b", "r", "c"), ("a", "r", "b"), ("c", "s", "a")]
    assert rows_of(graph, ("valid",)) == [("b", "r", "a")]
    assert rows_of(graph, ("test",)) == [("z", "r", "a"), ("a", "r", "c")]
    found = check_split([graph], "here", allow_leaky=False)
    assert (found.untrained_entities, found.test_with_untrained, found.dropped_repeats) == (1, 1, 1)


@pytest.mark.parametrize("name", ["umls", "kinships", "nations"])
def test_whole_is_sound_for_the_included_data_sets(name: str) -> None:
    source = load_source(name)
    assert isinstance(source, PooledSource)
    graph = load_client(name, 1, 1, "whole", 0)
    assert sorted(rows_of(graph)) == all_rows(source)
    assert [len(graph.part(part)) for part in PARTS] == [len(part) for part in source.parts or ()]
    assert not faults(graph).damage() + faults(graph).blemishes()


def test_whole_with_leaks_is_refused_unless_allowed(tmp_path: Path) -> None:
    train = "a\tr\tb\nb\tr\tc\nc\tr\ta\n"
    dataset = write_parts(tmp_path / "data", train=train, valid="a\tr\tc\n", test="a\tr\tb\na\tr\tc\n")
    with pytest.raises(DataError, match=r"data: damaged split, refused without --allow-leaky-split: 1 of 2 test"):
        load_client(dataset, 1, 1, "whole", 0)
    assert len(load_client(dataset, 1, 1, "whole", 0, allow_leaky=True).test) == 2


def test_whole_needs_one_client_and_published_parts(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^--by whole gives one client .* it cannot serve 2 clients$"):
        partition(load_source("nations"), 2, "whole", 0)
    folder = write_parts(tmp_path / "data", train="a\tr\tb\n", test="b\tr\ta\n")
    for dataset in (folder, f"{folder}/train.tsv"):
        with pytest.raises(DataError, match=r"^--by whole needs published train, valid and test parts"):
            partition(load_source(dataset), 1, "whole", 0)
