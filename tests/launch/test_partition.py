"""The command: folders that load, a record of how they came about, and one line for every mistake."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from launch.partition import main
from secure_kg.data.folders import load_client_folder
from secure_kg.data.partition import DIVIDING_RULES, By, load_client
from secure_kg.data.triples import PARTS


@pytest.mark.parametrize("by", DIVIDING_RULES)
def test_writes_loadable_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str], by: By) -> None:
    out = tmp_path / "new" / "parts"
    assert main(["--dataset", "UMLS", "--clients", "3", "--by", by, "--seed", "4", "--out", str(out)]) == 0
    record = tomllib.loads((out / "partition.toml").read_text())
    assert {**record, "client": None} == {
        "dataset": "UMLS", "clients": 3, "by": by, "seed": 4, "duplicates_removed": 0, "client": None,
    }  # fmt: skip
    for client in (1, 2, 3):
        graph, direct = load_client_folder(out, client), load_client("umls", 3, client, by, 4)
        assert graph.entities == direct.entities
        assert all(np.array_equal(graph.part(part), direct.part(part)) for part in PARTS)
        assert record["client"][client - 1] == {
            "number": client,
            "entities": len(graph.entities),
            "relations": len(graph.relations),
            **{part: len(graph.part(part)) for part in PARTS},
        }
    output = capsys.readouterr()
    assert output.err == ""
    assert f"by {by}, 3 clients" in output.out
    assert all(word in output.out for word in ("client", "entities", "relations", "train", "valid", "test"))
    assert max(map(len, output.out.split("\n")[:-2])) <= 100


def test_same_arguments_same_bytes(tmp_path: Path) -> None:
    written = []
    for name in ("one", "two"):
        assert main(["--dataset", "nations", "--clients", "2", "--out", str(tmp_path / name)]) == 0
        files = sorted(path for path in (tmp_path / name).rglob("*") if path.is_file())
        written.append([(path.relative_to(tmp_path / name), path.read_bytes()) for path in files])
    assert written[0] == written[1]
    assert len(written[0]) == 7


def test_counts_removed_duplicates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"e{a}\tr\te{b}\n" for a in range(5) for b in range(5)]
    (tmp_path / "[graph].tsv").write_text("".join(lines + lines[:3]))
    arguments = ["--dataset", str(tmp_path / "[graph].tsv"), "--clients", "1", "--out", str(tmp_path / "out")]
    assert main(arguments) == 0
    output = capsys.readouterr().out
    assert "3 repeated triples removed" in output
    assert "[graph]" in output  # not taken for markup


def write_split(path: Path, test: list[list[int]], entities: int = 3) -> None:
    parts = {"c0_train": [[0, 0, 1], [1, 0, 2], [2, 0, 0]], "c0_valid": [[1, 0, 0]], "c0_test": test}
    vocabulary = {"c0_ent": range(entities), "c0_rel": [0], "n_clients": 1}
    np.savez(path, **{name: np.array(value) for name, value in (parts | vocabulary).items()})


def test_published_split(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_split(tmp_path / "fed1.npz", test=[[2, 0, 1]])
    assert main(["--dataset", str(tmp_path / "fed1.npz"), "--clients", "1", "--out", str(tmp_path / "out")]) == 0
    record = tomllib.loads((tmp_path / "out" / "partition.toml").read_text())
    assert record["by"] == "published"
    assert "seed" not in record


def test_unsound_published_split_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_split(tmp_path / "fed1.npz", test=[[0, 0, 1]])
    assert main(["--dataset", str(tmp_path / "fed1.npz"), "--clients", "1", "--out", str(tmp_path / "out")]) == 2
    where = f"error: {tmp_path}/fed1.npz: damaged split, refused without --allow-leaky-split: "
    assert capsys.readouterr().err == where + "1 of 1 test triples also stand in train\n"
    assert not (tmp_path / "out").exists()


def test_unsound_published_split_is_written_if_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_split(tmp_path / "fed1.npz", test=[[0, 0, 1]])
    arguments = ["--dataset", str(tmp_path / "fed1.npz"), "--clients", "1", "--out", str(tmp_path / "out")]
    assert main([*arguments, "--allow-leaky-split"]) == 0
    assert capsys.readouterr().out.startswith("LEAKY SPLIT: 1 of 1 test triples also stand in train\n")
    record = tomllib.loads((tmp_path / "out" / "partition.toml").read_text())
    assert record["client"][0]["faults"]["test_in_train"] == 1
    assert len(load_client_folder(tmp_path / "out", 1, allow_leaky=True).test) == 1


def test_blemishes_of_a_published_split_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_split(tmp_path / "fed1.npz", test=[[3, 0, 1], [1, 0, 3], [2, 0, 1]], entities=4)
    assert main(["--dataset", str(tmp_path / "fed1.npz"), "--clients", "1", "--out", str(tmp_path / "out")]) == 0
    assert "1 entities of valid and test do not occur in train; they stand in 2 of 3 test" in capsys.readouterr().out
    record = tomllib.loads((tmp_path / "out" / "partition.toml").read_text())
    assert record["client"][0]["faults"]["untrained_entities"] == 1
    assert len(load_client_folder(tmp_path / "out", 1).test) == 3


def test_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--dataset", "nations", "--clients", "1", "--by", "whole", "--out", str(tmp_path / "out")]) == 0
    assert "by whole, 1 client" in capsys.readouterr().out
    graph, direct = load_client_folder(tmp_path / "out", 1), load_client("nations", 1, 1, "whole", 0)
    assert all(np.array_equal(graph.part(part), direct.part(part)) for part in PARTS)
    record = tomllib.loads((tmp_path / "out" / "partition.toml").read_text())
    assert (record["by"], record["duplicates_removed"], "seed" in record) == ("whole", 0, False)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (["--dataset", "umsl"], "did you mean umls?"),
        (["--clients", "0"], "at least 1 is needed"),
        (["--clients", "many"], "--clients many: must be a whole number"),
        (["--clients", "7000"], "client 6530 has no training triples; use fewer clients or another split"),
        (["--by", "colour"], "--by colour: choose one of triples, "),
        (["--seed", "-1"], "seed -1 is negative"),
        (["--by", "whole"], "it cannot serve 5 clients"),
        (["--colour", "red"], "unknown option --colour"),
        (["--data", "umls"], "unknown option --data; did you mean --dataset?"),
        (["--out"], "--out: a value is missing: --out DIR"),
    ],
)
def test_mistakes_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: list[str], message: str
) -> None:
    out = tmp_path / "out"
    assert main(["--dataset", "umls", "--clients", "5", "--out", str(out), *changed]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("error: ")
    assert output.err.count("\n") == 1
    assert message in output.err
    assert not out.exists()


def test_missing_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: missing: --dataset DATASET (name, folder or file; see below), --clients N (")
    assert "--out DIR (new or empty folder)" in said


def test_refuses_a_folder_in_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    assert main(["--dataset", "umls", "--clients", "5", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path}: exists and is not empty; choose a new folder\n"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert main(["--dataset", "umls", "--clients", "5", "--out", str(tmp_path / "mine.txt")]) == 2


def test_help_teaches_with_an_example_that_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.split("\n")
    example = next(line for line in lines if line.startswith("  python -m launch.partition"))
    monkeypatch.chdir(tmp_path)
    assert main(example.split()[3:]) == 0
    assert (tmp_path / "parts" / "client-5" / "test.tsv").is_file()


def test_runs_as_a_module(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "launch.partition", "--dataset", "none.tsv", "--clients", "2", "--out", "x"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2], check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: none.tsv: no such file or folder\n"


def test_a_reader_that_leaves_does_not_stop_the_work(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "launch.partition", "--dataset", "nations", "--clients", "2"]
    root, (reading, writing) = Path(__file__).parents[2], os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "out")], stdout=writing, stderr=subprocess.PIPE, cwd=root, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "out" / "partition.toml").is_file()
