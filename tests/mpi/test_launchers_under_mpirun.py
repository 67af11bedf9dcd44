"""The launchers beside the main one: real jobs, and the fusion of what they leave."""

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from launch import entire, fuse, local
from tests.support.jobs_in_threads import run_in_threads
from tests.support.mpi_jobs import command, environment, run_job

pytestmark = pytest.mark.mpi

TINY = ["--dataset", "nations", "--rounds", "2", "--dim", "8", "--eval-every", "1", "--checkpoint-every", "2"]


def summary(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return loaded


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A FedE run started by itself under mpirun and a Local run in threads, beside each other."""
    root = tmp_path_factory.mktemp("runs")
    started = run_job(None, "-n", "3", *TINY, "--out", "fede", cwd=root, module="launch.fede")
    assert started.code == 0, started.errors
    assert "python -m launch.fede" in started.out.splitlines()[0]
    alone = run_in_threads(3, *TINY, "--out", "local", cwd=root, launcher=local.main)
    assert alone.code == 0, alone.errors
    return root


def test_fede_and_local_are_jobs_like_any_other(runs: Path) -> None:
    shared, alone = summary(runs / "fede"), summary(runs / "local")
    assert (shared["config"]["strategy"], alone["config"]["strategy"]) == ("fede", "local")
    assert shared["shared_rows"] == 14
    assert alone["shared_rows"] == 0


def test_entire_is_one_process_with_the_same_clients(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pooled = run_job(3, *TINY, "--out", "entire", cwd=runs, module="launch.entire")
    assert pooled.code == 0, pooled.errors
    assert pooled.errors == ""
    assert pooled.out.count("Entire: the triples of 2 clients in one place, without any privacy") == 1
    assert "not private: one process read the triples of all 2 clients" in pooled.out
    assert "entire" in pooled.out.split("the same data, seed and model")[1]
    results = [summary(runs / name) for name in ("entire", "local")]
    counts = [[client["test_triples"] for client in one["clients"]] for one in results]
    assert counts[0] == counts[1]
    assert entire.main(["--aggregation", "secagg"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_entire_is_interrupted_in_one_line_and_resumed(tmp_path: Path) -> None:
    options = [*TINY[:2], "--rounds", "100000", "--patience", "100000", "--dim", "8", "--checkpoint-every", "5"]
    with (tmp_path / "log").open("w") as log:
        job = subprocess.Popen(
            command(None, *options, "--out", "run", module="launch.entire"),
            cwd=tmp_path,
            stdout=log,
            stderr=log,
            env=environment(),
        )
        limit = time.monotonic() + 60
        while not (tmp_path / "run/checkpoint.json").exists():
            assert job.poll() is None
            assert time.monotonic() < limit
            time.sleep(0.02)
        job.send_signal(signal.SIGINT)
        assert job.wait(timeout=30) == 128 + signal.SIGINT
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[-1].startswith("error: interrupted; --resume continues the run")
    assert not any("Traceback" in line for line in lines)
    done = json.loads((tmp_path / "run/checkpoint.json").read_text())["round"]
    last = str(done + 3)
    resumed = run_job(None, "--resume", "run", "--rounds", last, cwd=tmp_path, module="launch.entire")
    assert resumed.code == 0, resumed.errors
    assert "continuing after round" in resumed.out
    assert summary(tmp_path / "run")["rounds"] == done + 3
    again = run_job(None, "--resume", "run", cwd=tmp_path, module="launch.entire")
    assert again.code == 0
    assert "complete" in again.out


def test_fusion_of_two_runs(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shared, alone = str(runs / "fede"), str(runs / "local")
    out = str(tmp_path / "fused")
    assert fuse.main([shared, alone, "--out", out, "--epochs", "2", "--json", str(tmp_path / "copy.json")]) == 0
    shown = capsys.readouterr().out
    assert "client 2: test, tail side, filtered" in shown
    assert "mean rank" in shown
    assert "all 2 clients" in shown
    record = json.loads((tmp_path / "fused/fusion.json").read_text())
    assert record == json.loads((tmp_path / "copy.json").read_text())
    for name, folder in (("federated", "fede"), ("single", "local")):
        run = summary(runs / folder)
        assert record["all"][name]["mrr"] == pytest.approx(run["mrr"], abs=1e-6)  # the sum's fixed point
        for fused, client in zip(record["clients"], run["clients"], strict=True):
            assert fused[name]["mrr"] == pytest.approx(client["mrr"], abs=1e-12)
            assert fused[name]["both_sides"]["hits@10"] == pytest.approx(client["both_sides"]["hits@10"])
    for client in record["clients"]:
        valid = client["valid_mrr"]
        assert valid["fused"] >= max(valid["single"], valid["federated"])
    # A client who has nothing but its own folders gets the same.
    for folder in ("fede", "local"):
        shutil.copytree(runs / folder / "clients/2", tmp_path / folder / "clients/2")
        shutil.copy(runs / folder / "config.toml", tmp_path / folder)
    own = [str(tmp_path / "fede"), str(tmp_path / "local"), "--client", "2", "--epochs", "2"]
    assert fuse.main([*own, "--out", str(tmp_path / "own")]) == 0
    assert json.loads((tmp_path / "own/fusion.json").read_text())["clients"] == record["clients"][1:]


def test_fusion_refuses_what_does_not_fit_together(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    shutil.copytree(runs / "local", other)
    settings = (other / "config.toml").read_text()
    shared, alone, out = str(runs / "fede"), str(runs / "local"), ["--out", str(tmp_path / "out")]
    for change, problem in (
        (("seed = 0", "seed = 1"), "differ in seed: 0 and 1"),
        (("clients = 2", "clients = 3"), "differ in clients: 2 and 3"),
        (('"TransE"', '"RotatE"'), "differ in model: TransE and RotatE"),
        (("dim = 8", "dim = 9"), "does not fit the client's graph"),
    ):
        (other / "config.toml").write_text(settings.replace(*change))
        assert fuse.main([shared, str(other), *out]) == 2
        assert problem in capsys.readouterr().err
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
    (other / "config.toml").write_text(settings)
    (other / "clients/1/model.safetensors").unlink()
    for arguments, problem in (
        ([alone, alone], "a run of strategy local, which shares nothing"),
        ([shared, shared], "a run of strategy fede, not local"),
        ([shared, str(tmp_path)], "no run folder"),
        ([shared, str(other)], "not there (run not complete"),
        ([shared, alone, "--client", "3"], "clients 1 to 2"),
        ([shared, alone, "--epochs", "0"], "--epochs must be a positive number"),
    ):
        assert fuse.main([*arguments, *out]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert problem in line
        assert not (tmp_path / "out").exists()
