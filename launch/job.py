"""A training job as a set of MPI processes: rank 0 serves, every other rank is a client with its own data and trainer.

A client that falls silent (slow, stopped, killed) is left out and the job goes on. A client that *says* that it cannot
go on has found a mistake, in its data or in what it was sent; that ends the job with one line on standard error and
exit code 2. The server prints the line and ends all ranks with `MPI_Abort`: a rank that merely exits leaves the rest to
the process manager, which kills them with a banner and an exit code of its own.

At the end, if everybody is there, all finalize MPI together. Otherwise that would wait for the missing for ever: the
clients leave without, and the server ends the job with `MPI_Abort` and exit code 0. It does the same if somebody is
lost after the goodbye; if that happens while all are finalizing, the supervisors end the job.
"""

import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from launch import environment, supervisor
from launch.keygen import load_credentials
from launch.options import DEFAULT_RANKS, RUNS, Plan, for_clients, new_run_path
from launch.results import show_results
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import Aborted, LeftOut, ProtocolError
from protocols.foundation.identifiers import SERVER
from protocols.session.credentials import Credentials
from protocols.transport.base import Transport
from secure_kg.data.sources import check_source_name
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.pacing import turns_of_environment
from secure_kg.federation.server.server import FederationServer
from secure_kg.foundation.console import fail, say
from secure_kg.foundation.errors import UserError
from secure_kg.report.page import run_report
from secure_kg.runs.client_folder import open_folder
from secure_kg.runs.run_folder import RunFolder, locked
from secure_kg.runs.summary import summarise

if TYPE_CHECKING:
    from secure_kg.federation.client.client import FederationClient

MIN_RANKS = 3
_GRACE_SECONDS = 30.0
_SECONDS_TO_GATHER = 15.0
_SECONDS_TO_FORWARD = 0.3  # mpirun reads the ranks' output through pipes and drops what it has not read when a job ends


def finished_before(plan: Plan) -> bool:
    """Whether `--resume` names a run that has nothing left to do."""
    if not plan.resume or plan.out is None:
        return False
    summary = RunFolder(plan.out).summary()
    settings = summary.get("config") if summary is not None else None
    asked = plan.config.rounds, plan.config.patience
    return isinstance(settings, dict) and asked == (settings.get("rounds"), settings.get("patience"))


def show_again(plan: Plan) -> None:
    """The results of a run that is complete."""
    if plan.out is not None and (summary := RunFolder(plan.out).summary()) is not None:
        say("this run is complete; --rounds or --patience with a larger number continues it")
        show_results(summary, plan.out)


def start_under_mpirun(module: str, plan: Plan, argv: Sequence[str]) -> int:
    """Run the same command again under mpirun and give back its exit code."""
    usual = DEFAULT_RANKS if plan.config.clients is None else plan.config.clients + 1
    ranks = plan.ranks if plan.ranks is not None else usual
    _check_ranks(ranks)
    _check_divided(plan)
    for_clients(plan, ranks - 1)
    command = environment.mpirun_command(module, ranks, argv)
    say(f"starting 1 server and {ranks - 1} clients: mpirun -n {ranks} python -m {module} {' '.join(argv)}".rstrip())
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


def run_rank(plan: Plan) -> int:
    """This rank's part of the job; called in every process that mpirun started."""
    import mpi4py

    mpi4py.rc.finalize = False  # done by hand, and only if everybody is still there
    from mpi4py import MPI

    from protocols.transport.mpi import MpiTransport

    world = MPI.COMM_WORLD
    world.Barrier()
    serving = world.Get_rank() == SERVER
    if serving:
        environment.unlink_shared_memory()
    supervisor.report_initialised()
    try:
        _check_ranks(world.Get_size())
        _check_divided(plan)
        if plan.ranks is not None and plan.ranks != world.Get_size():
            raise UserError(f"-n {plan.ranks}: mpirun started {world.Get_size()} ranks")
        plan = for_clients(plan, world.Get_size() - 1)
    except UserError as problem:
        if serving:
            fail(str(problem))
        _finalize(2)
        return 2 if serving else 0
    # A client's message may wait for a server that is adding up; the server's for a client that is there.
    send_seconds = plan.config.send_seconds if serving else plan.config.deadline
    with MpiTransport(world, send_seconds) as transport:
        complete = _serve(plan, transport) if serving else _take_part(plan, transport, clients=world.Get_size() - 1)
        transport.flush(Deadline.after(_GRACE_SECONDS if complete else _SECONDS_TO_FORWARD))
    if complete:
        _finalize(0)
    elif serving:
        _end_all(0)
    else:
        os._exit(0)
    return 0


