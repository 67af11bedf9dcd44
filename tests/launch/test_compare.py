"""Finished runs side by side: in the terminal, as JSON and on a page of its own."""

import json
from pathlib import Path
from typing import Any

import pytest

from launch import cli, entire, fedcqa, fede, local
from secure_kg.report.charts import lines_chart
from secure_kg.report.comparison import _names, differing, open_runs, warnings
from secure_kg.report.comparison_page import comparison_page
from tests.support.jobs_in_threads import run_in_threads
from tests.support.pages import Page, outward

Capture = pytest.CaptureFixture[str]
SMALL = ("--dataset", "nations", "--rounds", "4", "--eval-every", "2", "--dim", "8")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs of the same data, in three ways."""
    folder = tmp_path_factory.mktemp("runs")
    for name, launcher in (("shared", fede.main), ("alone", local.main)):
        done = run_in_threads(3, *SMALL, "--out", name, cwd=folder, launcher=launcher)
        assert done.code == 0, done.errors
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert entire.main([*SMALL, "-n", "3", "--out", "pooled", "--json", "pooled.json"]) == 0
    return folder


@pytest.fixture(autouse=True)
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


def compared(capsys: Capture, *runs: str) -> tuple[dict[str, Any], Page]:
    assert cli.main(["compare", *runs, "--json", "-"]) == 0
    record = json.loads(capsys.readouterr().out)
    return record, Page(Path("comparison.html").read_text("utf-8"))


def test_results_costs_and_disclosures_stand_side_by_side(capsys: Capture) -> None:
    record, page = compared(capsys, "shared", "alone", "pooled")
    shared, alone, pooled = record["runs"]
    assert [one["name"] for one in record["runs"]] == ["shared", "alone", "pooled"]
    assert record["warnings"] == []
    assert record["settings_that_differ"]["strategy"] == ["fede", "local", "entire"]
    assert "training.dim" not in record["settings_that_differ"]
    for run in record["runs"]:
        summary = json.loads((Path(run["path"]) / "summary.json").read_text())
        assert run["test"]["mrr"] == summary["mrr"]
        assert [round for round, _ in run["curve"]] == [2.0, 4.0]
    for way in ("up", "down"):
        assert sum(part[way] for part in shared["bytes"].values()) == shared[f"bytes_{way}"]
        assert sum(part[way] for part in pooled["bytes"].values()) == 0
    assert shared["bytes"]["set-up"]["up"] > alone["bytes"]["set-up"]["up"]
    assert shared["disclosed"]["values of shared rows"]["server"].startswith("their sums only")
    assert "values of shared rows" not in alone["disclosed"]
    assert "everything" in pooled["disclosed"]["triples and rows that are not shared"]["server"]
    assert outward(page) == []
    for text in ("shared", "alone", "pooled", "Settings that differ", "The server learned", "their sums only"):
        assert text in page.text
    best = max(record["runs"], key=lambda run: run["test"]["mrr"])
    assert f"<td><b>{best['test']['mrr']:.4f}</b></td>" in page.source


def test_the_terminal_has_the_main_figures(capsys: Capture) -> None:
    assert cli.main(["compare", "shared", "alone", "--out", "two.html"]) == 0
    said = capsys.readouterr().out
    summary = json.loads(Path("shared/summary.json").read_text())
    assert f"{summary['mrr']:.4f}" in said
    assert "settings that differ" in said
    assert "what the server learned, where it differs" in said
    assert said.endswith("page: two.html\n")


def test_a_summary_on_standard_output_stands_alone(capsys: Capture) -> None:
    """Training jobs have `--json` as well."""
    written = json.loads(Path("pooled.json").read_text())
    assert written["run"] == "pooled"
    assert written["mrr"] == json.loads(Path("pooled/summary.json").read_text())["mrr"]
    again = run_in_threads(None, "--resume", "shared", "--json", "-", cwd=Path.cwd(), launcher=fede.main)
    assert json.loads(again.out)["run"] == "shared"
    fresh = run_in_threads(3, *SMALL, "--json", "-", "--out", "fresh", cwd=Path.cwd(), launcher=fede.main)
    assert fresh.code == 0, fresh.errors
    assert json.loads(fresh.out)["rounds"] == 4


def test_other_data_are_warned_of(place: Path) -> None:
    done = run_in_threads(4, *SMALL, "--seed", "1", "--out", "other", cwd=place, launcher=local.main)
    assert done.code == 0, done.errors
    runs = open_runs([place / "shared", place / "other"])
    assert warnings(runs) == ["The runs differ in clients, seed: their results are on other test triples."]
    assert set(differing(runs)) >= {"clients", "seed", "strategy"}
    page = comparison_page(runs)
    assert "<b>0." not in page
    assert "their results are on other test triples" in Page(page).text


def test_names_tell_runs_apart(place: Path) -> None:
    assert [run.name for run in open_runs([place / "shared", place / "alone"])] == ["shared", "alone"]
    assert _names([Path("/one/demo"), Path("/two/demo")]) == ["one/demo", "two/demo"]


def test_dropouts_are_listed(place: Path, tmp_path: Path, capsys: Capture) -> None:
    copy = tmp_path / "dropped"
    copy.mkdir()
    for name in ("config.toml", "metrics.jsonl"):
        (copy / name).write_text((place / "shared" / name).read_text())
    record = json.loads((place / "shared" / "summary.json").read_text())
    record["dropouts"] = [{"client": 2, "round": 3, "step": "rows<b>"}]
    record["abandoned_sums"] = [{"round": 3, "purpose": "rows", "reason": "too few"}]
    (copy / "summary.json").write_text(json.dumps(record))
    told, page = compared(capsys, "shared", str(copy))
    assert told["runs"][1]["dropouts"] == record["dropouts"]
    assert "rows<b>" in page.text
    assert "sum of rows abandoned: too few" in page.text


def test_a_chart_of_several_lines() -> None:
    page = Page(lines_chart([("one", [(1, 0.2), (2, 0.3)]), ("none", []), ("two", [(2, 0.1)])], "round", "MRR"))
    assert len(page.all("circle")) == 3
    assert page.words.count("one") == 2  # in the chart and in its legend
    assert "no evaluations" in Page(lines_chart([("none", [])], "round", "MRR")).text


@pytest.mark.slow
def test_runs_of_queries_and_private_runs_compare_too(place: Path, capsys: Capture) -> None:
    small = ("--dataset", "nations", "--rounds", "2", "--eval-every", "1", "--local-steps", "2", "--eval-queries", "5")
    done = run_in_threads(4, *small, "--out", "queries", cwd=place, launcher=fedcqa.main)
    assert done.code == 0, done.errors
    private = ("--strategy", "all-rows", "--dp", "sgd", "--epsilon", "8", "--delta", "1e-5", "--rounds", "2")
    done = run_in_threads(4, "--dataset", "nations", *private, "--out", "private", cwd=place, launcher=fede.main)
    assert done.code == 0, done.errors
    record, page = compared(capsys, "shared", "queries", "private")
    assert len(record["warnings"]) == 3
    assert record["runs"][2]["privacy"][0].startswith("Whoever sees all that was released")
    assert "MRR by type of query" in page.text
    assert "Without differential privacy: shared, queries." in page.text
