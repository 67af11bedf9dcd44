"""Each fault is counted as one would by hand; damage is refused unless allowed, blemishes never."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secure_kg.data.graph import ClientGraph, Origin
from secure_kg.data.soundness import Faults, check_complete, check_split, faults, trained_elsewhere
from secure_kg.foundation.errors import DataError

SOUND = {"train": [[0, 0, 1], [1, 0, 2], [2, 1, 0]], "valid": [[0, 0, 2]], "test": [[1, 1, 0]]}


def graph(**changed: list[list[int]]) -> ClientGraph:
    parts = {name: np.array(rows, dtype=np.int64).reshape(-1, 3) for name, rows in (SOUND | changed).items()}
    return ClientGraph(("a", "b", "c", "d"), ("r", "s", "t"), **parts)


def test_sound_graph() -> None:
    assert faults(graph()) == Faults(valid_triples=1, test_triples=1)
    found = check_split([graph(), graph()], "here", allow_leaky=False)
    assert (found.damage(), found.blemishes(), found.test_triples) == ([], [], 2)
    check_complete(graph(), "client 1", "mend it")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"test": [[0, 0, 1], [1, 1, 0]]}, "1 of 2 test triples also stand in train"),
        ({"test": [[0, 0, 2]]}, "1 of 1 test triples also stand in valid"),
        ({"valid": [[0, 0, 1]]}, "1 of 1 valid triples also stand in train"),
        ({"train": [*SOUND["train"], [0, 0, 1]]}, "1 repeated triples in train"),
        ({"valid": [[0, 0, 2]] * 3}, "2 repeated triples in valid"),
        ({"test": [[1, 1, 0]] * 2}, "1 repeated triples in test"),
    ],
)
def test_damage_is_counted_and_refused(changed: dict[str, list[list[int]]], expected: str) -> None:
    damaged = graph(**changed)
    assert faults(damaged).damage() == [expected]
    assert faults(damaged).blemishes() == []
    with pytest.raises(DataError, match=f"^client 1: damaged split, refused without --allow-leaky-split: {expected}$"):
        check_split([damaged], "client 1", allow_leaky=False)
    assert check_split([damaged], "client 1", allow_leaky=True) == faults(damaged)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"test": [[3, 0, 1], [3, 1, 1]]}, ["1 entities of valid and test do not occur in train", "2 of 2"]),
        ({"valid": [[0, 2, 1]]}, ["1 relations of valid and test do not occur in train", "0 of 1"]),
    ],
)
def test_blemishes_are_counted_and_taken(changed: dict[str, list[list[int]]], expected: list[str]) -> None:
    found = check_split([graph(**changed)], "client 1", allow_leaky=False)
    assert found.blemishes() == [expected[0], f"they stand in {expected[1]} test triples"]
    assert found.damage() == []


def test_what_others_train_on_is_damage_too() -> None:
    origin = Origin(valid_in_other_train=1, test_in_other_train=1)
    leaky = ClientGraph(graph().entities, graph().relations, *(graph().part(p) for p in SOUND), origin=origin)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"1 of 2 test triples stand in another client's train only; 1 of 2 valid"):
        check_split([graph(), leaky], "here", allow_leaky=False)


def test_all_faults_in_one_line_worst_first() -> None:
    with pytest.raises(DataError, match=r"^here: damaged .*: 1 of 1 test .*; 1 repeated triples in train$"):
        check_split([graph(train=[*SOUND["train"], [0, 0, 1]], test=[[0, 0, 1]])], "here", allow_leaky=False)


@pytest.mark.parametrize(("part", "word"), [("train", "training"), ("valid", "validation"), ("test", "test")])
def test_empty_part(part: str, word: str) -> None:
    with pytest.raises(DataError, match=f"^client 3 has no {word} triples; use fewer$"):
        check_complete(graph(**{part: []}), "client 3", "use fewer")


Rows = list[tuple[int, int, int]]
rows = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), max_size=15)


@pytest.mark.long
@given(clients=st.lists(st.tuples(rows, rows, rows), min_size=1, max_size=4), stretch=st.sampled_from([1, 2**28]))
@settings(deadline=None, max_examples=80)
def test_counts_are_those_of_a_count_by_hand(clients: list[tuple[Rows, Rows, Rows]], stretch: int) -> None:
    arrays = [[np.array(part, dtype=np.int64).reshape(-1, 3) for part in parts] for parts in clients]
    origins = trained_elsewhere([[part * stretch for part in parts] for parts in arrays])  # ids may be far apart
    for number, ((train, valid, test), origin) in enumerate(zip(clients, origins, strict=True)):
        found = faults(ClientGraph(tuple("abcdef"), tuple("rst"), *arrays[number], origin=origin))
        others = {row for other, parts in enumerate(clients) if other != number for row in parts[0]}
        entities, relations = {name for row in train for name in (row[0], row[2])}, {row[1] for row in train}
        held_out = {name for row in valid + test for name in (row[0], row[2])}
        expected: dict[str, Any] = {
            "valid_triples": len(valid),
            "test_triples": len(test),
            "test_in_valid": sum(row in valid for row in test),
            "untrained_entities": len(held_out - entities),
            "untrained_relations": len({row[1] for row in valid + test} - relations),
            "dropped_repeats": 0,
        }
        for name, part in (("train", train), ("valid", valid), ("test", test)):
            expected[f"repeated_in_{name}"] = len(part) - len(set(part))
        for name, part in (("valid", valid), ("test", test)):
            expected[f"{name}_in_train"] = sum(row in train for row in part)
            expected[f"{name}_in_other_train"] = sum(row in others and row not in train for row in part)
            expected[f"{name}_with_untrained"] = sum(
                not {row[0], row[2]} <= entities or row[1] not in relations for row in part
            )
        assert found.counts() == expected
        assert found.test_trained_on == sum(row in train or row in others for row in test)
