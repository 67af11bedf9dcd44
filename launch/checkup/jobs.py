"""Checks of jobs: whether mpirun really starts processes, and what earlier jobs have left."""

import os
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

from launch.checkup.finding import Finding, graded
from launch.hosts.environment import find_mpirun
from secure_kg.foundation.words import counted

_RANKS: Final = 2
_SECONDS: Final = 30.0
_HELLO: Final = (
    "from mpi4py import MPI; world = MPI.COMM_WORLD; "
    "total = world.allreduce(world.Get_rank() + 1); "
    "print(MPI.Get_library_version().split('\\n')[0].strip()) if world.Get_rank() == 0 and total == 3 else None"
)
_INSTALL: Final = "pip install mpich mpi4py"


def jobs(modules: Collection[str]) -> Iterator[Finding]:
    """`modules`: those that a process of a job may run."""
    yield _mpi()
    yield _left_processes(modules)
    yield _left_memory()


def _mpi() -> Finding:
    """Two processes that add up a number: everything that can be wrong with an installation shows here."""
    mpirun = find_mpirun()
    if mpirun is None:
        return Finding("MPI", "problem", "no mpirun beside this Python or on PATH", _INSTALL)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "OMPI", "HYD"))}
    command = [mpirun, "-n", str(_RANKS), sys.executable, "-P", "-c", _HELLO]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, env=environment, check=False, errors="replace"
        )
    except subprocess.TimeoutExpired:
        step = f"try it by hand: {mpirun} -n 2 hostname; a host name that does not resolve is the usual reason"
        return Finding("MPI", "problem", f"{mpirun} -n 2 did not end within {_SECONDS:.0f} s", step)
    except OSError as problem:
        return Finding("MPI", "problem", f"{mpirun}: {problem.strerror}", _INSTALL)
    if done.returncode or not done.stdout.strip():
        lines = (done.stderr or done.stdout).strip().splitlines() or ["it said nothing"]
        return Finding("MPI", "problem", f"{mpirun} -n 2 failed: {lines[-1][:100]}", f"{_INSTALL}, from one source")
    version = done.stdout.strip().splitlines()[0]
    return Finding("MPI", "ok", f"{mpirun} -n 2 works ({' '.join(version.split()[:3])})")


def _left_processes(modules: Collection[str]) -> Finding:
    """Ranks whose mpirun is gone. Jobs that are still led by one are somebody's work."""
    mine = {process.number: process for process in _processes() if process.owner == os.getuid()}
    ranks = [one for one in mine.values() if one.is_rank and one.runs(modules)]
    left = [one for one in ranks if not any(above.is_mpirun for above in _above(one, mine))]
    running = len(ranks) - len(left)
    numbers = " ".join(str(one.number) for one in left)
    return graded(
        "leftover jobs",
        f"{counted(len(left), 'rank')} without an mpirun"
        if left
        else "none" + (f"; {counted(running, 'rank')} of jobs that run" if running else ""),
        note=bool(left),
        next_step=f"end them, if nobody waits for them: kill {numbers}",
    )


class _Process:
    """A line of /proc."""

    def __init__(self, folder: Path) -> None:
        self.number, self.owner = int(folder.name), folder.stat().st_uid
        words = (folder / "cmdline").read_bytes().split(b"\0")
        self._words = [word.decode("utf-8", "replace") for word in words if word]
        # The name of the program stands in brackets, and may have brackets and blanks in it.
        names = (folder / "environ").read_bytes().split(b"\0")
        self.is_rank = any(name.startswith((b"PMI_RANK=", b"PMIX_RANK=", b"OMPI_COMM_WORLD_RANK=")) for name in names)
        self.parent = int((folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])

    def runs(self, modules: Collection[str]) -> bool:
        pairs = zip(self._words, self._words[1:], strict=False)
        return any(option == "-m" and module in modules for option, module in pairs)

    @property
    def is_mpirun(self) -> bool:
        name = Path(self._words[0]).name if self._words else ""
        return name in ("mpirun", "mpiexec", "mpiexec.hydra", "hydra_pmi_proxy")


def _above(process: _Process, known: Mapping[int, _Process]) -> Iterator[_Process]:
    """Its parent, the parent of that one, and so on."""
    while (parent := known.get(process.parent)) is not None and parent is not process:
        yield parent
        process = parent


def _processes() -> list[_Process]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found.append(_Process(folder))
        except (OSError, ValueError, IndexError):  # it has ended meanwhile, or is somebody else's
            continue
    return found


def _left_memory() -> Finding:
    """Shared memory of MPI that no process uses."""
    there = [path for path in Path("/dev/shm").glob("mpich_shm*") if _own(path)]
    used = "".join(_maps())
    left = [path for path in there if path.name not in used]
    size = sum(path.stat().st_size for path in left if path.exists()) / 1e6
    return graded(
        "leftover memory",
        f"{counted(len(left), 'file')} of MPI in /dev/shm, {size:,.0f} MB" if left else "none",
        note=bool(left),
        next_step="remove them while no job runs: rm /dev/shm/mpich_shm*",
    )


def _own(path: Path) -> bool:
    try:
        return path.stat().st_uid == os.getuid()
    except OSError:
        return False


def _maps() -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/maps"):
        try:
            yield "".join(line for line in path.read_text(encoding="utf-8").splitlines() if "mpich_shm" in line)
        except OSError:
            continue
