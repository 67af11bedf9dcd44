"""Checks of the machine itself: Python, cores, memory, disk, shared memory, GPU and clock."""

import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from launch.checkup.finding import Finding, graded
from launch.hosts.job import DEFAULT_RANKS
from secure_kg.foundation.words import counted

_PYTHON: Final = (3, 11)
_GIGABYTE: Final = 1e9
_MEMORY_OF_A_RANK: Final = 0.4
"""Gigabytes of one client of a small run, most of which is torch."""
_LITTLE_DISK: Final = 1.0
_LITTLE_SHARED_MEMORY: Final = 0.06
"""Gigabytes: what MPICH takes for six ranks, and containers give by default."""
_EARLIEST: Final = datetime(2025, 1, 1, tzinfo=UTC)
_CLOCK_SECONDS: Final = 5.0


def machine() -> Iterator[Finding]:
    yield python()
    yield _system()
    yield _cores()
    yield _memory()
    yield disk()
    yield _shared_memory()
    yield _gpu()
    yield _clock()


def python() -> Finding:
    wanted = ".".join(map(str, _PYTHON))
    return graded(
        "Python",
        f"{platform.python_version()} ({sys.executable})",
        problem=sys.version_info < _PYTHON,
        next_step=f"install Python {wanted} or newer, and make a new virtual environment with it",
    )


def _system() -> Finding:
    linux = sys.platform.startswith("linux")
    told = f"{platform.system()} {platform.machine()}"
    return graded("system", told, note=not linux, next_step="only Linux is tested; a container or WSL 2 has one")


def _cores() -> Finding:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return graded(
        "cores",
        f"{counted(cores, 'core')}, load {busy:.1f}",
        note=cores < 2 or busy > 2 * cores,
        next_step="runs work and take longer; --grace with more seconds keeps slow clients from being dropouts",
    )


def _memory() -> Finding:
    available, needed = _available_memory(), DEFAULT_RANKS * _MEMORY_OF_A_RANK
    if available is None:
        return Finding("memory", "note", "cannot be told on this system", f"a default run takes {needed:.1f} GB")
    return graded(
        "memory",
        f"{available:.1f} GB available",
        problem=available < needed / 2,
        note=available < needed,
        next_step=f"a default run takes up to {needed:.1f} GB; -n 3 starts two clients only",
    )


def _available_memory() -> float | None:
    """Gigabytes, of the machine or of the container, whichever is less."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):
        return None
    limit, used = (_number(Path("/sys/fs/cgroup") / name) for name in ("memory.max", "memory.current"))
    within = free if limit is None or used is None else min(free, limit - used)
    return within / _GIGABYTE


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):  # no container, or no limit
        return None


def disk() -> Finding:
    free = shutil.disk_usage(Path.cwd()).free / _GIGABYTE
    temporary = shutil.disk_usage(tempfile.gettempdir()).free / _GIGABYTE
    return graded(
        "disk",
        f"{free:.1f} GB free here, {temporary:.1f} GB in {tempfile.gettempdir()}",
        problem=free < _LITTLE_DISK / 10,
        note=min(free, temporary) < _LITTLE_DISK,
        next_step="make room, or choose another place with --out; --transcript and checkpoints take most of it",
    )


def _shared_memory() -> Finding:
    path = Path("/dev/shm")
    if not path.is_dir():
        return Finding("shared memory", "note", "no /dev/shm", "MPI then goes through the network; mount a tmpfs there")
    free = shutil.disk_usage(path).free / _GIGABYTE
    writable = os.access(path, os.W_OK)
    return graded(
        "shared memory",
        f"{1000 * free:,.0f} MB free in /dev/shm" + ("" if writable else ", not writable"),
        problem=not writable,
        note=free < _LITTLE_SHARED_MEMORY,
        next_step="give the container more (docker run --shm-size 1g), or remove what earlier jobs have left",
    )


def _gpu() -> Finding:
    try:
        from secure_kg.learning.device import gpus
    except ImportError:
        return Finding("GPU", "note", "torch is not installed, so nobody can tell", "see the line of torch below")
    if not (found := gpus()):
        return Finding("GPU", "ok", "none that torch can use: clients train on the CPU, one core each")
    return Finding("GPU", "ok", f"{len(found)}: {', '.join(one.name for one in found)}; clients share them")


def _clock() -> Finding:
    """Names of runs sort by time, and a disk with another clock makes new files look old."""
    now = datetime.now(UTC)
    try:
        with tempfile.NamedTemporaryFile(dir=Path.cwd()) as file:
            apart = abs(os.stat(file.name).st_mtime - time.time())
    except OSError:
        apart = 0.0  # the line on the folder tells it
    return graded(
        "clock",
        f"{now:%Y-%m-%d %H:%M} UTC" + (f", {apart:.0f} s apart from that of this disk" if apart > 1 else ""),
        note=now < _EARLIEST or apart > _CLOCK_SECONDS,
        next_step="set the clock (timedatectl set-ntp true): names of runs sort by it",
    )
