"""Narrow rings compared with 32 bits: pairs of the same seed, finished runs used again, failures in one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import narrow_rings
from benchmarks.narrow_rings import Measured, compare, main


def run(bits: int, seed: int, mrr: float, up: float = 100.0) -> Measured:
    return Measured(bits, seed, 1.0, mrr, mrr / 2, 10, up, 2 * up, 3, 0.5 / bits)


def test_runs_are_compared_with_that_of_their_own_seed() -> None:
    runs = [run(32, 0, 0.2), run(32, 1, 0.6), run(16, 1, 0.5, 55.0), run(16, 0, 0.25, 45.0), run(20, 0, 0.2)]
    sixteen, twenty = compare(runs)
    assert (sixteen.bits, twenty.bits) == (16, 20)
    assert sixteen.differences == pytest.approx((-0.1, 0.05))
    assert sixteen.difference == pytest.approx(-0.025)
    assert sixteen.mrr == pytest.approx(0.375)
    assert (sixteen.up_ratio, sixteen.down_ratio, sixteen.bytes_ratio) == pytest.approx((0.5, 0.5, 0.5))
    assert (sixteen.clipped, sixteen.max_error) == (6, 0.5 / 16)
    assert twenty.differences == (0.0,)


def test_real_runs_are_made_once_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--dim", "4", "--negatives", "4", "--rounds", "2", "--eval-every", "2", "--aggregation", "plain"]
    command = [
        "--dataset",
        "nations",
        "--clients",
        "2",
        "--bits",
        "16",
        "--seeds",
        "0",
        "--out",
        str(tmp_path / "runs"),
    ]
    figures = tmp_path / "figures.json"
    assert main([*command, "--json", str(figures), "--", *small]) == 0
    first = json.loads(figures.read_text(encoding="utf-8"))
    (one,) = first["compared"]
    assert one["bits"] == 16
    assert 0.4 < one["up_ratio"] < 0.8
    assert 0.3 < one["down_ratio"] < 0.9
    assert one["differences"] == [first["runs"][1]["mrr"] - first["runs"][0]["mrr"]]
    assert "16 bits against 32: MRR" in capsys.readouterr().out
    before = sorted(path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*/summary.json"))
    assert main([*command, "--json", str(figures), "--", *small]) == 0
    assert sorted(path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("*/summary.json")) == before
    assert json.loads(figures.read_text(encoding="utf-8"))["runs"] == first["runs"]


def test_mistakes_are_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["--out", str(tmp_path), "--bits", "32"]) == 2
    assert "--bits: 32 is what the others are compared with" in capsys.readouterr().err
    assert main(["--out", str(tmp_path), "--bits", "16", "--dataset", "nations", "--", "--rounds", "0"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "32-bits-seed-0: the run failed: error: --rounds must be at least 1" in line

    def unknown(*_: Any) -> Any:
        return None

    with pytest.raises(Exception, match="not on this machine"):
        narrow_rings._known(unknown())
