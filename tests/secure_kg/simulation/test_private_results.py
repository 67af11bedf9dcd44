"""Results of private runs: shown everywhere, with test figures only where evaluation triples are public."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from launch import cli, fede
from launch.results import show_results
from secure_kg import SimulatedRun, load_run, simulate
from secure_kg.runs.records.summary import NO_FIGURES, PeakMemory
from tests.support.jobs_in_threads import run_in_threads

CLIENTS = 3


def private(*, public_evaluation: bool, **more: Any) -> SimulatedRun:
    budget = {"dp": "sgd", "epsilon": 8.0, "delta": 1e-5, "public_evaluation": public_evaluation}
    return simulate("nations", clients=CLIENTS, strategy="all-rows", rounds=2, dim=4, **budget, **more)


@pytest.fixture(scope="module")
def kept() -> SimulatedRun:
    return private(public_evaluation=False)


@pytest.fixture(scope="module")
def public() -> SimulatedRun:
    return private(public_evaluation=True)


def test_a_result_without_test_figures_says_so_everywhere(kept: SimulatedRun) -> None:
    assert kept.metrics == {}
    assert kept.curve == []
    again = load_run(kept.path).result()
    for shown in (repr(kept), kept._repr_html_(), repr(again), again._repr_html_(), kept.plot().svg):
        assert NO_FIGURES in " ".join(shown.split())
    page = (kept.path / "report.html").read_text("utf-8")
    assert f"{NO_FIGURES}." in page
    assert kept.client(1).predict_tails("china", "militaryalliance", top=3).kind == "tail"


def test_public_evaluation_triples_have_figures_everywhere(public: SimulatedRun) -> None:
    name = f"{public.metrics['mrr']:.4f}"
    for shown in (repr(public), public._repr_html_(), public.plot().svg, (public.path / "report.html").read_text()):
        assert name in shown
        assert NO_FIGURES not in shown


def test_both_stand_in_a_comparison(
    kept: SimulatedRun, public: SimulatedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, page = [str(kept.save(tmp_path / "kept")), str(public.save(tmp_path / "public"))], tmp_path / "page.html"
    assert cli.main(["compare", *runs, "--out", str(page)]) == 0
    assert f"warning: kept: {NO_FIGURES}." in capsys.readouterr().out
    assert page.read_text("utf-8").count(NO_FIGURES) == 2  # in the warning and in the table
    assert cli.main(["compare", *runs, "--out", str(page), "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)["runs"]
    assert [one["untold"] for one in told] == [NO_FIGURES, None]
    assert [one["test"]["mrr"] for one in told] == [None, public.metrics["mrr"]]


def test_a_client_still_evaluates_its_own_model(
    kept: SimulatedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = kept.save(tmp_path / "run")
    assert cli.main(["evaluate", str(run), "--client", "1"]) == 0
    assert "MRR" in capsys.readouterr().out
    assert cli.main(["predict", str(run), "--client", "1", "--head", "china", "--relation", "militaryalliance"]) == 0


@pytest.mark.parametrize("which", ["kept", "public"])
def test_no_summary_of_a_private_run_has_times_or_memory_of_clients(
    which: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    run: SimulatedRun = request.getfixturevalue(which)
    summary = run.summary
    assert [(one.seconds, one.cpu_seconds, one.peak_memory_mb) for one in summary.clients] == [({}, None, None)] * 3
    assert (summary.seconds, summary.cpu_seconds) == (summary.seconds_server, summary.cpu_seconds_server)
    assert isinstance(summary.peak_memory_mb, PeakMemory)
    assert summary.peak_memory_mb.server
    assert summary.peak_memory_mb.client_mean is summary.peak_memory_mb.client_max is None
    own = json.loads((run.path / "clients" / "1" / "result.json").read_text())
    assert own["seconds"]["train"] > 0  # the client itself knows
    assert "seconds of the server" in (run.path / "report.html").read_text("utf-8")
    show_results(summary, run.path)
    assert "seconds of the server: " in " ".join(capsys.readouterr().out.split())


def test_a_copy_is_for_its_owner_and_has_no_key_of_noise(tmp_path: Path) -> None:
    triples = [(f"a{one}", "knows", f"a{two}") for one in range(6) for two in range(6) if one != two]
    budget: dict[str, Any] = {"dp": "sgd", "epsilon": 8.0, "delta": 1e-5}
    done = simulate([triples, triples[3:], triples[5:]], strategy="all-rows", rounds=2, dim=4, **budget)
    assert list(done.path.rglob("state.key"))
    old = os.umask(0o022)
    try:
        copy = done.save(tmp_path / "copy")
    finally:
        os.umask(old)
    for path in (copy / "data", *(copy / "data").rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    assert {path.stat().st_mode & 0o077 for path in (copy / "clients").iterdir()} == {0}
    assert not {"state.key", "session.lock", "lock"} & {path.name for path in copy.rglob("*")}
    scratch = str(done.path.parent).encode()
    assert [path for path in copy.rglob("*.*") if path.is_file() and scratch in path.read_bytes()] == []
    assert load_run(copy).result().summary.config["client_data"] == str((copy / "data").resolve())
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        done_again = run_in_threads(None, "--resume", "copy", cwd=tmp_path, launcher=fede.main)
    assert (done_again.code, "complete" in done_again.out) == (0, True)
