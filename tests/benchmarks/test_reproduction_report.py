"""From results to JSON, Markdown and the verdict on the paper's claims; no run is needed for this."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import reproduce
from benchmarks.reproduction import results
from benchmarks.reproduction.cells import Request, job_for
from benchmarks.reproduction.jobs import Outcome
from benchmarks.reproduction.rendering import markdown, show
from benchmarks.reproduction.report import build
from benchmarks.reproduction.results import Result, read_result
from benchmarks.reproduction.tables import TABLES


def request_for(runs: Path, *options: str) -> Request:
    return reproduce.request_from(
        reproduce._parser().parse_args([*options, "--data-root", "data", "--runs", str(runs)])
    )


def summary(mrr: float) -> dict[str, Any]:
    figures = {"mrr": mrr, "hits@1": mrr / 2, "hits@3": mrr, "hits@10": 0.75}
    clients = [figures | {"client": 1}, figures | {"client": 2, "mrr": mrr + 0.1}]
    about = {"rounds": 40, "best_round": 15, "both_sides": {"mrr": mrr - 0.01}, "seconds_total": 9.5}
    return {**figures, **about, "clients": clients}


def results_of(request: Request, mrr: dict[tuple[str, int], float | None]) -> list[Result]:
    """Every run of the plan: finished where there is a figure, failed where it is None, missing otherwise."""
    found = []
    for cell in request.cells():
        job, outcome = job_for(request, cell), Outcome("missing")
        if (cell.strategy, cell.seed) in mrr:
            figure = mrr[cell.strategy, cell.seed]
            outcome = Outcome("failed", "no such luck") if figure is None else Outcome("finished", None, 12.0)
            if figure is not None:
                job.folder.mkdir(parents=True)
                models = {"single": summary(0.1), "federated": summary(0.2), "fused": summary(figure)}
                runs = {"federated": {"run": "y"}, "single": {"run": "x"}, "model": cell.model}
                content = {**runs, "clients": [{"client": 1, **models}], "all": models}
                job.result.write_text(json.dumps(content if cell.strategy == "fused" else summary(figure)))
            record = {"command": "mpirun", "seconds": 12.0, "peak_memory_mb": 300.0, "sessions": [{"commit": "abc"}]}
            job.record.parent.mkdir(parents=True, exist_ok=True)
            job.record.write_text(json.dumps(record))
        found.append(read_result(job, outcome))
    return found


def report_of(name: str, request: Request, mrr: dict[tuple[str, int], float | None]) -> dict[str, Any]:
    results = results_of(request, mrr)
    return build(name, request, results, command="python -m benchmarks.reproduce ...", commit="abc", date="2026-01-02")


def test_means_differences_and_claims(tmp_path: Path) -> None:
    request = request_for(
        tmp_path, "fedr-table2", "--dataset", "ddb14", "--clients", "5", "--models", "transe", "--seeds", "0", "1"
    )
    figures: dict[tuple[str, int], float | None] = {("local", 0): 0.25, ("local", 1): 0.35, ("fedr", 0): 0.3}
    figures |= {("fedr", 1): 0.402, ("fede", 0): None}
    report = report_of("fedr-table2", request, figures)
    json.dumps(report, allow_nan=False)
    local, fede, fedr = report["cells"]
    assert local["paper"] == {"mrr": 0.4206}
    assert local["ours"]["mrr"]["n"] == 2
    assert local["ours"]["mrr"]["mean"] == 0.3
    assert fede["ours"] == {}
    assert fede["states"] == {"0": "failed", "1": "missing"}
    assert fedr["seconds_per_run"] == 12
    over_local, fede_over_local, over_fede = report["differences"]
    assert over_local["verdict"] == "yes, clearly"  # 0.050 and 0.052: a small difference, and a sure one
    assert over_local["paper"] == 0.4461 - 0.4206
    assert fede_over_local["verdict"] == over_fede["verdict"] == "not measured"
    assert report["claims"][0]["same_as_paper"] == {"cells": 1, "same": 1}
    assert report["deviations"] == []
    assert report["runs"][0]["both_sides"] == {"mrr": 0.24}


def test_markdown_has_all_it_takes_to_judge(tmp_path: Path) -> None:
    options = ["fedr-table2", "--dataset", "ddb14", "--clients", "5", "--models", "transe", "--seeds", "0", "1", "2"]
    request = request_for(tmp_path, *options, "--rounds", "40", "--strategies", "local", "fedr")
    text = markdown(report_of("fedr-table2", request, {("local", 0): 0.25, ("local", 1): 0.35, ("fedr", 0): None}))
    assert text.startswith("## FedR (Zhang et al. 2022), Table 2")
    for line in (
        "python -m benchmarks.reproduce ...",
        "2026-01-02, commit abc; 3 runs took 36 s, 12 s to 12 s each.",
        "Not as in the paper: --rounds 40 for 300.",
        "| data/clients | model | strategy | MRR paper | MRR here | Hits@1 | Hits@3 | Hits@10 | seeds | "
        "rounds (best) | s / run |",
        "| ddb14/5 | TransE | Local | 0.4206 | 0.3000 ± 0.6353 | 0.1500 | 0.3000 | 0.7500 | 2 of 3 | 40 (15) | 12 |",
        "| ddb14/5 | TransE | FedR | 0.4461 | failed | failed | failed | failed | 0 of 3 | – | – |",
        "- failed: ddb14-c5-transe-fedr-secagg-seed0: no such luck",
        "- 3 of 6 runs are still to be done: the same command goes on with them",
        "- The table's fifth model, NoGE, has settings of its own: fedr-table2-noge.",
        "- ddb14: the seed draws the split as well as first rows, batches and negatives.",
    ):
        assert line in text.splitlines()


def test_figures_that_are_not_what_they_seem_are_told(tmp_path: Path) -> None:
    options = ["--dataset", "ddb14-published", "--clients", "5", "--models", "transe", "--strategies", "local"]
    report = report_of("fedr-table2", request_for(tmp_path, "fedr-table2", *options), {("local", 0): 0.5})
    report["runs"][0] |= {"leaky_split": {"test_trained_on": 40, "test_triples": 100}}
    report["runs"][0] |= {"dropouts": [{"client": 2, "round": 7}]}
    text = markdown(report)
    name = "ddb14-published-c5-transe-local-secagg-seed0"
    assert f"- {name}: client 2 dropped out in round 7\n" in text
    assert f"- {name}: 40 of 100 test triples stand in some client's train part, so its figures are too good\n" in text
    assert "the split is given; the seed draws first rows" in text


def test_fusions_and_single_clients_are_read(tmp_path: Path) -> None:
    request = request_for(tmp_path, "fede-table3", "--models", "rotate", "--strategies", "local", "fused")
    report = report_of("fede-table3", request, {("local", 0): 0.25, ("fede", 0): 0.3, ("fused", 0): 0.35})
    cells = {(cell["part"], cell["strategy"]): cell for cell in report["cells"]}
    assert cells["client 1", "fused"]["ours"]["mrr"]["mean"] == 0.35
    assert cells["client 1", "fused"]["paper"]["hits@10"] == 0.7542
    assert cells["client 2", "local"]["ours"]["mrr"]["mean"] == 0.35
    assert cells["all", "fused"]["paper"] == {}
    assert cells["all", "fused"]["ours"]["mrr"]["mean"] == 0.35
    assert report["runs"][-1]["both_sides"] == {"mrr": 0.35 - 0.01}
    assert ("all", "fede") not in cells  # run because fusion needs it; nobody asked to see it
    assert [one["verdict"] for one in report["differences"]] == [
        "yes, on one seed",
        *["not measured"] * 2,
        "yes, on one seed",
    ]
    assert "| fb15k-237-fedlu/3 | RotatE | client 1 | FedE+fusion | 0.5553 | 0.3500 | " in markdown(report)


@pytest.mark.parametrize("name", TABLES)
def test_every_table_can_be_told(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    report = report_of(name, request_for(tmp_path, name), {})
    assert markdown(report).startswith(f"## {TABLES[name].title}")
    show(report)
    assert "0 of 1" in capsys.readouterr().out


def test_a_table_of_kbgat_sets_its_figures_beside_those_of_both_sides(tmp_path: Path) -> None:
    report = report_of("fedr-table7", request_for(tmp_path, "fedr-table7"), {("local", 0): 0.4})
    rotate, kbgat = (one for one in report["cells"] if one["strategy"] == "local")
    assert (rotate["paper"]["mrr"], rotate["ours"]["mrr"]["mean"]) == (0.5347, 0.4)
    assert (kbgat["paper"]["both mrr"], kbgat["ours"]["both mrr"]["mean"]) == (0.4467, pytest.approx(0.39))
    assert "both MRR paper" in markdown(report)


def test_figures_over_both_sides_have_names_of_their_own() -> None:
    figures = {"mrr": 0.5, "hits@10": 0.75, "mean_rank": 3.0, "both_sides": {"mrr": 0.25, "mean_rank": 9.0}}
    assert results._metrics(figures) == {"mrr": 0.5, "hits@10": 0.75, "both mrr": 0.25}
    assert results._metrics({"mrr": 0.5}) == {"mrr": 0.5}
