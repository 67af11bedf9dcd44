"""The benchmark of queries on a small graph, its comparison with published answers, and its mistakes."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import queries
from secure_kg.queries.structures import STRUCTURES

SMALL = ["--draws", "200", "--answers", "50"]


def test_writes_the_figures_and_shows_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert queries.main([*SMALL, "--dataset", "umls", "--json", str(tmp_path / "queries.json")]) == 0
    report = json.loads((tmp_path / "queries.json").read_text())
    assert (report["dataset"], report["clients"], report["entities"], report["draws"]) == ("umls", 3, 135, 200)
    assert list(report["types"]) == list(STRUCTURES)
    for kind, places in report["types"].items():
        assert list(places) == (["in_graph"] if kind == "1p" else ["in_graph", "cross_graph"])
        for found in places.values():
            assert found["drawn_per_s"] > 0
            assert found["answered_per_s"] > 0
            assert 0 <= found["share_with_hard_answers"] <= 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "umls, 3 clients" in shown
    assert "cross-graph" in shown


def published(folder: Path, answers: int) -> list[str]:
    (folder / "entities.tsv").write_text("0\ta\n1\tb\n2\tc\n")
    (folder / "relations.tsv").write_text("0\tr\n1\tr_reverse\n")
    for part, triple in (("train", "a\tr\tb"), ("valid", "b\tr\tc"), ("test", "c\tr\ta")):
        (folder / f"{part}.tsv").write_text(triple + "\n")
    for part, rows in (("valid", [[0, 0, 0]]), ("test", [[1, 0, 0]])):  # over two steps: a to c, b to a
        np.savez(
            folder / f"queries-{part}.npz",
            **{"2p_q": np.array(rows), "2p_n_all": np.array([answers])},
            **{"2p_hard_ptr": np.array([0, 1]), "2p_hard_idx": np.array([2 if part == "valid" else 0])},
        )
    return ["--published", str(folder)]


def test_compares_published_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert queries.main(published(tmp_path, 1)) == 0
    assert "2 of 2 answer sets are as published; 0 of 2 queries have no hard answer" in capsys.readouterr().out
    assert queries.main([*published(tmp_path, 2), "--json", "-"]) == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out)["different"] == 2
    assert shown.err == "error: 2 of 2 answer sets are not as published\n"


def test_queries_whose_answers_were_not_published_are_answered_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = published(tmp_path, 1)
    np.savez(tmp_path / "betae-queries-test.npz", **{"1p_q": np.array([[2, 0], [0, 0]])})  # c to a, a to b
    assert queries.main([*options, "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["queries"], report["compared"], report["without_hard_answer"]) == (4, 2, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--graph", "x"], "--graph goes with --published"),
        (["--answers", "0"], "--answers must be at least 1"),
        (["--draws", "10", "--answers", "11"], "--draws at least as many"),
        (["--dataset", "nowhere/none"], "no such file or folder"),
        (["--published", "nowhere"], "no entities.tsv.gz"),
        (["--clients", "0"], "clients"),
        (["--dataset", "umls", "--published", "x"], "not allowed with"),
    ],
)
def test_a_mistake_gets_one_line(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert queries.main(options) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1
