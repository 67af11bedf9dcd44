"""A Slurm cluster on one machine: its nodes are network namespaces, its daemons end with the test."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from launch.hosts.supervisor import die_with_parent
from tests.support.mpi_jobs import environment
from tests.support.namespaces import Host, Network, hosts
from tests.support.waiting import wait_until

NODES: Final = ("node1", "node2")
_DAEMONS: Final = ("munged", "slurmctld", "slurmd")
_PATH: Final = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_SETTINGS: Final = """\
ClusterName=test
SlurmctldHost=caller({address})
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
{nodes}
PartitionName=all Nodes={names} Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
"""


@dataclass(frozen=True)
class Slurm:
    """The cluster, as whoever submits jobs at the caller sees it."""

    folder: Path
    """Seen by all nodes."""
    network: Network

    @property
    def variables(self) -> dict[str, str]:
        return {**environment(), "SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": _PATH}

    def run(self, *command: str, seconds: float = 240) -> "subprocess.CompletedProcess[str]":
        """A command of Slurm, in the folder that all nodes see."""
        entered = [*self.network.caller.entry, "sh", "-c", 'cd "$0" && exec "$@"', str(self.folder), *command]
        return subprocess.run(
            entered, env=self.variables, capture_output=True, text=True, timeout=seconds, check=False
        )

    def logs(self) -> str:
        return "\n".join(f"--- {path.name}\n{path.read_text()[-2000:]}" for path in sorted(self.folder.glob("*.log")))


@contextmanager
def slurm(folder: Path) -> Iterator[Slurm]:
    """Two nodes; skips the test where Slurm is not installed or this user may not run it."""
    missing = [name for name in (*_DAEMONS, "sbatch", "sinfo") if shutil.which(name, path=_PATH) is None]
    if missing:
        pytest.skip(f"no Slurm: {', '.join(missing)} not found")
    if os.geteuid() != 0:
        pytest.skip("no Slurm: its daemons take root")
    # Not below `folder`, which may be in /dev/shm: nodes have one of their own.
    with hosts(folder / "hosts", NODES) as network, tempfile.TemporaryDirectory(dir="/var/tmp") as shared:
        made = Slurm(Path(shared), network)
        running: list[subprocess.Popen[bytes]] = []
        try:
            _begin(made, running)
            yield made
        finally:
            for process in reversed(running):
                process.kill()
                process.wait()


def _begin(made: Slurm, running: "list[subprocess.Popen[bytes]]") -> None:
    folder = made.folder
    for name in ("munge", "state", *(f"spool-{node}" for node in NODES)):
        (folder / name).mkdir(mode=0o755)
    key = folder / "munge/key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    lines = [f"NodeName={name} NodeAddr={made.network[name].address} CPUs=4 State=UNKNOWN" for name in NODES]
    (folder / "slurm.conf").write_text(
        _SETTINGS.format(
            folder=folder, address=made.network.caller.address, nodes="\n".join(lines), names=",".join(NODES)
        )
    )
    munge = folder / "munge"
    files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    options = [f"--{option}={munge / name}" for option, name in files.items()]
    running.append(_daemon(made.network.caller, ["munged", "--foreground", "--force", *options], made.variables))
    wait_until(lambda: (munge / "socket").exists(), 30)
    running.append(_daemon(made.network.caller, ["slurmctld", "-D"], made.variables))
    running.extend(_daemon(made.network[name], ["slurmd", "-D", "-N", name], made.variables) for name in NODES)
    wait_until(lambda: made.run("sinfo", "-h", "-t", "idle", "-o", "%D").stdout.strip() == str(len(NODES)), 60)


def _daemon(where: Host, command: Sequence[str], variables: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*where.entry, *command],
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=die_with_parent,
    )
