"""PyKEEN's data sets: found without importing PyKEEN; downloads wait for each other and fail in one line."""

import fcntl
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from secure_kg.data import catalogue
from secure_kg.data.vocabulary import compact
from secure_kg.foundation.errors import DataError


@pytest.mark.parametrize(
    ("name", "expected"),
    [("UMLS", "umls"), ("Kinship", "kinships"), ("FB15k-237", "fb15k237"), ("CoDEx_S", "codexs")],
)
def test_canonical_names(name: str, expected: str) -> None:
    assert catalogue.canonical(name) == expected


@pytest.mark.parametrize("name", catalogue.BUNDLED)
def test_bundled_files_exist(name: str) -> None:
    assert [path.name for path in catalogue.bundled_files(name)] == ["train.txt", "valid.txt", "test.txt"]


def test_list_of_names_holds_data_sets_only() -> None:
    names = catalogue.downloadable()
    assert {"fb15k237", "wn18rr", "codexsmall", "yago310"} <= names
    assert not names & {"dataset", "getdataset", "hasdataset", "datasetresolver", "umls"}


@pytest.mark.long
def test_pykeen_knows_every_listed_name() -> None:
    code = """
import sys
from pykeen.datasets import has_dataset
from secure_kg.data.catalogue import BUNDLED, downloadable
sys.stdout.write(",".join(name for name in (*BUNDLED, *downloadable()) if not has_dataset(name)))
"""
    # In a process of its own: importing PyKEEN is slow and brings torch along.
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""


@pytest.fixture
def unlisted(monkeypatch: pytest.MonkeyPatch):
    catalogue.downloadable.cache_clear()
    yield monkeypatch
    catalogue.downloadable.cache_clear()


def test_without_pykeen(unlisted: pytest.MonkeyPatch) -> None:
    unlisted.setattr(catalogue.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DataError, match="not installed"):
        catalogue.bundled_files("umls")
    with pytest.raises(DataError, match="not installed"):
        catalogue.downloadable()


@pytest.mark.parametrize("source", [None, "def", "names = []", "__all__ = names"])
def test_damaged_pykeen(unlisted: pytest.MonkeyPatch, tmp_path: Path, source: str | None) -> None:
    unlisted.setattr(catalogue, "_datasets_folder", lambda: tmp_path)
    if source is not None:
        (tmp_path / "__init__.py").write_text(source)
    with pytest.raises(DataError, match="cannot be read"):
        catalogue.downloadable()
    with pytest.raises(DataError, match="without its data set"):
        catalogue.bundled_files("umls")


def fake_pykeen(monkeypatch: pytest.MonkeyPatch, home: Path, get_dataset: Any) -> None:
    for name, content in (
        ("pykeen", {}),
        ("pykeen.datasets", {"get_dataset": get_dataset}),
        ("pykeen.constants", {"PYKEEN_DATASETS": home}),
    ):
        module = ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)


def factory(triples: list[list[int]], **names: dict[str, int]) -> SimpleNamespace:
    return SimpleNamespace(mapped_triples=np.array(triples), **names)


def test_download_returns_names_and_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    train = factory([[0, 0, 1]], entity_to_id={"z": 0, "a": 1}, relation_to_id={"r": 0})
    dataset = SimpleNamespace(training=train, validation=None, testing=factory([[1, 0, 0]]))
    fake_pykeen(monkeypatch, tmp_path / "new", lambda dataset: SimpleNamespace(**vars(given[dataset])))
    given = {"wn18rr": dataset}
    entities, relations, parts = compact(*catalogue.download("wn18rr"))
    assert (entities, relations) == (("a", "z"), ("r",))
    assert [part.tolist() for part in parts] == [[[1, 0, 0]], [[0, 0, 1]]]


def test_ids_without_names_are_decimal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    dataset = SimpleNamespace(training=factory([[0, 0, 1]]), validation=None, testing=factory([[1, 0, 0]]))
    fake_pykeen(monkeypatch, tmp_path, lambda dataset_=dataset, dataset=None: dataset_)
    assert compact(*catalogue.download("wn18rr"))[0] == ("0", "1")


def test_failing_download_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def get_dataset(dataset: str) -> None:
        raise ConnectionError("no route\nto host")

    fake_pykeen(monkeypatch, tmp_path, get_dataset)
    with pytest.raises(DataError, match=r"^data set wn18rr: .*\(ConnectionError: no route to host\)$"):
        catalogue.download("wn18rr")


def test_downloads_wait_for_each_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    finished = threading.Event()
    dataset = SimpleNamespace(training=factory([[0, 0, 1]]), validation=None, testing=None)
    fake_pykeen(monkeypatch, tmp_path, lambda dataset_=dataset, dataset=None: dataset_)

    def run() -> None:
        catalogue.download("wn18rr")
        finished.set()

    with (tmp_path / "wn18rr.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        thread = threading.Thread(target=run)
        thread.start()
        assert not finished.wait(0.2)
    assert finished.wait(10)
    thread.join()