def _finalize(code: int) -> None:
    """All ranks together, at the end of a job with exit code `code`."""
    from mpi4py import MPI

    from protocols.transport.mpi import Backoff

    world = MPI.COMM_WORLD
    serving = world.Get_rank() == SERVER
    everybody, backoff, deadline = world.Ibarrier(), Backoff(), Deadline.after(_SECONDS_TO_GATHER)
    while not everybody.Test():
        if serving and deadline.expired:  # clients wait for the server, which may have a report to write
            _end_all(code)
        backoff.sleep(_SECONDS_TO_GATHER)
    supervisor.report_finishing(code)
    MPI.Finalize()
    supervisor.report_finished()


def _check_ranks(ranks: int) -> None:
    if ranks < MIN_RANKS:
        started = "1 rank" if ranks == 1 else f"{ranks} ranks"
        raise UserError(f"{started}: a job needs at least {MIN_RANKS}, 1 server and 2 clients")


def _check_divided(plan: Plan) -> None:
    if plan.config.by == "whole":
        raise UserError("--by whole is one client alone, not a federation: use python -m launch.entire")


def _serve(plan: Plan, transport: Transport) -> bool:
    """The server's part; whether every client is there at the end."""
    config = plan.config
    out = plan.out if plan.out is not None else new_run_path(config)
    try:
        if config.client_data is None:
            check_source_name(config.dataset)
        if not plan.resume:
            RunFolder.make(out)
        with locked(out):
            folder = RunFolder.reopen(out, config) if plan.resume else RunFolder.create(out, config)
            try:
                server = FederationServer(config, transport, folder, say, turns_of_environment())
                outcome = server.run()
            except (UserError, ProtocolError):
                folder.discard_if_unused()
                raise
            summary = summarise(config, outcome, folder)
            folder.write_report(run_report(summary, folder.all_metrics(), folder.settings()))
            folder.write_summary(summary)
        show_results(summary, out)
        return server.complete
    except (UserError, ProtocolError) as problem:
        _leave(str(problem))
    except Exception as problem:  # a fault of ours: the user gets one line, we get the trace
        _leave(_internal(problem, out / "server" / "error.log"))


def _take_part(plan: Plan, transport: Transport, clients: int) -> bool:
    """A client's part; whether every client is there at the end."""
    # Only clients train: the server's process never imports torch.
    from launch.trainer import load_graph, make_trainer
    from secure_kg.federation.client.client import FederationClient

    number = transport.party
    client = FederationClient(plan.config, transport, clients)
    own = RUNS / f"client-{number}"
    try:
        run_name = client.greet()
        own = RunFolder(plan.out if plan.out is not None else RUNS / run_name).client(number)
        open_folder(own, os.getpid(), resume=plan.resume)
        credentials = _credentials(plan.config, number, clients)
        graph = load_graph(plan.config, clients, number)
        trainer = make_trainer(plan.config, graph, number, environment.local_rank())
        return client.run(trainer, own, credentials, _record(plan.config, number))
    except LeftOut:  # during set-up: the others have begun without this client
        return False
    except Aborted as problem:  # the server has said why, and ends the job
        time.sleep(_GRACE_SECONDS)
        _leave(f"client {number}: the server ended the job: {problem}")
    except (UserError, ProtocolError) as problem:
        _tell_server(client, str(problem))
    except Exception as problem:
        _tell_server(client, _internal(problem, own / "error.log"))


def _credentials(config: RunConfig, number: int, clients: int) -> Credentials | None:
    """Against an active server: this client's signing key and everybody's pinned identity."""
    if config.adversary != "active" or config.keys is None:
        return None
    loaded = load_credentials(Path(config.keys), number)
    unknown = [client for client in range(1, clients + 1) if client not in loaded.directory]
    if unknown:
        raise UserError(f"--keys {config.keys}: the key directory has no client {unknown[0]}")
    return loaded


def _record(config: RunConfig, number: int) -> Path | None:
    """Against an active server a client keeps the record of its openings beside its identity, for all of its runs."""
    if config.adversary != "active" or config.keys is None:
        return None
    return Path(config.keys) / f"client-{number}.record"


def _tell_server(client: "FederationClient", reason: str) -> NoReturn:
    """Say why, then wait to be ended with the rest of the job; leaving first could end the job before it is said."""
    client.say_failed(reason)
    time.sleep(_GRACE_SECONDS)
    _leave(reason)


def _leave(reason: str) -> NoReturn:
    fail(reason)
    _end_all(2)


def _end_all(code: int) -> NoReturn:
    """End every rank, those that hang or are stopped too."""
    from mpi4py import MPI

    sys.stdout.flush()
    sys.stderr.flush()
    time.sleep(_SECONDS_TO_FORWARD)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.dup2(nowhere, sys.stderr.fileno())  # MPI's own line would only repeat ours
    MPI.COMM_WORLD.Abort(code)
    os._exit(code)


def _internal(problem: Exception, log: Path) -> str:
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("".join(traceback.format_exception(problem)), encoding="utf-8")
    return f"internal error ({type(problem).__name__}); the details are in {log}"
