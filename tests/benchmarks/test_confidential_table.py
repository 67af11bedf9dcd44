"""`benchmarks.reproduce dpkge-tables`: the paper's figures beside measured ones, controls, and cells found again."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.reproduce import main
from benchmarks.reproduction.confidential import NAME
from benchmarks.reproduction.confidential_figures import EPSILONS, MODELS, Cell, cells, printed
from benchmarks.reproduction.count_tables import count_tables
from benchmarks.reproduction.touched_rows import given_away
from secure_kg.data.partition import load_client
from secure_kg.privacy.accounting.accountant import Budget
from secure_kg.privacy.confidential.marking import by_fraction
from secure_kg.privacy.training_config import PrivateTrainingConfig

Capture = pytest.CaptureFixture[str]


def data_root(tmp_path: Path) -> Path:
    """Nations under the name of the table's data set."""
    graph = load_client("nations", 1, 1, "whole", 0)
    folder = tmp_path / "data" / "fb15k-237"
    folder.mkdir(parents=True)
    for part in ("train", "valid", "test"):
        lines = (f"{graph.entities[h]}\t{graph.relations[r]}\t{graph.entities[t]}\n" for h, r, t in graph.part(part))
        (folder / f"{part}.tsv").write_text("".join(lines))
    return tmp_path / "data"


def test_cells_stand_beside_the_papers_and_are_not_run_again(tmp_path: Path, capsys: Capture) -> None:
    words = [NAME, "--data-root", str(data_root(tmp_path)), "--models", "distmult", "--arms", "NDP", "DPKGE",
             "--passes", "1", "--sampling", "1", "--dim", "4", "--negatives", "4", "--printed-passes", "1",
             "--runs", str(tmp_path / "runs"), "--json", "-"]  # fmt: skip
    assert main(words) == 0
    report = json.loads(capsys.readouterr().out)
    assert [(line["arm"], line["epsilon"]) for line in report["lines"]] == [
        ("NDP", None), *(("DPKGE", epsilon) for epsilon in EPSILONS["DPKGE"])]  # fmt: skip
    assert report["lines"][1]["paper_mean_rank"] == 465.80
    assert 0 < report["lines"][1]["noise"] < report["lines"][4]["noise"]
    assert [line["epsilon"] for line in report["controls"]] == [None, *EPSILONS["DPKGE"]]
    assert report["as_printed"]["all_rows"] == 0.5
    written = tmp_path / "runs" / "dpkge-fb15k-237" / "distmult-ndp.json"
    at = written.stat().st_mtime_ns
    assert main([*words, "--markdown", str(tmp_path / "table.md")]) == 0
    assert json.loads(capsys.readouterr().out) == report
    assert written.stat().st_mtime_ns == at
    assert "| DistMult | DPKGE | 0.7 | 10.08 |" in (tmp_path / "table.md").read_text()
    written.write_text("[]")  # a damaged cell is measured again
    assert main([*words[:-2], "--arms", "NDP", "--printed-passes", "0"]) == 0
    assert "1/1] distmult-ndp" in capsys.readouterr().out
    assert json.loads(written.read_text())["line"]["mean_rank"] == report["lines"][0]["mean_rank"]


@pytest.mark.parametrize(
    "options",
    [["--models", "RotatE"], ["--arms", "none"], ["--sampling", "2"], ["--rate", "nan"], ["--passes", "0"],
     ["--clip-quantile", "0"]],
)  # fmt: skip
def test_a_mistake_is_one_line(tmp_path: Path, options: list[str], capsys: Capture) -> None:
    root = data_root(tmp_path)
    assert main([NAME, "--data-root", str(root), "--runs", str(tmp_path / "runs"), *options]) == 2
    assert main([NAME, "--data-root", str(tmp_path / "nowhere")]) == 2
    assert capsys.readouterr().err.count("\n") == 2


def test_printed_figures_get_worse_with_noise() -> None:
    for model in MODELS:
        assert len({cell.name for cell in cells(model)}) == 10
        for arm, epsilons in EPSILONS.items():
            ranks = [printed(Cell(model, arm, epsilon))[0] for epsilon in epsilons]
            assert ranks == sorted(ranks)
            assert printed(Cell(model, "NDP"))[0] < ranks[0]


def test_counts_of_u_and_noised_counts_of_c() -> None:
    graph = load_client("nations", 1, 1, "whole", 0)
    parts = by_fraction(graph, 0.5, 0)
    clear, noised = (count_tables(graph, parts, budget) for budget in (None, Budget(1e4, 1e-5)))
    assert int(clear.tails.sum()) == int(clear.heads.sum()) == len(parts.unrestricted)
    head, relation, tail = (int(one) for one in parts.unrestricted[0])
    assert clear.tails[relation, tail] >= 1
    assert clear.heads[relation, head] >= 1
    one = torch.from_numpy(graph.test[:1])
    assert torch.equal(clear.scores(one, "head")[0], clear.heads[int(one[0, 1])])
    exact = np.zeros(tuple(noised.tails.shape))
    np.add.at(exact, (graph.train[:, 1], graph.train[:, 2]), 1)
    assert float(np.abs(noised.tails.numpy() - exact).max()) < 0.5  # so large an epsilon has hardly any noise


@pytest.mark.slow
def test_noise_as_printed_tells_who_is_confidential() -> None:
    graph = load_client("kinships", 1, 1, "whole", 0)
    config = PrivateTrainingConfig(dim=4, negatives=2, steps=4, sampling=0.002)
    found = given_away(graph, by_fraction(graph, 0.5, 0), config, 0.7)
    assert found["touched_rows"] > 0.6  # 0.65 to 0.69 in five tries
    assert found["all_rows"] == 0.5
