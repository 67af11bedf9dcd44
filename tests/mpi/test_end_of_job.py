"""A client that is killed at the very end, when all results are there: the job ends all the same, with exit code 0.

How a job ends is the host's affair, so that all jobs but one have parts that do nothing, in ranks that start at once.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.mpi_jobs import MPIRUN, TINY, environment

pytestmark = pytest.mark.mpi

MOMENTS = ("before the barrier", "before finalizing", "while finalizing", "after finalizing")
SCRIPT = """
import os, signal, sys

from launch import fedr_secagg
from launch.hosts import environment, mpi, mpi_process, supervisor

moment, victim, how = sys.argv[1], int(sys.argv[2]), signal.Signals[sys.argv[3]]
mpi_process._SECONDS_TO_GATHER = supervisor._SECONDS_TO_FINISH = 3.0
finishing = supervisor.report_finishing


def die(*_):
    os.kill(os.getpid(), how)


def late(code):
    finishing(code)
    die()


def serve(plan, transport, show):
    plan.out.mkdir()
    (plan.out / "summary.json").write_text("{}")
    print(f"run folder: {plan.out}", flush=True)
    return True


if sys.argv[4] == "idle":
    mpi._serve, mpi._take_part = serve, lambda plan, transport, clients: True
if environment.rank() == victim:
    if moment == "before the barrier":
        mpi_process.finalize = die
    if moment == "before finalizing":
        supervisor.report_finishing = die
    if moment == "while finalizing":
        supervisor.report_finishing = late
    if moment == "after finalizing":
        supervisor.report_finished = die
sys.exit(fedr_secagg.main(sys.argv[5:]))
"""


def end(
    folder: Path, moment: str, victim: int, how: str, *options: str, parts: str = "idle"
) -> "subprocess.CompletedProcess[str]":
    script = folder / "job_with_a_loss.py"
    script.write_text(SCRIPT)
    return subprocess.run(
        [str(MPIRUN), "-n", "3", sys.executable, str(script), moment, str(victim), how, parts, *TINY, *options],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize(
    ("moment", "parts"),
    [
        *((moment, "idle") for moment in MOMENTS),
        ("while finalizing", "real"),
        *(pytest.param(moment, "real", marks=pytest.mark.slow) for moment in MOMENTS if moment != "while finalizing"),
    ],
)
def test_a_client_killed_at_the_end_does_not_hold_the_job(tmp_path: Path, moment: str, parts: str) -> None:
    done = end(tmp_path, moment, 2, "SIGKILL", "--out", "run", parts=parts)
    assert (done.returncode, done.stderr) == (0, "")
    assert "run folder: run" in done.stdout
    assert (tmp_path / "run/summary.json").exists()


def test_nor_does_one_that_is_stopped(tmp_path: Path) -> None:
    done = end(tmp_path, "before finalizing", 2, "SIGSTOP", "--out", "run")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_server_killed_after_its_results_leaves_a_finished_job(tmp_path: Path) -> None:
    done = end(tmp_path, "while finalizing", 0, "SIGKILL", "--out", "run")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_mistake_stays_a_mistake(tmp_path: Path) -> None:
    """The exit code is that of the job, whoever is lost."""
    done = end(tmp_path, "while finalizing", 2, "SIGKILL", "-n", "5")
    assert done.returncode == 2
    assert done.stderr == "error: -n 5: mpirun started 3 ranks; say how many to mpirun alone\n"
