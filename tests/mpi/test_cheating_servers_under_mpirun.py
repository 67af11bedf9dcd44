"""Servers that cheat in real jobs: each party is a process, and what came of it is read from the folders they leave."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cheating.spoils import held_rows, sums_read, total_of
from benchmarks.cheating.stage import CLIENTS, VICTIM, Session, Stage, stage_config
from launch import audit
from secure_kg.runs.checkpoint import load_arrays
from secure_kg.runs.run_folder import read_config, read_json
from tests.support.mpi_jobs import MPIRUN, environment

pytestmark = pytest.mark.mpi

SCRIPT = """
import sys
from functools import partial
from pathlib import Path

from launch import fedr_secagg
from secure_kg.federation.server import serve


def server(*arguments):
    from benchmarks.cheating.under_mpirun import cheating_server

    return cheating_server(sys.argv[1], Path(sys.argv[2]), *arguments)


if sys.argv[1] != "honest":
    serve.FederationServer = server
sys.exit(fedr_secagg.main(sys.argv[3:]))
"""
NATIONS = ("--dataset", "nations", "--dim", "8", "--rounds", "4", "--transcript", "--out", "run")


def serve(folder: Path, cheat: str, *options: str) -> "subprocess.CompletedProcess[str]":
    script = folder / "cheating_job.py"
    script.write_text(SCRIPT)
    notebook = folder / f"notebook-{cheat}.bin"
    job = [str(MPIRUN), "-n", str(CLIENTS + 1), sys.executable, str(script), cheat, str(notebook), *options]
    here = {**environment(), "PYTHONPATH": str(Path(__file__).parents[2])}  # benchmarks are run from their own folder
    return subprocess.run(job, cwd=folder, env=here, capture_output=True, text=True, timeout=200, check=False)


def left_behind(folder: Path, cheat: str) -> Stage:
    stage = Stage(folder, read_config(folder / "run"))
    stage.sessions.append(Session(folder / f"notebook-{cheat}.bin"))
    return stage


def audited(folder: Path) -> tuple[int, set[str]]:
    code = audit.main([str(folder / "run"), "--out", str(folder / "audit")])
    found = read_json(folder / "audit" / "audit.json")["findings"]
    return code, {one["id"] for one in found if one["severity"] == "high"}


def test_two_tables_do_not_give_the_victims_rows(tmp_path: Path) -> None:
    """The checkpoint of the attacked round has the victim's rows as it gave them: none are put in before the next."""
    serve(tmp_path, "two-tables", *NATIONS, "--eval-every", "4", "--checkpoint-every", "3")
    stage = left_behind(tmp_path, "two-tables")
    read = total_of(sums_read(stage, stage.last), "rows", 3)
    part = tmp_path / f"run/clients/{VICTIM}/checkpoint-000003.safetensors"
    if read is not None and part.exists():
        held = held_rows(stage, VICTIM, load_arrays(part)[0]["model/relation"])
        assert held is not None
        (positions, rows), total = held, read[0]
        everywhere = total.counts[positions] == CLIENTS
        sums = total.real.reshape(len(total.counts), -1)[positions][everywhere]
        computed = sums - (CLIENTS - 1) * stage.config.clip
        assert np.abs(computed - rows[everywhere]).max() > 1e-3
    code, found = audited(tmp_path)
    assert code == 3
    assert found & {"different-global-models", "false-totals"}


@pytest.mark.slow
def test_a_session_that_vanished_is_missed(tmp_path: Path) -> None:
    assert serve(tmp_path, "dies", *NATIONS, "--eval-every", "2", "--checkpoint-every", "2").returncode != 0
    run = tmp_path / "run"
    for trace in [*run.glob("transcript-*.bin"), run / "checkpoint.json", *run.glob("server/*")]:
        trace.unlink()
    assert serve(tmp_path, "honest", "--resume", "run").returncode == 0
    code, found = audited(tmp_path)
    assert code == 3
    assert found & {"session-missing", "session-not-recorded"}


@pytest.mark.slow
def test_evaluations_on_demand_do_not_give_the_victims_figures(tmp_path: Path) -> None:
    serve(tmp_path, "evaluation-on-demand", *NATIONS, "--eval-every", "1", "--checkpoint-every", "0")
    stage = left_behind(tmp_path, "evaluation-on-demand")
    sums = sums_read(stage, stage.last)
    with_it, without = total_of(sums, "valid", 2), total_of(sums, "valid", 3)
    assert with_it is not None
    if without is not None and VICTIM not in without[1]:
        own = len(Stage(tmp_path / "truth", stage_config(seed=stage.config.seed)).graphs[VICTIM - 1].valid)
        assert with_it[0].counts[0] - without[0].counts[0] != own
    code, found = audited(tmp_path)
    assert code == 3
    assert found & {"evaluated-on-demand", "answers-ignored"}
