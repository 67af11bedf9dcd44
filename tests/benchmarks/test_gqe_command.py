"""The benchmark of training on queries: speeds by encoder, figures on published queries, and its mistakes."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import gqe

TINY = ["--steps", "1", "--batch-size", "8", "--dim", "4"]


def test_writes_the_speed_of_every_encoder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gqe.main([*TINY, "--dataset", "nations", "--json", str(tmp_path / "gqe.json")]) == 0
    report = json.loads((tmp_path / "gqe.json").read_text())
    assert [one["encoder"] for one in report["encoders"]] == ["gqe", "q2p", "tree-lstm"]
    assert all(one["queries_per_s"] > 0 for one in report["encoders"])
    assert "queries/s" in capsys.readouterr().out


def test_judges_by_published_queries_and_links(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "entities.tsv").write_text("0\ta\n1\tb\n2\tc\n")
    (tmp_path / "relations.tsv").write_text("0\tr\n1\tr_reverse\n")
    triples = {"train": "a\tr\tb\nb\tr\ta\nb\tr\tb", "valid": "b\tr\tc", "test": "c\tr\ta"}
    for part, text in triples.items():
        (tmp_path / f"{part}.tsv").write_text(text + "\n")
    # From c over two steps to b; from a over one and back, which has no answer that the test part adds.
    np.savez(tmp_path / "queries-test.npz", **{"2p_q": np.array([[2, 0, 0], [0, 0, 1]])})
    options = ["--published", str(tmp_path), "--minutes", "0.001", *TINY[2:], "--json", "-"]
    assert gqe.main(options) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["queries"] == {"1p": 2, "2p": 1}  # c's successors and a's predecessors
    assert report["settings"]["dim"] == 4
    assert 0 < report["mrr"] <= 1
    np.savez(tmp_path / "queries-valid.npz", **{"2p_q": np.array([[0, 0, 0]])})
    assert gqe.main([*options, "--part", "valid"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["part"] == "valid"
    assert report["queries"] == {"1p": 2, "2p": 1}  # the link from b to c, both ways; from a over b to c


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--graph", "somewhere"], "--graph goes with --published"),
        (["--part", "valid"], "--part goes with --published"),
        (["--encoder", "box"], "--encoder must be one of"),
        (["--dim", "x"], "--dim must be whole numbers"),
        (["--published", "somewhere", "--dim", "4,8"], "one encoder of one dimension"),
        (["--steps", "0"], "must be positive"),
        (["--published", "nowhere"], "nowhere"),
    ],
)
def test_a_mistake_is_one_line(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert gqe.main(options) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
