"""A host in one file: the parties of a job are threads of the process that the user started."""

from collections.abc import Callable
from typing import ClassVar

from launch.hosts.interface import Host
from launch.hosts.job import RUNS, Job, for_clients, new_run_path
from protocols.foundation.errors import ProtocolError
from protocols.foundation.identifiers import PartyId
from protocols.transport.base import Transport
from protocols.transport.in_threads import run_in_process
from secure_kg.federation.client.reasons import for_own_console
from secure_kg.federation.client.site import OwnSite
from secure_kg.federation.client.take_part import Participation, take_part
from secure_kg.federation.server.serve import Served, serve
from secure_kg.foundation.console import say
from secure_kg.foundation.errors import InternalError, UserError


class ToyHost(Host):
    options: ClassVar[dict[str, str]] = {"toy_word": "said at the end of the job"}

    def run(self, job: Job) -> int:
        clients = job.plan.parties - 1
        plan = for_clients(job.plan, clients)
        path = plan.out if plan.out is not None else new_run_path(plan.config)

        def server(transport: Transport) -> Served:
            return serve(plan.config, transport, path, resume=plan.resume, report=job.report, show=job.show)

        def client(number: int) -> Callable[[Transport], Participation]:
            config, resume = plan.config, plan.resume
            site = OwnSite(config=config, number=number, clients=clients, runs=RUNS, out=path, resume=resume)
            return lambda transport: take_part(config, transport, clients, site)

        ended = run_in_process(server, {PartyId(number): client(number) for number in range(1, clients + 1)})
        reason = str(ended.server.error)  # names the client that failed first: others may fail because it has
        for number, party in sorted(ended.clients.items(), key=lambda one: not reason.startswith(f"client {one[0]}: ")):
            if isinstance(party.error, UserError | InternalError) and (
                line := for_own_console(party.error, plan.config, number)
            ):
                raise UserError(line)  # the console of all parties
        try:
            ended.server.result()
        except (ProtocolError, InternalError) as problem:
            raise UserError(str(problem)) from None
        say(plan.host_options.get("toy_word", ""))
        return 0


HOST = ToyHost()
