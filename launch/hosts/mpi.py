"""The host for mpirun: a job is a set of MPI processes. Rank 0 serves, every other rank is a client.

A client that misses a deadline (slow, stopped, killed) is a dropout and the job goes on. A client that *says* that it
cannot go on has found a mistake, in its data or in what it was sent; that ends the job with one line on standard error
and exit code 2. The server prints the line and ends all ranks with `MPI_Abort`: a rank that merely exits leaves the
rest to the process manager, which kills them with a banner and an exit code of its own.

At the end, if everybody is there, all finalize MPI together. Otherwise that would wait for the missing for ever: the
clients leave without, and the server ends the job with `MPI_Abort` and exit code 0. It does the same if somebody is
lost after the goodbye; if that happens while all are finalizing, the supervisors end the job.

Started without mpirun, the host starts the same command under it.
"""

import gc
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Final

from launch.hosts import environment, mpi_process, supervisor
from launch.hosts.interface import Host
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import Aborted, ProtocolError
from protocols.foundation.identifiers import SERVER
from secure_kg.foundation.console import fail
from secure_kg.foundation.errors import InternalError, UserError

if TYPE_CHECKING:
    from launch.hosts.job import Job, Plan
    from protocols.transport.base import Transport

MIN_RANKS: Final = 3
_GRACE_SECONDS = 30.0


class MpiHost(Host):
    """Processes that mpirun starts, each under a supervisor."""

    def enter(self) -> bool:
        rank = environment.rank()
        if rank is not None:
            supervisor.stand_by(rank)  # forks, and so comes before anything that may start threads
        return rank in (None, SERVER)

    def run(self, job: "Job") -> int:
        return start_under_mpirun(job) if environment.rank() is None else run_rank(job)


HOST: Final = MpiHost()


def start_under_mpirun(job: "Job") -> int:
    """Run the same command again under mpirun and give back its exit code."""
    from launch.hosts.job import for_clients, require_divided

    ranks = job.plan.parties
    _check_ranks(ranks)
    require_divided(job.plan)
    for_clients(job.plan, ranks - 1)
    command = environment.mpirun_command(ranks, job.restart)
    job.report(f"starting 1 server and {ranks - 1} clients: mpirun -n {ranks} {job.typed}")
    # A session of its own: Ctrl-C in a terminal would otherwise reach mpirun and every rank as well.
    process = subprocess.Popen(command, start_new_session=True, preexec_fn=supervisor.die_with_parent)
    received: list[int] = []

    def end_job(number: int, _frame: object) -> None:
        received.append(number)
        process.kill()  # the ranks end with mpirun, and without its banners

    # Whoever ends this process means the job.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end_job)
    code = process.wait()
    if received:
        fail("interrupted; --resume continues the run from its last checkpoint, if it had come to one")
        return 128 + received[0]
    if code not in (0, 2):
        fail(f"the job was ended from outside (exit code {code}); --resume continues it from its last checkpoint")
    return code if code >= 0 else 128 - code


def run_rank(job: "Job") -> int:
    """This rank's part of the job; called in every process that mpirun started."""
    world = mpi_process.started()
    from protocols.transport.mpi import MpiTransport

    serving = world.Get_rank() == SERVER
    try:
        plan = _plan_for(job.plan, world.Get_size())
    except UserError as problem:
        if serving:
            fail(str(problem))
        mpi_process.finalize(2)
        return 2 if serving else 0
    # A client's message may wait for a server that is adding up; the server's for a client that is there.
    send_seconds = plan.config.send_seconds if serving else plan.config.deadline
    with MpiTransport(world, send_seconds) as transport:
        complete = _serve(plan, transport, job) if serving else _take_part(plan, transport, world.Get_size() - 1)
        transport.flush(Deadline.after(_GRACE_SECONDS if complete else mpi_process.SECONDS_TO_FORWARD))
    if complete:
        mpi_process.finalize(0)
    elif serving:
        mpi_process.end_all(0)
    else:
        os._exit(0)
    gc.freeze()  # or the interpreter would search all of torch for garbage at its end: 0.2 s of processor time
    return 0


def _plan_for(plan: "Plan", ranks: int) -> "Plan":
    """The plan for as many ranks as mpirun has started."""
    from launch.hosts.job import for_clients, require_divided

    _check_ranks(ranks)
    require_divided(plan)
    if plan.ranks is not None and plan.ranks != ranks:
        raise UserError(f"-n {plan.ranks}: mpirun started {ranks} ranks; say how many to mpirun alone")
    return for_clients(plan, ranks - 1)


def _check_ranks(ranks: int) -> None:
    if ranks < MIN_RANKS:
        started = "1 rank" if ranks == 1 else f"{ranks} ranks"
        raise UserError(f"{started}: a job needs at least {MIN_RANKS}, 1 server and 2 clients")


def _serve(plan: "Plan", transport: "Transport", job: "Job") -> bool:
    """The server's part; whether every client is there at the end."""
    from launch.hosts.job import new_run_path
    from secure_kg.federation.server.serve import serve
    from secure_kg.runs.run_folder import discard_late_files, new_folders

    path = plan.out if plan.out is not None else new_run_path(plan.config)
    new = new_folders(path)
    try:
        return serve(plan.config, transport, path, resume=plan.resume, report=job.report, show=job.show).complete
    except (UserError, ProtocolError, InternalError) as problem:
        mpi_process.leave(str(problem), lambda: discard_late_files(path, new))


def _take_part(plan: "Plan", transport: "Transport", clients: int) -> bool:
    """A client's part; whether every client is there at the end."""
    from launch.hosts.job import RUNS

    # Only clients train: the server's process never imports torch.
    from secure_kg.federation.client.reasons import for_own_console
    from secure_kg.federation.client.site import OwnSite
    from secure_kg.federation.client.take_part import Participation, take_part

    number, said = transport.party, False
    site = OwnSite(
        config=plan.config,
        number=number,
        clients=clients,
        runs=RUNS,
        out=plan.out,
        resume=plan.resume,
        local_rank=environment.local_rank(),
    )
    try:
        return take_part(plan.config, transport, clients, site) is Participation.ALL_PRESENT
    except Aborted as problem:  # the server has said why, and ends the job
        reason = f"client {number}: the server ended the job: {problem}"
    except (UserError, ProtocolError, InternalError) as problem:  # the server knows, but not of files
        reason = str(problem)
        if (line := for_own_console(problem, plan.config, number)) is not None:
            fail(line)
            said = True
    time.sleep(_GRACE_SECONDS)  # to be ended with the rest: leaving first could end the job before the server says why
    if said:
        mpi_process.end_all(2)
    mpi_process.leave(reason)
