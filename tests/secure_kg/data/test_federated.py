"""Published splits are read exactly, and nothing malformed gets through."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from secure_kg.data.federated import read_federated
from secure_kg.data.graph import ClientGraph, Origin
from secure_kg.data.soundness import faults
from secure_kg.data.vocabulary import decode
from secure_kg.foundation.errors import DataError


def arrays(**changed: Any) -> dict[str, Any]:
    """Two clients; client 1 repeats a triple and leaks it into test, as published splits do."""
    split = {
        "n_clients": np.int32(2),
        "c0_train": np.array([[10, 1, 2], [2, 0, 10], [10, 1, 2]], np.int32),
        "c0_valid": np.array([[2, 1, 10]], np.int32),
        "c0_test": np.array([[10, 1, 2]], np.int32),
        "c0_ent": np.array([10, 2], np.int32),
        "c0_rel": np.array([1, 0], np.int32),
        "c1_train": np.array([[3, 2, 4]], np.uint16),
        "c1_valid": np.zeros((0, 3), np.int64),
        "c1_test": np.array([[4, 2, 3]], np.int64),
        "c1_ent": np.array([4, 3], np.int64),
        "c1_rel": np.array([2], np.int64),
        "train_recovered": np.array([0, 1], np.int8),
        "c1_unlearn": np.array([[3, 2, 4]], np.int32),
    } | changed
    return {name: array for name, array in split.items() if array is not None}


def write(folder: Path, **changed: Any) -> Path:
    np.savez_compressed(folder / "fed2.npz", **arrays(**changed))
    return folder / "fed2.npz"


def rows(graph: ClientGraph, part: Any) -> list[tuple[str, str, str]]:
    named = decode(graph.entities, graph.relations, graph.part(part))
    return list(zip(named.heads, named.relations, named.tails, strict=True))


def write_names(folder: Path, entities: list[str], relations: list[str]) -> None:
    for kind, names in (("entities", entities), ("relations", relations)):
        lines = "".join(f"{number}\t{name}\n" for number, name in enumerate(names))
        (folder / f"{kind}.tsv.gz").write_bytes(gzip.compress(lines.encode()))


def test_kept_exactly_with_decimal_names(tmp_path: Path) -> None:
    first, second = read_federated(write(tmp_path))
    assert first.entities == ("10", "2")  # sorted as names, not as numbers
    assert rows(first, "train") == [("10", "1", "2"), ("2", "0", "10"), ("10", "1", "2")]
    assert rows(first, "test") == [("10", "1", "2")]
    assert rows(second, "train") == [("3", "2", "4")]
    assert second.valid.shape == (0, 3)


def test_triples_that_other_clients_train_on_are_counted(tmp_path: Path) -> None:
    leaked = np.array([[10, 1, 2], [3, 2, 4], [2, 0, 10]])
    changed = {"c1_test": leaked, "c1_ent": np.array([2, 3, 4, 10]), "c1_rel": np.array([0, 1, 2])}
    first, second = read_federated(write(tmp_path, **changed))
    assert first.origin == Origin()
    assert second.origin == Origin(test_in_other_train=2)  # the third one is its own
    assert (faults(second).test_in_train, faults(second).test_trained_on) == (1, 3)


def test_names_from_beside_the_file(tmp_path: Path) -> None:
    write_names(tmp_path, [f"é{10 - number}" for number in range(11)], ["r", "q", "p"])
    first, _ = read_federated(write(tmp_path))
    assert first.entities == ("é0", "é8")
    assert rows(first, "train") == [("é0", "q", "é8"), ("é8", "r", "é0"), ("é0", "q", "é8")]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_clients": None}, "n_clients is missing"),
        ({"n_clients": np.array([2])}, r"n_clients has shape \(1,\)"),
        ({"n_clients": np.float64(2)}, "n_clients holds float64"),
        ({"n_clients": np.bool_(True)}, "n_clients holds bool"),
        ({"n_clients": np.int32(0)}, "n_clients is 0"),
        ({"n_clients": np.int32(-1)}, "n_clients holds values outside"),
        ({"n_clients": np.int32(3)}, "c2_train is missing"),
        ({"n_clients": np.int32(1)}, "c1_train belongs to no client"),
        ({"c0_test": None}, "c0_test is missing"),
        ({"c0_ent": None}, "c0_ent is missing"),
        ({"c0_train": np.array([[10.0, 1, 2]])}, "c0_train holds float64"),
        ({"c0_train": np.array([["a", "b", "c"]])}, "c0_train holds <U1"),
        ({"c0_train": np.array([10, 1, 2])}, "c0_train has shape"),
        ({"c0_train": np.array([[10, 1]])}, "c0_train has shape"),
        ({"c0_train": np.array([[-1, 1, 2]])}, "c0_train holds values outside"),
        ({"c0_train": np.array([[2**64 - 1, 1, 2]], np.uint64)}, "c0_train holds values outside"),
        ({"c0_train": np.array([[7, 1, 2]])}, "c0_ent does not list"),
        ({"c0_ent": np.array([10, 2, 2])}, "c0_ent does not list"),
        ({"c0_ent": np.array([[10, 2]])}, "c0_ent has shape"),
        ({"c0_rel": np.array([0, 1, 5])}, "c0_rel does not list"),
        ({"c0_train": np.array([[10, 1, 2]], dtype=object)}, "damaged, or not an .npz archive of integer arrays"),
    ],
)
def test_malformed_arrays(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_federated(write(tmp_path, **changed))


def test_ids_beyond_the_names(tmp_path: Path) -> None:
    write_names(tmp_path, ["only", "three", "names"], ["r", "q", "p"])
    with pytest.raises(DataError, match=r"values outside 0 \.\. 2"):
        read_federated(write(tmp_path))
    write_names(tmp_path, [f"e{number}" for number in range(11)], ["r"])
    with pytest.raises(DataError, match=r"c0_rel holds values outside 0 \.\. 0"):
        read_federated(write(tmp_path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("0\ta\n2\tb\n", "line 2: expected 1<TAB>name"),
        ("0 a\n", "line 1"),
        ("0\t\n", "line 1"),
        ("0\ta\tb\n", "line 1"),
        ("0\ta\n1\ta\n", "1 repeated names"),
    ],
)
def test_malformed_names(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "entities.tsv").write_text(content)
    with pytest.raises(DataError, match=message):
        read_federated(write(tmp_path))


def test_damaged_files(tmp_path: Path) -> None:
    whole = write(tmp_path).read_bytes()
    np.save(tmp_path / "single.npy", np.arange(3))
    contents = [b"", b"no archive", whole[: len(whole) // 2], (tmp_path / "single.npy").read_bytes()]
    middle = bytearray(whole)
    middle[60:90] = bytes(30)
    for content in (*contents, bytes(middle)):
        (tmp_path / "bad.npz").write_bytes(content)
        with pytest.raises(DataError, match=r"bad\.npz: "):
            read_federated(tmp_path / "bad.npz")
    with pytest.raises(DataError, match="cannot be read"):
        read_federated(tmp_path / "none.npz")
