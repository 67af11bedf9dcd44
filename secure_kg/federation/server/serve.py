"""The role of the server in a job: run folder, lock, federation, summary and report, over any transport.

The host of a job (`launch.hosts`) carries the role: it brings the transport, and it decides what an error means for the
process. Errors are `UserError`, `ProtocolError` and, for a fault of this program, `InternalError`; the text of each is
one line for the user. The host must then end the clients: not every error has been told to them.

Free of torch and of MPI.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from protocols.foundation.errors import ProtocolError
from protocols.transport.base import Transport
from secure_kg.data.sources import check_source_name
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.pacing import turns_of_environment
from secure_kg.federation.server.server import FederationServer, Report
from secure_kg.foundation.errors import InternalError, UserError, storage_error
from secure_kg.report.page import run_report
from secure_kg.runs.outcome import ServerOutcome
from secure_kg.runs.records.summary import Summary
from secure_kg.runs.run_folder import RunFolder, locked, new_folders
from secure_kg.runs.summary import summarise

Show: TypeAlias = Callable[[Summary, Path], None]
"""Tells the user the summary of the run in a folder."""


@dataclass(frozen=True, slots=True)
class Served:
    """The outcome of a job at its server."""

    path: Path
    summary: Summary = field(repr=False)
    complete: bool
    """Whether every client is there at the end."""


def serve(config: RunConfig, transport: Transport, path: Path, *, resume: bool, report: Report, show: Show) -> Served:
    """The whole part of the server. `path`: the run's folder. `report` gets a line now and then, `show` the result."""

    def make(folder: RunFolder) -> FederationServer:
        return FederationServer(config, transport, folder, report, turns_of_environment())

    return serve_by(make, config, path, resume=resume, show=show)


def serve_by(
    make: Callable[[RunFolder], FederationServer], config: RunConfig, path: Path, *, resume: bool, show: Show
) -> Served:
    """The same with a server that `make` has made, for a host that knows more of who is there."""
    servers: list[FederationServer] = []

    def work(folder: RunFolder) -> ServerOutcome:
        servers.append(make(folder))
        return servers[0].run()

    try:
        if config.client_data is None:
            check_source_name(config.dataset)
        summary = run_in_folder(config, path, resume=resume, work=work)
        show(summary, path)
    except (UserError, ProtocolError):
        raise
    except Exception as problem:
        if (full := storage_error(problem)) is not None:
            raise full from None
        raise InternalError.recorded(problem, path / "server" / "error.log") from problem
    return Served(path, summary, servers[0].complete)


def run_in_folder(
    config: RunConfig, path: Path, *, resume: bool, work: Callable[[RunFolder], ServerOutcome]
) -> Summary:
    """Hold the folder of a run while `work` is done in it, and write its report and summary. Returns the summary.

    A folder in which nothing has happened is removed if the run fails.
    """
    new = new_folders(path)
    if not resume:
        RunFolder.make(path)
    with locked(path):
        folder = RunFolder.reopen(path, config) if resume else RunFolder.create(path, config)
        try:
            outcome = work(folder)
        except (UserError, ProtocolError):
            folder.discard_if_unused(new)
            raise
        folder.begin()
        summary = summarise(config, outcome, folder)
        folder.write_report(run_report(summary, folder.all_metrics(), folder.settings()))
        folder.write_summary(summary)
    return summary
