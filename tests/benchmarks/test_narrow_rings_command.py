"""Narrow rings compared with 32 bits: pairs of the same seed, finished runs used again, failures in one line."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import narrow_rings
from benchmarks.narrow_rings import Measured, compare, main
from secure_kg.foundation.errors import UserError


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


def test_every_width_and_seed_has_a_run_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def finished(folder: Path, job: list[str]) -> Any:
        asked.append(job)
        bits = int(job[job.index("--ring-bits") + 1])
        config, setup = {"clip": 2.0}, SimpleNamespace(bytes_up=10, bytes_down=20)
        figures = {"mrr": bits / 100, "both_sides": {"mrr": bits / 200}}
        sent = {"bytes_up": 10 + 4 * bits, "bytes_down": 20 + 8 * bits, "setup": setup, "rounds": 4}
        return SimpleNamespace(config=config, figures=figures, clipped_values=0, max_fixed_point_error=0.5, **sent)

    monkeypatch.setattr(narrow_rings, "_finished", finished)
    figures = tmp_path / "figures.json"
    command = ["--bits", "16", "24", "--seeds", "3", "4", "--out", str(tmp_path), "--json", str(figures)]
    assert main([*command, "--", "--strategy", "fede"]) == 0
    told = json.loads(figures.read_text(encoding="utf-8"))
    assert [(run["bits"], run["seed"], run["bytes_up"]) for run in told["runs"]] == [
        (bits, seed, bits) for seed in (3, 4) for bits in (32, 16, 24)
    ]
    sixteen, _ = told["compared"]
    assert sixteen["difference"] == pytest.approx(-0.16)
    assert sixteen["bytes_ratio"] == sixteen["down_ratio"] == 0.5
    assert all(job[-2:] == ["--strategy", "fede"] for job in asked)
    assert (
        "16 bits against 32: MRR 0.1600, -0.1600 (-0.1600, -0.1600); bytes of a round 0.5000" in capsys.readouterr().out
    )


@pytest.mark.slow
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
    failing = [sys.executable, "-c", "import sys; sys.exit('error: no such data set')"]
    monkeypatch.setattr(narrow_rings, "_command", lambda *_: failing)
    assert main(["--out", str(tmp_path), "--bits", "16"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "32-bits-seed-0: the run failed: error: no such data set" in line
    with pytest.raises(UserError, match="not on this machine"):
        narrow_rings._known(None)
