"""Environment that the process manager gives a process, read before MPI is started."""

import contextlib
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from secure_kg.foundation.errors import UserError

# Hydra (MPICH) and PMIx/Open MPI, in this order.
_RANK: Final = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
_SIZE: Final = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
_LOCAL_RANK: Final = ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK")


def rank() -> int | None:
    """This process's rank, or None if no mpirun started it."""
    return _number(_RANK)


def size() -> int | None:
    """How many ranks mpirun has started, as far as it tells."""
    return _number(_SIZE)


def local_rank() -> int:
    """The rank among the processes of this machine."""
    return _number(_LOCAL_RANK) or 0


def mpirun_command(ranks: int, restart: Sequence[str]) -> list[str]:
    """How to start a module under mpirun: the one beside this Python if there is one.

    `restart`: the module and its arguments.

    Ranks look for modules where this process does: one that was started by the console script does not look in the
    current folder, where a file may have the name of a package.
    """
    found = find_mpirun()
    if found is None:
        raise UserError("no mpirun found: install the mpich wheel (pip install mpich) or run `make setup`")
    here = {"", os.getcwd()} & set(sys.path)
    return [found, "-n", str(ranks), sys.executable, *([] if here else ["-P"]), "-m", *restart]


def find_mpirun() -> str | None:
    """The mpirun beside this Python, or else the one on PATH."""
    beside = Path(sys.executable).with_name("mpirun")
    return str(beside) if beside.exists() else shutil.which("mpirun")


def _number(names: Sequence[str]) -> int | None:
    values = [os.environ[name] for name in names if name in os.environ]
    return int(values[0]) if values else None


def unlink_shared_memory() -> None:
    """Remove the names of MPI's shared memory once every rank has it: then it goes with the last process that uses it.

    Otherwise a job that ends without finalizing would leave megabytes in /dev/shm for every run.
    """
    try:
        maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    except OSError:
        return
    names = {line.split()[-1] for line in maps.splitlines() if "/dev/shm/mpich_shm" in line}
    for name in names:
        with contextlib.suppress(OSError):
            os.unlink(name)
