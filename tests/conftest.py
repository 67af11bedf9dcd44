"""One thread per test process, as in every rank of a job, and two processes per core: many tests wait for others."""

import os

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
_MOST_PROCESSES = 8


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Half of the time of `mpirun` jobs and of slow clients is waiting: with a process per core, cores stand idle."""
    return min(_MOST_PROCESSES, 2 * len(os.sched_getaffinity(0)))
