"""`benchmarks.reproduce dpflames-table2`: the paper's F1 beside measured ones, and results found again."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from benchmarks.reproduce import main
from benchmarks.reproduction.membership import NAME, PAPER
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


@pytest.mark.parametrize(("words", "told"), [
    (["--models", "RESCAL"], "this table has TransE"),
    (["--clients", "x"], "must be"),
])  # fmt: skip
def test_a_mistake_is_one_line(words: list[str], told: str, tmp_path: Path, capsys: Capture) -> None:
    root = data_root(tmp_path)
    code = main([NAME, "--data-root", str(root), "--runs", str(tmp_path / "runs"), *words])
    said = capsys.readouterr().err.strip()
    assert (code, "\n" in said) == (2, False)
    assert told in said or "invalid int" in said


def test_the_papers_mean_is_not_that_of_its_abstract() -> None:
    figures = [figure for models in PAPER.values() for model in models.values() for figure in model.values()]
    assert float(np.mean(figures)) == pytest.approx(0.816, abs=0.0005)
