"""One process of mpirun from the start of MPI to its end, whatever is done in between."""

import os
import sys
import time
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeAlias

from launch.hosts import environment, supervisor
from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import SERVER
from secure_kg.foundation.console import fail

World: TypeAlias = Any
"""MPI's communicator of all ranks: a module that names its type would start MPI."""
SECONDS_TO_FORWARD: Final = 0.3  # mpirun reads the ranks' output through pipes, and drops the rest when a job ends
_SECONDS_TO_GATHER = 15.0


def started(before_others: Callable[[World], None] = lambda world: None) -> World:
    """Start MPI; returns once all ranks have. From then on the death of a client need not end the job.

    `before_others`: what all ranks do together in MPI's own way, while none of them may be missing.
    """
    import mpi4py

    mpi4py.rc.finalize = False  # done by hand, and only if everybody is still there
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    world.Barrier()
    before_others(world)
    if world.Get_rank() == SERVER:
        environment.unlink_shared_memory()
    supervisor.report_initialised()
    return world


def finalize(code: int) -> None:
    """All ranks together, at the end of a job with exit code `code`."""
    from mpi4py import MPI

    from protocols.transport.mpi import Backoff

    world = MPI.COMM_WORLD
    serving = world.Get_rank() == SERVER
    everybody, backoff, deadline = world.Ibarrier(), Backoff(), Deadline.after(_SECONDS_TO_GATHER)
    while not everybody.Test():
        if serving and deadline.expired:  # clients wait for the server, which may have a report to write
            end_all(code)
        backoff.sleep(_SECONDS_TO_GATHER)
    supervisor.report_finishing(code)
    MPI.Finalize()
    supervisor.report_finished()


def leave(reason: str, last_step: Callable[[], None] | None = None) -> NoReturn:
    fail(reason)
    end_all(2, last_step)


def end_all(code: int, last_step: Callable[[], None] | None = None) -> NoReturn:
    """End every rank, those that hang or are stopped too. `last_step` is done right before that."""
    from mpi4py import MPI

    sys.stdout.flush()
    sys.stderr.flush()
    time.sleep(SECONDS_TO_FORWARD)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.dup2(nowhere, sys.stderr.fileno())  # MPI's own line would only repeat ours
    if last_step is not None:
        last_step()
    MPI.COMM_WORLD.Abort(code)
    os._exit(code)
