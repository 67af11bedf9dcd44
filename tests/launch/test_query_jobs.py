"""Whole jobs of `launch.fedcqa`: federated, pooled by the same command, and resumed as they were begun."""

import json
from pathlib import Path
from typing import Any

import pytest

from launch import entire, fedcqa
from tests.support.jobs_in_threads import run_in_threads

pytestmark = pytest.mark.long

TINY = [
    *("--dataset", "nations", "--dim", "4", "--batch-size", "8", "--local-steps", "1", "--eval-queries", "2"),
    *("--test-types", "1p,2i", "--eval-every", "2", "--checkpoint-every", "2"),
]


def summary(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / "summary.json").read_text())
    return found


def test_a_job_federated_and_pooled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(entire, "end_on_signals", lambda: None)
    ended = run_in_threads(4, *TINY, "--rounds", "2", "--out", "fed", cwd=tmp_path, launcher=fedcqa.main)
    assert ended.code == 0, ended.errors
    for words in ("FedCQA", "gqe", "hard answers", "MRR by type: 1p", "launch.fedcqa --strategy fedcqa-local"):
        assert words in ended.out
    told = summary(tmp_path / "fed")
    assert (told["config"]["strategy"], told["config"]["aggregation"]) == ("fedcqa", "secret")
    assert told["config"]["queries"]["dim"] == 4
    assert "training" not in told["config"]
    assert sorted(told["types"]) == ["1p", "2i"]
    monkeypatch.chdir(tmp_path)
    options = [*TINY, "-n", "4", "--strategy=fedcqa-central"]
    assert fedcqa.main([*options, "--rounds", "4", "--out", "whole"]) == 0
    assert fedcqa.main([*options, "--rounds", "2", "--out", "parts"]) == 0
    assert "not private: one process read the triples of all 3 clients" in capsys.readouterr().out
    assert fedcqa.main(["--resume", "parts", "--rounds", "4"]) == 0
    assert summary(tmp_path / "whole")["types"] == summary(tmp_path / "parts")["types"]
    models = [(tmp_path / name / "clients" / "2" / "model.safetensors").read_bytes() for name in ("whole", "parts")]
    assert models[0] == models[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--strategy", "fedcqa-central", "--aggregation", "secret"], "no sum can hide them"),
        (["--resume", "nowhere"], "nowhere"),
        (["--strategy"], "--strategy"),
    ],
)
def test_a_mistake_is_one_line(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert fedcqa.main(options) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
