"""A training job as a set of MPI processes: rank 0 serves, every other rank is a client with its own data and trainer.

A failure anywhere ends the whole job with one line on standard error and a non-zero exit code. A client that cannot go
on tells the server, which prints the line and ends all ranks with `MPI_Abort`: a rank that merely exits leaves the rest
to the process manager, which kills them with a banner and an exit code of its own.
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

from launch import environment
from launch.options import DEFAULT_RANKS, RUNS, Plan, for_clients, new_run_path
from launch.results import show_results
from protocols.errors import Aborted, ProtocolError
from protocols.identifiers import SERVER
from protocols.transport.base import Transport
from protocols.transport.deadline import Deadline
from secure_kg.console import fail, say
from secure_kg.data.sources import check_source_name
from secure_kg.errors import UserError
from secure_kg.federation.run_folder import RunFolder
from secure_kg.federation.server import FederationServer
from secure_kg.federation.summary import summarise
from secure_kg.report.page import run_report

if TYPE_CHECKING:
    from secure_kg.federation.client import FederationClient

MIN_RANKS = 3
_GRACE_SECONDS = 30.0
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
    for_clients(plan, ranks - 1)
    command = environment.mpirun_command(module, ranks, argv)
    say(f"starting 1 server and {ranks - 1} clients: mpirun -n {ranks} python -m {module} {' '.join(argv)}".rstrip())
    process = subprocess.Popen(command)
    # Whoever ends this process means the job: mpirun passes the signal on to its ranks.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _frame: process.send_signal(received))
    code = process.wait()
    if code not in (0, 2):
        fail(f"the job was ended from outside (exit code {code}); --resume continues it from its last checkpoint")
    return code if code >= 0 else 128 - code


def run_rank(plan: Plan) -> int:
    """This rank's part of the job; called in every process that mpirun started."""
    from mpi4py import MPI

    from protocols.transport.mpi import MpiTransport

    world = MPI.COMM_WORLD
    serving = world.Get_rank() == SERVER
    try:
        _check_ranks(world.Get_size())
        if plan.ranks is not None and plan.ranks != world.Get_size():
            raise UserError(f"-n {plan.ranks}: mpirun started {world.Get_size()} ranks")
        plan = for_clients(plan, world.Get_size() - 1)
    except UserError as problem:
        if serving:
            fail(str(problem))
        return 2 if serving else 0
    with MpiTransport(world, send_seconds=plan.config.deadline) as transport:
        if serving:
            _serve(plan, transport)
        else:
            _take_part(plan, transport, clients=world.Get_size() - 1)
        transport.flush(Deadline.after(_GRACE_SECONDS))
    MPI.Finalize()
    return 0


def _check_ranks(ranks: int) -> None:
    if ranks < MIN_RANKS:
        started = "1 rank" if ranks == 1 else f"{ranks} ranks"
        raise UserError(f"{started}: a job needs at least {MIN_RANKS}, 1 server and 2 clients")


def _serve(plan: Plan, transport: Transport) -> None:
    config = plan.config
    out = plan.out if plan.out is not None else new_run_path(config)
    try:
        if config.client_data is None:
            check_source_name(config.dataset)
        folder = RunFolder.reopen(out, config) if plan.resume else RunFolder.create(out, config)
        try:
            outcome = FederationServer(config, transport, folder, say).run()
        except (UserError, ProtocolError):
            folder.discard_if_unused()
            raise
        summary = summarise(config, outcome, folder)
        folder.write_report(run_report(summary, folder.metrics(), folder.settings()))
        folder.write_summary(summary)
        show_results(summary, out)
    except (UserError, ProtocolError) as problem:
        _leave(str(problem))
    except Exception as problem:  # a fault of ours: the user gets one line, we get the trace
        _leave(_internal(problem, out / "server" / "error.log"))


def _take_part(plan: Plan, transport: Transport, clients: int) -> None:
    # Only clients train: the server's process never imports torch.
    from launch.trainer import load_graph, make_trainer
    from secure_kg.federation.client import FederationClient

    number = transport.party
    client = FederationClient(plan.config, transport, clients)
    own = RUNS / f"client-{number}"
    try:
        run_name = client.greet()
        own = RunFolder(plan.out if plan.out is not None else RUNS / run_name).client(number)
        graph = load_graph(plan.config, clients, number)
        client.run(graph, make_trainer(plan.config, graph, number, environment.local_rank()), own)
    except Aborted as problem:  # the server has said why, and ends the job
        time.sleep(_GRACE_SECONDS)
        _leave(f"client {number}: the server ended the job: {problem}")
    except (UserError, ProtocolError) as problem:
        _tell_server(client, str(problem))
    except Exception as problem:
        _tell_server(client, _internal(problem, own / "error.log"))


def _tell_server(client: "FederationClient", reason: str) -> NoReturn:
    """Say why, then wait to be ended with the rest of the job; leaving first could end the job before it is said."""
    client.say_failed(reason)
    time.sleep(_GRACE_SECONDS)
    _leave(reason)


def _leave(reason: str) -> NoReturn:
    from mpi4py import MPI

    fail(reason)
    sys.stdout.flush()
    time.sleep(_SECONDS_TO_FORWARD)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())  # MPI's own line would only repeat ours
    MPI.COMM_WORLD.Abort(2)
    os._exit(2)


def _internal(problem: Exception, log: Path) -> str:
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("".join(traceback.format_exception(problem)), encoding="utf-8")
    return f"internal error ({type(problem).__name__}); the details are in {log}"
