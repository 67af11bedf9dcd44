"""The proof for a GPU: what it says where there is none, exit codes, and a page that stands by itself."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import gpu_check
from benchmarks.gpu import cases, speed, twins
from benchmarks.gpu.cases import learners
from benchmarks.gpu.page import by_bound, by_name, page, verdict
from benchmarks.gpu.twins import Compared
from secure_kg.learning import device as devices

GPU = {"number": 0, "name": "a <GPU>", "capability": "9.0", "megabytes": 80000}


def report(*compared: dict[str, Any], gpus: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    here: dict[str, Any] = {"model": "TransE", "device": "cpu", "repeatable": True, "peak_megabytes": None}
    speeds = [{**here, "triples_per_second": 5e4}]
    if gpus:
        on = {"model": "TransE", "device": "cuda:0", "triples_per_second": 1e6, "peak_megabytes": 100.0}
        speeds += [{**on, "repeatable": True}, {**on, "repeatable": False, "triples_per_second": 1.2e6}]
    twin = {"device": "cpu", "ranks": 4, "secure_as_plain": True, "repeated": False, "mrr": 0.2}
    return {
        **{"command": "check", "commit": None, "torch": "2", "cuda": None, "driver": None, "cpu": "C", "python": "3"},
        **{"gpus": list(gpus), "compared": list(compared), "speeds": speeds, "federation": twin, "skipped": []},
        "holds": all(one["holds"] for one in compared),
    }


def one(name: str = "TransE", difference: float = 1e-7) -> dict[str, Any]:
    made = Compared(name, "loss", difference, 1e-3, "rounding")
    return {"name": name, "what": "loss", "difference": difference, "allowed": 1e-3, "reason": "rounding",
            "holds": made.holds, "device": "pretended"}  # fmt: skip


@pytest.fixture
def one_learner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twins, "learners", lambda: learners()[:1])
    monkeypatch.setattr(twins, "compare_kernels", lambda device: [])


@pytest.mark.usefixtures("one_learner")
@pytest.mark.skipif(bool(devices.gpus()), reason="there is a GPU here")
def test_without_a_gpu_the_page_says_so_and_the_exit_code_is_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, figures = tmp_path / "gpu.html", tmp_path / "gpu.json"
    options = ["--skip", "speed", "--skip", "federation", "--out", str(out), "--json", str(figures)]
    assert gpu_check.main(options) == gpu_check.NO_GPU
    said = "No GPU was found on this machine: the GPU columns are missing."
    assert said in capsys.readouterr().out.replace("\n", " ")
    assert said in out.read_text()
    assert {one["device"] for one in json.loads(figures.read_text())["compared"]} == {"pretended"}


@pytest.mark.usefixtures("one_learner")
def test_what_does_not_hold_is_exit_code_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twins, "compare_again", lambda case, device: [Compared("TransE", "two runs", 1.0, 0.0, "why")])
    assert gpu_check.main(["--skip", "speed", "--skip", "federation"]) == 1


def test_the_page_has_worst_differences_bounds_and_reasons() -> None:
    whole = report(one(), one("RotatE", 0.5), gpus=(GPU,))
    assert by_bound(whole) == [("loss", "0.5 (RotatE)", "0.001", "rounding", "1 of 2")]
    assert [(name, holds) for _, name, _, holds in by_name(whole)] == [("TransE", True), ("RotatE", False)]
    text = page(whole)
    for said in ("Checked on a &lt;GPU&gt;: 1 of 2 comparisons hold.", "does not hold", "20.0 times", "20%"):
        assert said in text
    for foreign in ("<script", "http://", "https://", "src="):
        assert foreign not in text
    assert "a pretended GPU" in verdict(report(one()))


def test_a_learner_that_is_added_to_a_registry_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [case.name for case in learners()]
    monkeypatch.setitem(cases.ENCODERS, "another", cases.ENCODERS["gqe"])
    assert [case.name for case in learners()] == [*before, "another"]


def test_throughput_of_the_cpu_is_measured() -> None:
    found = speed.measure("TransE", devices.CPU, 256)
    assert found.triples_per_second > 0
    assert found.peak_megabytes is None


def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_check.main(["--triples", "0"]) == 2
    assert capsys.readouterr().err.strip() == "error: --triples must be at least 1"
