"""Jobs over two hosts, which are network namespaces: the result is that of one host, and a lost host is a dropout.

The settings of MPICH are those of docs/guides/deploy.md: with its own choice, UCX over TCP, a message to a client that
was killed on another host ends the server by a segmentation fault (MPICH 5.0.2, in MPI_Isend).
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.mpi_jobs import MPIRUN, TINY, run_job
from tests.support.namespaces import INSIDE, INTERFACE, Network, hosts
from tests.support.waiting import wait_until

pytestmark = pytest.mark.mpi

FAR = 3
"""The client that is alone on the second host."""
HOSTS = ("near", "far")
OVER_UDP = ["-genv", "MPIR_CVAR_CH4_NETMOD", "ofi", "-genv", "FI_PROVIDER", "udp;ofi_rxd"]
LONG = ["--dataset", "nations", "--rounds", "60", "--dim", "16", "--eval-every", "5", "--checkpoint-every", "5"]


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    with hosts(tmp_path / "hosts", HOSTS) as joined:
        yield joined


def over_both(network: Network, *options: str) -> list[str]:
    """A job of four ranks, started by the caller as over ssh, with a file that lists the hosts."""
    listed = network.caller.folder / "hostfile"
    listed.write_text("near:3\nfar:1\n")
    launcher = network.launcher(network.caller.folder / "launcher")
    mpirun = [str(MPIRUN), "-launcher", "ssh", "-launcher-exec", str(launcher), "-f", str(listed), "-iface", INTERFACE]
    job = [sys.executable, "-m", "launch.fedr_secagg", *options, "--out", str(INSIDE / "run")]
    return [*mpirun, *OVER_UDP, "-n", "4", *job]


@contextmanager
def running(network: Network) -> Iterator["subprocess.Popen[str]"]:
    """A job that has finished some rounds and has some before it."""
    job = network.caller.start(over_both(network, *LONG, "--patience", "100", "--grace", "2"))
    try:
        wait_until(lambda: (network["near"].folder / "run/checkpoint.json").exists() or job.poll() is not None)
        assert job.poll() is None, job.communicate()
        yield job
    finally:
        job.kill()


def summary(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / "run/summary.json").read_text())
    return loaded


def figures(folder: Path) -> Any:
    """The figures over all clients; a summary lists those of single clients only if their files are on its host."""
    result = summary(folder)
    return result["best_round"], result["test_clients"], result["valid_mrr"], result["metrics"]


def the_only_dropout(folder: Path) -> Any:
    result = summary(folder)
    (dropout,) = result["dropouts"]
    assert 0 < dropout["round"] < result["rounds"] == 60
    assert result["test_clients"] == 2
    return dropout["client"]


def test_two_hosts_come_to_the_result_of_one(network: Network, tmp_path: Path) -> None:
    both = network.caller.run(over_both(network, *TINY), seconds=240)
    assert (both.returncode, both.stderr) == (0, "")
    assert run_job(4, *TINY, "--out", "run", cwd=tmp_path).code == 0
    assert figures(network["near"].folder) == figures(tmp_path)
    near, far = (sorted(path.name for path in (network[name].folder / "run/clients").iterdir()) for name in HOSTS)
    assert (near, far) == (["1", "2"], ["3"])  # what a client keeps to itself is on its host


@pytest.mark.slow
def test_a_client_killed_on_the_other_host_costs_that_client_only(network: Network) -> None:
    far = network["far"]
    with running(network) as job:
        far.kill(int((far.folder / f"run/clients/{FAR}/pid").read_text()))
        _, errors = job.communicate(timeout=120)
    assert (job.returncode, errors) == (0, "")
    assert the_only_dropout(network["near"].folder) == FAR


@pytest.mark.slow
def test_a_cut_link_costs_the_client_behind_it_only(network: Network) -> None:
    with running(network) as job:
        network.cut("far")
        wait_until((network["near"].folder / "run/summary.json").exists)
        _, errors = job.communicate(timeout=120)
    assert (job.returncode, errors) == (0, "")
    assert the_only_dropout(network["near"].folder) == FAR
