"""Each fault is counted; a sound graph has none."""

import numpy as np
import pytest

from secure_kg.data.graph import ClientGraph
from secure_kg.data.soundness import check_complete, check_sound, problems
from secure_kg.errors import DataError

SOUND = {"train": [[0, 0, 1], [1, 0, 2], [2, 1, 0]], "valid": [[0, 0, 2]], "test": [[1, 1, 0]]}


def graph(**changed: list[list[int]]) -> ClientGraph:
    parts = {name: np.array(rows, dtype=np.int64).reshape(-1, 3) for name, rows in (SOUND | changed).items()}
    return ClientGraph(("a", "b", "c", "d"), ("r", "s", "t"), **parts)


def test_sound_graph() -> None:
    assert problems(graph()) == []
    check_sound(graph(), "client 1")
    check_complete(graph(), "client 1", "mend it")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"test": [[0, 0, 1], [1, 1, 0]]}, "1 of 2 test triples also stand in train"),
        ({"test": [[0, 0, 2]]}, "1 of 1 test triples also stand in valid"),
        ({"valid": [[0, 0, 1]]}, "1 of 1 valid triples also stand in train"),
        ({"valid": [[0, 0, 2]] * 3}, "2 repeated triples in valid"),
        ({"test": [[3, 0, 1], [3, 1, 1]]}, "1 entities of valid and test do not occur in train"),
        ({"valid": [[0, 2, 1]]}, "1 relations of valid and test do not occur in train"),
    ],
)
def test_each_fault_is_counted(changed: dict[str, list[list[int]]], expected: str) -> None:
    assert problems(graph(**changed)) == [expected]
    with pytest.raises(DataError, match=f"^client 1: {expected}$"):
        check_sound(graph(**changed), "client 1")


def test_all_faults_in_one_line() -> None:
    with pytest.raises(DataError, match=r"^here: 1 of 1 test .*; 1 repeated triples in train$"):
        check_sound(graph(train=[*SOUND["train"], [0, 0, 1]], test=[[0, 0, 1]]), "here")


@pytest.mark.parametrize(("part", "word"), [("train", "training"), ("valid", "validation"), ("test", "test")])
def test_empty_part(part: str, word: str) -> None:
    with pytest.raises(DataError, match=f"^client 3 has no {word} triples; use fewer$"):
        check_complete(graph(**{part: []}), "client 3", "use fewer")
