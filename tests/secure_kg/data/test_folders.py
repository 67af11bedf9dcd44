"""A client's folder: read back exactly, only its own, and refused when it cannot be evaluated."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from secure_kg.data.folders import client_folder, load_client_folder, make_empty_folder, write_client_folder
from secure_kg.data.graph import ClientGraph, Origin
from secure_kg.data.partition import partition
from secure_kg.data.soundness import faults
from secure_kg.data.sources import load_source
from secure_kg.data.triples import PARTS
from secure_kg.foundation.errors import DataError

SOUND = {"train": "a\tr\tb\nb\tr\tc\nc\ts\ta\n", "valid": "a\tr\tc\n", "test": "b\ts\ta\n"}


def write(folder: Path, **changed: str | None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for part, text in (SOUND | changed).items():
        if text is not None:
            (folder / f"{part}.tsv").write_text(text, encoding="utf-8")
    return folder


def test_written_graphs_are_read_back(tmp_path: Path) -> None:
    for client, graph in enumerate(partition(load_source("umls"), 2, "triples", 0), start=1):
        write_client_folder(client_folder(tmp_path, client), graph)
        again = load_client_folder(tmp_path, client)
        assert (again.entities, again.relations) == (graph.entities, graph.relations)
        assert all(np.array_equal(again.part(part), graph.part(part)) for part in PARTS)


def test_folder_itself_or_one_for_each_client(tmp_path: Path) -> None:
    write(tmp_path / "client-2", train=SOUND["train"] + "é\tr\ta\n")
    assert load_client_folder(str(tmp_path), 2).entities == ("a", "b", "c", "é")
    assert load_client_folder(tmp_path / "client-2", 7).entities == ("a", "b", "c", "é")
    with pytest.raises(DataError, match="neither a train file nor a folder client-1"):
        load_client_folder(tmp_path, 1)


def test_a_client_opens_its_own_folder_only(tmp_path: Path) -> None:
    code = """
import sys
from secure_kg.data.folders import load_client_folder
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
load_client_folder(sys.argv[1], 2)
sys.stdout.write(",".join(path[len(sys.argv[1]) :] for path in opened if path.startswith(sys.argv[1])))
"""
    for client in (1, 2, 3):
        write(client_folder(tmp_path, client))
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "/client-2/train.tsv,/client-2/valid.tsv,/client-2/test.tsv"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"valid": None}, "no valid.tsv; train, valid and test are all needed"),
        ({"test": None}, "no test.tsv; train, valid and test are all needed"),
        ({"train": ""}, "has no training triples"),
        ({"valid": "\n"}, "has no validation triples"),
        ({"test": ""}, "has no test triples; train, valid and test must all hold some"),
        ({"train": "a\tr\n"}, r"train\.tsv, line 1: 2 field"),
        ({"train": SOUND["train"] + "a\tr\tb\n"}, "1 repeated triples in train"),
        ({"test": "a\tr\tb\n"}, "1 of 1 test triples also stand in train"),
        ({"test": "a\tr\tc\n"}, "1 of 1 test triples also stand in valid"),
    ],
)
def test_refused_folders(tmp_path: Path, changed: dict[str, str | None], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        load_client_folder(write(tmp_path / "client-1", **changed), 1)
    assert str(caught.value).startswith(str(tmp_path / "client-1"))
    assert "\n" not in str(caught.value)


def test_blemishes_are_taken(tmp_path: Path) -> None:
    graph = load_client_folder(write(tmp_path / "client-1", test="x\tr\ta\ny\tr\ta\n", valid="a\tq\tb\n"), 1)
    assert (faults(graph).untrained_entities, faults(graph).untrained_relations) == (2, 1)
    write_client_folder(tmp_path / "again", graph)
    assert faults(load_client_folder(tmp_path / "again", 1)) == faults(graph)


def test_damage_is_taken_where_it_is_allowed(tmp_path: Path) -> None:
    folder = write(tmp_path / "client-1", test="a\tr\tb\n")
    graph = load_client_folder(folder, 1, allow_leaky=True)
    assert faults(graph).test_in_train == 1
    write_client_folder(tmp_path / "again", graph, allow_leaky=True)
    assert not (tmp_path / "again" / "origin.toml").exists()
    with pytest.raises(DataError, match="refused without --allow-leaky-split"):
        load_client_folder(tmp_path / "again", 1)


def test_a_folder_remembers_what_others_train_on(tmp_path: Path) -> None:
    """Else to write folders and train on them would make a leaky split look sound."""
    sound = load_client_folder(write(tmp_path / "in"), 1)
    leaky = dataclasses.replace(sound, origin=Origin(test_in_other_train=1))
    with pytest.raises(DataError, match="another client's train only"):
        write_client_folder(tmp_path / "out", leaky)
    write_client_folder(tmp_path / "out", leaky, allow_leaky=True)
    with pytest.raises(DataError, match="1 of 1 test triples stand in another client's train only"):
        load_client_folder(tmp_path / "out", 1)
    assert load_client_folder(tmp_path / "out", 1, allow_leaky=True).origin == leaky.origin
    for text in ("no record", "test_in_other_train = 1\n", "", "colour = 3\n"):
        (tmp_path / "out" / "origin.toml").write_text(text)
        with pytest.raises(DataError, match=r"origin\.toml: not a record of counts"):
            load_client_folder(tmp_path / "out", 1, allow_leaky=True)


def test_a_file_alone_is_read_as_a_folder_with_that_file(tmp_path: Path) -> None:
    lines = [f"{head}\tr{(head + tail) % 3}\t{tail}\n" for head in range(12) for tail in range(12) if head != tail]
    (tmp_path / "own").mkdir()
    (tmp_path / "own/graph.tsv").write_text("".join(lines))
    of_folder, of_file = (load_client_folder(tmp_path / name, 2, seed=5) for name in ("own", "own/graph.tsv"))
    for part in ("train", "valid", "test"):
        assert of_file.part(part).tolist() == of_folder.part(part).tolist()
    assert of_file.entities == of_folder.entities


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such folder"):
        load_client_folder(tmp_path / "none", 1)
    with pytest.raises(DataError, match="no such file or folder"):
        load_client_folder(tmp_path / "none.tsv", 1)
    with pytest.raises(DataError, match="numbered from 1"):
        load_client_folder(tmp_path, 0)
    (tmp_path / "client-1").mkdir()
    with pytest.raises(DataError, match=r"client-1: no train\.tsv"):
        load_client_folder(tmp_path, 1)


def test_nothing_is_overwritten_or_half_written(tmp_path: Path) -> None:
    graph = load_client_folder(write(tmp_path / "in"), 1)
    with pytest.raises(DataError, match="exists and is not empty"):
        write_client_folder(tmp_path / "in", graph)
    leaking = ClientGraph(graph.entities, graph.relations, graph.train, graph.valid, graph.train[:1])
    with pytest.raises(DataError, match="also stand in train"):
        write_client_folder(tmp_path / "out", leaking)
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be created"):
        make_empty_folder(tmp_path / "file")
