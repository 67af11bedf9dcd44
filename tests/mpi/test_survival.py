"""Real jobs whose clients are killed, stopped and continued: the rest goes on, exit code 0, nothing is left behind."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.mpi_jobs import TINY, command, environment

pytestmark = pytest.mark.mpi

VICTIM = 2
LONG = [*TINY[:2], "--rounds", "60", "--dim", "16", "--eval-every", "5", "--checkpoint-every", "5", "--patience", "100"]
OPTIONS = [*LONG, "--grace", "2", "--out", "run"]


@contextmanager
def running(ranks: int | None, folder: Path, *options: str, clients: int = 3) -> Iterator["subprocess.Popen[str]"]:
    """A job that has finished some rounds and has some before it."""
    own = ["-n", str(clients + 1)] if ranks is None else []
    job = subprocess.Popen(
        command(ranks, *own, *OPTIONS, *options),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: (folder / "run/checkpoint.json").exists() or job.poll() is not None)
        assert job.poll() is None, job.communicate()
        yield job
    finally:
        job.kill()


def wait_until(condition: Any, seconds: float = 120) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.01)


def pid_of(folder: Path, client: int) -> int:
    return int((folder / f"run/clients/{client}/pid").read_text())


def summary(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "run/summary.json").read_text())
    return loaded


def gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(
    "ranks",
    [pytest.param(None, id="started by itself"), pytest.param(4, marks=pytest.mark.slow, id="under plain mpirun")],
)
def test_a_killed_client_costs_that_client_only(tmp_path: Path, ranks: int | None) -> None:
    with running(ranks, tmp_path) as job:
        workers = [pid_of(tmp_path, client) for client in (1, 2, 3)]
        os.kill(workers[VICTIM - 1], signal.SIGKILL)
        out, errors = job.communicate(timeout=120)
    assert job.returncode == 0, errors
    assert errors == ""
    result = summary(tmp_path)
    (dropout,) = result["dropouts"]
    assert dropout["client"] == VICTIM
    assert "returned" not in dropout
    assert f"dropout: client {VICTIM} dropped out in round {dropout['round']}" in out
    assert 0 < dropout["round"] < result["rounds"] == 60
    assert [client["client"] for client in result["clients"]] == [1, 3]
    wait_until(lambda: all(gone(pid) for pid in workers), 10)


def test_a_stopped_client_does_not_hold_the_job(tmp_path: Path) -> None:
    """It is still stopped when the others have finished; the job ends all the same and takes it along."""
    with running(None, tmp_path) as job:
        worker = pid_of(tmp_path, VICTIM)
        os.kill(worker, signal.SIGSTOP)
        _, errors = job.communicate(timeout=120)
    assert job.returncode == 0, errors
    (dropout,) = summary(tmp_path)["dropouts"]
    assert dropout["client"] == VICTIM
    wait_until(lambda: gone(worker), 10)


def test_a_continued_client_takes_part_again(tmp_path: Path) -> None:
    """Whoever wants to stop or kill a client finds one process with its rank, the one that does the work."""
    with running(None, tmp_path, "--rounds", "4000", "--patience", "4000", "--eval-every", "400") as job:
        worker = pid_of(tmp_path, VICTIM)
        supervisor = Path(f"/proc/{worker}/stat").read_text().split()[3]
        assert b"PMI_RANK" not in Path(f"/proc/{supervisor}/environ").read_bytes()
        assert b"supervisor.py" in Path(f"/proc/{supervisor}/cmdline").read_bytes()
        os.kill(worker, signal.SIGSTOP)
        assert job.stdout is not None
        lines = iter(job.stdout.readline, "")
        assert any("dropped out" in line for line in lines)
        os.kill(worker, signal.SIGCONT)
        assert any(f"client {VICTIM} is back" in line for line in lines)
        assert job.poll() is None  # and it goes on


def test_the_servers_death_ends_the_job(tmp_path: Path) -> None:
    with running(None, tmp_path, clients=2) as job:
        workers = [pid_of(tmp_path, client) for client in (1, 2)]
        parents = [int(Path(f"/proc/{pid}/stat").read_text().split()[3]) for pid in workers]
        (server,) = children_named_rank_0(parents)
        os.kill(server, signal.SIGKILL)
        _, errors = job.communicate(timeout=60)
    assert job.returncode not in (0, 2)
    assert "--resume continues it" in errors
    wait_until(lambda: all(gone(pid) for pid in (*workers, *parents)), 10)


def children_named_rank_0(supervisors: list[int]) -> list[int]:
    """The worker of rank 0: it shares the process manager with the clients' supervisors."""
    manager = int(Path(f"/proc/{supervisors[0]}/stat").read_text().split()[3])
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                variables = (folder / "environ").read_bytes().split(b"\0")
                parent = int((folder / "stat").read_text().split()[3])
                grandparent = int(Path(f"/proc/{parent}/stat").read_text().split()[3])
            except (OSError, ValueError):
                continue
            if b"PMI_RANK=0" in variables and grandparent == manager:
                found.append(int(folder.name))
    return found
