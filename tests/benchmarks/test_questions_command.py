"""Finished runs judged across graphs, and many questions over them, as commands."""

import json
from pathlib import Path

import pytest

from benchmarks import cross_graph, questions
from launch import fedcqa
from tests.support.jobs_in_threads import run_in_threads

pytestmark = pytest.mark.long
TINY = [
    *("--dataset", "nations", "--dim", "8", "--batch-size", "8", "--local-steps", "1", "--eval-queries", "2"),
    *("--test-types", "1p,2i,up", "--eval-every", "2", "--rounds", "2"),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    for name in ("fedcqa", "fedcqa-local"):
        ended = run_in_threads(4, *TINY, "--strategy", name, "--out", name, cwd=folder, launcher=fedcqa.main)
        assert ended.code == 0, ended.errors
    assert fedcqa.main([*TINY, "-n", "4", "--strategy", "fedcqa-central", "--out", str(folder / "central")]) == 0
    return {name: folder / name for name in ("fedcqa", "fedcqa-local", "central")}


def test_runs_are_judged_side_by_side(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "cross.json"
    assert cross_graph.main([*map(str, runs.values()), "--queries", "5", "--json", str(out)]) == 0
    report = json.loads(out.read_text())
    shared, alone, central = report["runs"]
    assert report["min_holders"] == 1
    assert alone["cross"] is None, "clients with operators of their own have nothing to ask each other with"
    for one in (shared, central):
        assert set(one["cross"]["types"]) == {"2i", "up"}
        assert one["cross"]["queries"] == {"2i": 5, "up": 5}
        assert 0 < one["cross"]["mrr"] <= 1
    assert shared["in-graph"]["mrr"] > 0
    shown = capsys.readouterr().out
    assert f"{central['cross']['mrr']:.4f}" in shown
    assert cross_graph.main([str(runs["fedcqa"]), "--queries", "5", "--part", "valid", "--json", "-"]) == 0
    (valid,) = json.loads(capsys.readouterr().out)["runs"]
    assert valid["cross"] != shared["cross"]


def test_backends_and_one_party_in_clear_give_the_same_answers(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(path.name for path in runs["fedcqa"].rglob("*"))
    out = tmp_path / "questions.json"
    options = ["--queries", "6", "--top-k", "5", "--hide-query", "--json", str(out)]
    assert questions.main([str(runs["fedcqa"]), *options]) == 0, capsys.readouterr().err
    report = json.loads(out.read_text())
    assert report["questions"] == report["alike"] == 6
    assert set(report["backends"]) == {"topk", "plain", "topk, hidden"}
    for one in report["backends"].values():
        assert one["as_in_clear"] == 6
        assert one["mrr_within_k"] == one["of_one_party_in_clear"]
    assert sorted(path.name for path in runs["fedcqa"].rglob("*")) == before
    assert "6 of 6 have the same answers under all backends" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "options", "words"),
    [
        (cross_graph.main, ["nowhere"], "nowhere"),
        (cross_graph.main, ["nowhere", "--queries", "0"], "--queries must be positive"),
        (questions.main, ["nowhere"], "nowhere"),
        (questions.main, ["nowhere", "--top-k", "0"], "--top-k from 1"),
    ],
)
def test_a_mistake_gets_one_line(
    command: "object", options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(command)
    assert command(options) == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1
