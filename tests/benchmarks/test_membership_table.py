"""`benchmarks.reproduce dpflames-table2`: the paper's F1 beside measured ones, and results found again."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from benchmarks.reproduce import main
from benchmarks.reproduction.membership import NAME, PAPER, SETTINGS, build
from secure_kg.attacks.membership.experiment import Outcome
from secure_kg.attacks.membership.measures import measure
from secure_kg.attacks.membership.telling import told
from secure_kg.audit.records.membership import MembershipOutcome, MembershipReport
from secure_kg.data.sources import PooledSource, load_source

Capture = pytest.CaptureFixture[str]


def data_root(tmp_path: Path) -> Path:
    """Nations under the name of the table's data set: the command looks at names of folders alone."""
    source = load_source("nations")
    assert isinstance(source, PooledSource)
    folder = tmp_path / "data" / "fb15k-237"
    folder.mkdir(parents=True)
    lines = (f"{source.entities[h]}\t{source.relations[r]}\t{source.entities[t]}\n" for h, r, t in source.triples)
    (folder / "train.tsv").write_text("".join(lines))
    return tmp_path / "data"


@pytest.mark.slow
def test_cells_stand_beside_the_papers_and_are_not_run_again(tmp_path: Path, capsys: Capture) -> None:
    words = [NAME, "--data-root", str(data_root(tmp_path)), "--rounds", "2", "--canaries", "10", "--dim", "8",
             "--local-epochs", "1", "--runs", str(tmp_path / "runs"), "--json", "-"]  # fmt: skip
    assert main(words) == 0
    report = json.loads(capsys.readouterr().out)
    printed = {line["paper_f1"] for line in report["lines"] if (line["attack"], line["view"]) == ("A_SI", "upload")}
    assert printed == {PAPER["fb15k-237"]["TransE"]["A_SI"]}
    assert {line["attack"] for line in report["lines"]} == {"A_CIP", "A_CIA", "A_SI"}
    assert {one["setting"] for one in report["deviations"]} >= {"dim", "canaries"}
    (written,) = (tmp_path / "runs").glob("*/attack.json")
    at = written.stat().st_mtime_ns
    assert main([*words, "--markdown", str(tmp_path / "table.md")]) == 0
    assert json.loads(capsys.readouterr().out) == report
    assert written.stat().st_mtime_ns == at
    assert "| TransE | A_CIP mended | means | 0.724 |" in (tmp_path / "table.md").read_text()
    written.write_text("{}")
    shutil.rmtree(tmp_path / "data")
    assert main(words) == 2
    assert capsys.readouterr().err.startswith("error: --data-root")


def test_a_mistake_is_one_line(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "fb15k-237").mkdir()
    assert main([NAME, "--data-root", str(tmp_path), "--models", "RESCAL"]) == 2
    assert main([NAME, "--data-root", str(tmp_path / "nowhere")]) == 2
    first, second = capsys.readouterr().err.strip().splitlines()
    assert "this table has TransE" in first
    assert "no fb15k-237 there" in second


def outcome(attack: str, round: int, shift: float) -> MembershipOutcome:
    draw = np.random.default_rng(round)
    measures = measure(draw.normal(shift, 1, 80), draw.normal(0, 1, 80), draw.normal(0, 1, 50))
    return told(2, Outcome(attack, "mended", "means", "canaries", round, measures))


def test_the_best_f1_is_over_rounds_and_the_others_of_the_last() -> None:
    outcomes = [outcome("A_CIP", 5, 3.0), outcome("A_CIP", 10, 1.0), outcome("A_SI", 10, 1.0)]
    report = MembershipReport(about="", settings={}, outcomes=outcomes)
    first, second = build("fb15k-237", dict.fromkeys(SETTINGS, "0"), {"TransE": report})["lines"]
    assert (first["paper_f1"], first["best_f1"]) == (0.724, outcomes[0].best_f1)
    assert (first["f1"], first["auc"], first["round"]) == (outcomes[1].f1, outcomes[1].auc, 10)
    assert (second["attack"], second["paper_f1"]) == ("A_SI", None)  # the paper's server has uploads


def test_the_papers_mean_is_not_that_of_its_abstract() -> None:
    figures = [figure for models in PAPER.values() for model in models.values() for figure in model.values()]
    assert float(np.mean(figures)) == pytest.approx(0.816, abs=0.0005)
