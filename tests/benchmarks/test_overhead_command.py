"""The overhead benchmark on real runs, and its mistakes."""

import json
from pathlib import Path

import pytest

from benchmarks import overhead


@pytest.mark.mpi
def test_measures_real_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--dataset", "nations", "--clients", "2", "--rounds", "2", "--dim", "16", "--repeat", "1"]
    assert overhead.main([*options, "--json", str(tmp_path / "overhead.json")]) == 0
    report = json.loads((tmp_path / "overhead.json").read_text())
    for setting in overhead.SETTINGS:
        assert report[setting]["round_seconds"] > 0
        assert report[setting]["bytes_up"] > 0
    for setting in overhead.SECURE:
        assert report["plain"]["seconds"]["mask"] == 0 < report[setting]["seconds"]["mask"]
        assert report[setting]["bytes_ratio"] > 1  # keys, shares and the union beside sixteen numbers per row
    assert report["mrr_difference"] == 0
    assert "ratio_to_plain" in capsys.readouterr().out


@pytest.mark.parametrize("options", [["--clients", "1"], ["--rounds", "x"], ["--nonsense"]])
def test_a_mistake_gets_one_line(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert overhead.main(options) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 1
    assert errors[0].startswith("error: ")


@pytest.mark.mpi
def test_a_failing_run_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert overhead.main(["--dataset", "no-such-set", "--repeat", "1"]) == 2
    assert "unknown data set" in capsys.readouterr().err
