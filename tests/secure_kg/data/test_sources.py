"""Every kind of source, every wrong name, and what the server may and may not touch."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from secure_kg.data import catalogue, sources
from secure_kg.data.sources import FederatedSource, PooledSource, check_source_name, load_source
from secure_kg.foundation.errors import DataError

# (entities, relations, triples) as published.
SIZES = {"umls": (135, 46, 6529), "kinships": (104, 25, 10686), "nations": (14, 55, 1992)}


def pooled(dataset: str | Path) -> PooledSource:
    source = load_source(str(dataset))
    assert isinstance(source, PooledSource)
    return source


@pytest.mark.parametrize("name", ["umls", "UMLS", "kinships", "Kinship", "nations"])
def test_data_sets_in_the_wheel(name: str) -> None:
    source = pooled(name)
    assert (len(source.entities), len(source.relations), len(source.triples)) == SIZES[catalogue.canonical(name)]
    assert source.duplicates == 0
    check_source_name(name)


def test_folder_pools_its_parts_and_counts_duplicates(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("b\tr\ta\na\tr\tb\nb\tr\ta\n")
    (tmp_path / "test.txt.gz").write_bytes(gzip.compress("a\tr\tb\nà\ts\ta\n".encode()))
    source = pooled(tmp_path)
    assert source.entities == ("a", "b", "à")
    assert source.triples.tolist() == [[0, 0, 1], [1, 0, 0], [2, 1, 0]]
    assert source.duplicates == 2
    assert repr(source) == "PooledSource(duplicates=2)"


def test_order_of_lines_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "one.tsv").write_text("b\tr\ta\na\tq\tb\n")
    (tmp_path / "two.txt").write_text("a\tq\tb\nb\tr\ta\n")
    one, two = pooled(tmp_path / "one.tsv"), pooled(tmp_path / "two.txt")
    assert (one.entities, one.relations) == (two.entities, two.relations)
    assert np.array_equal(one.triples, two.triples)


def test_federated_archive(tmp_path: Path) -> None:
    part, none = np.array([[0, 0, 1]]), np.zeros((0, 3), np.int64)
    arrays = {"c0_train": part, "c0_valid": none, "c0_test": part, "c0_ent": np.arange(2), "c0_rel": np.arange(1)}
    np.savez(tmp_path / "fed1.npz", n_clients=np.int64(1), **arrays)
    source = load_source(str(tmp_path / "fed1.npz"))
    assert isinstance(source, FederatedSource)
    assert len(source.clients) == 1
    assert len(source.clients[0].test) == 1  # the leak is kept, as published


def test_published_parts_are_kept_beside_the_pool(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("b\tr\ta\na\tr\tb\nb\tr\ta\n")
    (tmp_path / "test.tsv").write_text("a\tr\tc\n")
    assert pooled(tmp_path).parts is None
    (tmp_path / "valid.tsv").write_text("a\tr\tb\n")
    parts = pooled(tmp_path).parts
    assert parts is not None
    assert [part.tolist() for part in parts] == [[[1, 0, 0], [0, 0, 1], [1, 0, 0]], [[0, 0, 1]], [[0, 0, 2]]]


def test_download(monkeypatch: pytest.MonkeyPatch) -> None:
    triples = np.array([[0, 0, 1], [0, 0, 1]])
    monkeypatch.setattr(sources, "download", lambda name: (["b", "a"].__getitem__, str, [triples]))
    source = pooled("WN18-RR")
    assert (source.entities, source.triples.tolist(), source.duplicates) == (("a", "b"), [[1, 0, 0]], 1)


def test_existing_path_spares_a_download(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("wn18rr", "umls"):
        Path(name).mkdir()
        Path(name, "train.tsv").write_text("a\tr\tb\n")
    assert len(pooled("wn18rr").triples) == 1
    assert len(pooled("umls").triples) == 6529  # a name in the wheel means the same everywhere
    assert len(pooled("./umls").triples) == 1


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ("umsl", "unknown data set umsl; did you mean umls?"),
        ("fb15k-273", "unknown data set fb15k-273; did you mean fb15k237?"),
        ("zzzzzzzz", "unknown data set zzzzzzzz; give a PyKEEN data set, a folder or a file"),
        ("", "unknown data set (empty)"),
        ("a\nb", "unknown data set 'a\\nb'"),
        ("none/umls", "none/umls: no such file or folder"),
        ("none.tsv.gz", "none.tsv.gz: no such file or folder"),
        ("none.npz", "none.npz: no such file or folder"),
        ("x" * 5000, "unknown data set"),
        ("nul\0", "unknown data set"),
    ],
)
def test_unknown_names(dataset: str, message: str) -> None:
    for use in (check_source_name, load_source):
        with pytest.raises(DataError) as caught:
            use(dataset)
        assert str(caught.value).startswith(message)
        assert "\n" not in str(caught.value)


def test_unusable_paths(tmp_path: Path) -> None:
    (tmp_path / "graph.xlsx").touch()
    os.mkfifo(tmp_path / "pipe.tsv")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "test.tsv").touch()
    for name, message in (("graph.xlsx", "not a file of"), ("pipe.tsv", "neither a file"), ("folder", "no train file")):
        for use in (check_source_name, load_source):
            with pytest.raises(DataError, match=message):
                use(str(tmp_path / name))


def test_no_triples(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("\n\n")
    with pytest.raises(DataError, match="no triples"):
        load_source(str(tmp_path))


def run(code: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_loading_umls_imports_neither_pykeen_nor_torch() -> None:
    code = """
import sys
import launch.partition
from secure_kg.data.partition import load_client
from secure_kg.data.folders import load_client_folder
load_client("umls", 5, 1, "triples", 0)
sys.stdout.write(",".join(sorted({"pykeen", "torch", "pandas"} & set(sys.modules))))
"""
    assert run(code) == ""


def test_server_opens_no_triple_file(tmp_path: Path) -> None:
    # An audit hook sees every file the process opens, whichever function opens it.
    code = """
import sys
from secure_kg.data.sources import check_source_name
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
for dataset in sys.argv[1:]:
    check_source_name(dataset)
sys.stdout.write("\\n".join(path for path in opened if not path.endswith((".py", ".pyc"))))
"""
    (tmp_path / "train.tsv.gz").touch()
    (tmp_path / "one.tsv").touch()
    (tmp_path / "fed.npz").touch()
    paths = [str(tmp_path), str(tmp_path / "one.tsv"), str(tmp_path / "fed.npz")]
    assert run(code, "umls", "kinship", "fb15k-237", *paths) == ""
