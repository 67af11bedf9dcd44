"""Published query sets: read as written, compared row by row, and refused with the name of the array at fault."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from secure_kg.foundation.errors import DataError
from secure_kg.queries.answers import answer_rows
from secure_kg.queries.published import different_answers, read_names, read_queries, read_stages
from secure_kg.queries.structures import STRUCTURES, read_row

TRIPLES = {
    "train": "a\tlikes\tb\nb\tlikes\tc\na\tknows\tc\n",
    "valid": "c\tlikes\td\nstranger\tlikes\ta\n",
    "test": "d\tknows\ta\nc\tknows\tb\n",
}
ARRAYS = {
    "2p_q": np.array([[0, 0, 0], [1, 0, 3]]),  # who is liked by those whom a likes; who knows those whom b likes
    "2p_hard_ptr": np.array([0, 0, 0]),
    "2p_hard_idx": np.array([], dtype=np.int64),
    "2p_n_all": np.array([1, 1]),
    "2in_q": np.array([[0, 0, 2, 2]]),  # whom a likes, but c does not know
}


def write(folder: Path, **changed: "np.ndarray[tuple[int, ...], np.dtype[np.int64]] | None") -> Path:
    for part, text in TRIPLES.items():
        (folder / f"{part}.tsv").write_text(text)
    (folder / "entities.tsv.gz").write_bytes(gzip.compress(b"0\ta\n1\tb\n2\tc\n3\td\n"))
    (folder / "relations.tsv").write_text("0\tlikes\n1\tlikes_reverse\n2\tknows\n3\tknows_reverse\n")
    arrays = {name: array for name, array in {**ARRAYS, **changed}.items() if array is not None}
    np.savez(folder / "queries-test.npz", **arrays)
    return folder / "queries-test.npz"


def test_answers_are_as_published(tmp_path: Path) -> None:
    path = write(tmp_path)
    names = read_names(tmp_path)
    assert (names.entities, names.relations) == (("a", "b", "c", "d"), ("likes", "knows"))
    stages, left_out = read_stages(tmp_path, names)
    assert left_out == 1  # of a stranger, whom the list of entities has not
    queries = read_queries(path, names)
    assert list(queries) == ["2p", "2in"]
    assert queries["2in"].hard is None
    for queries_of_kind in queries.values():
        kind = STRUCTURES[queries_of_kind.kind]
        every = answer_rows(stages.test, kind, queries_of_kind.rows)
        hard = every.without(answer_rows(stages.valid, kind, queries_of_kind.rows))
        assert different_answers(queries_of_kind, hard, every.counts).tolist() == []
    assert read_row(STRUCTURES["2p"], queries["2p"].rows[1].tolist()).inverse  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changed", "rows"),
    [
        ({"2p_n_all": np.array([1, 2])}, [1]),
        ({"2p_hard_ptr": np.array([0, 1, 1]), "2p_hard_idx": np.array([2])}, [0]),
        ({"2p_n_all": np.array([0, 0])}, [0, 1]),
    ],
)
def test_answers_that_are_not_as_published_are_noticed(
    tmp_path: Path, changed: "dict[str, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]", rows: list[int]
) -> None:
    path = write(tmp_path, **changed)
    names = read_names(tmp_path)
    stages, _ = read_stages(tmp_path, names)
    published = read_queries(path, names)["2p"]
    every = answer_rows(stages.test, STRUCTURES["2p"], published.rows)
    hard = every.without(answer_rows(stages.valid, STRUCTURES["2p"], published.rows))
    assert different_answers(published, hard, every.counts).tolist() == rows


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"4p_q": np.zeros((1, 5), np.int64)}, "array 4p_q is of no known type"),
        ({"2p_q": np.zeros((2, 4), np.int64)}, r"array 2p_q has shape \(2, 4\)"),
        ({"2p_q": np.array([[0, 0, 9], [0, 0, 0]])}, "array 2p_q holds values outside"),
        ({"2in_q": np.array([[4, 0, 0, 0]])}, "array 2in_q holds values outside"),
        ({"2p_q": np.array([[0.5, 0, 0]])}, "array 2p_q holds float64"),
        ({"2p_q": np.array([[None, 0, 0]])}, "damaged, or not an .npz archive of integer arrays"),
        ({"2p_hard_ptr": np.array([0, 1, 0])}, "array 2p_hard_ptr does not divide"),
        ({"2p_hard_ptr": np.array([0, 0, 5])}, "array 2p_hard_ptr does not divide"),
        ({"2p_hard_ptr": np.array([0, 0])}, r"array 2p_hard_ptr has shape \(2,\)"),
        ({"2p_hard_idx": None}, "array 2p_hard_idx is missing"),
        ({"2p_n_all": np.array([1])}, r"array 2p_n_all has shape \(1,\)"),
    ],
)
def test_a_malformed_file_is_refused(
    tmp_path: Path, changed: "dict[str, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]", message: str
) -> None:
    path = write(tmp_path, **changed)
    with pytest.raises(DataError, match=message):
        read_queries(path, read_names(tmp_path))


def test_an_entity_column_may_not_hold_a_larger_label(tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "relations.tsv").write_text("0\tlikes\n1\tlikes_reverse\n")
    with pytest.raises(DataError, match="2p_q holds an id that is not in the list of names"):
        read_queries(path, read_names(tmp_path))


def test_lists_and_triples_must_fit(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "relations.tsv").write_text("0\tlikes\n1\tknows\n")
    with pytest.raises(DataError, match="in pairs"):
        read_names(tmp_path)
    (tmp_path / "relations.tsv").unlink()
    with pytest.raises(DataError, match=r"no relations\.tsv\.gz"):
        read_names(tmp_path)
    write(tmp_path)
    (tmp_path / "train.tsv").write_text("a\thates\tb\n")
    with pytest.raises(DataError, match="1 triples with a name"):
        read_stages(tmp_path, read_names(tmp_path))
    (tmp_path / "valid.tsv").unlink()
    write(tmp_path)
    (tmp_path / "valid.tsv").unlink()
    with pytest.raises(DataError, match=r"no valid\.tsv"):
        read_stages(tmp_path, read_names(tmp_path))
