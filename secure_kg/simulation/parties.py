"""The parties of a run as threads of this process. Ctrl-C ends them all."""

import dataclasses
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import Aborted, PeerLost, ProtocolError
from protocols.foundation.identifiers import PartyId
from protocols.foundation.wire import Frame
from protocols.transport.base import Transport
from protocols.transport.in_process import InProcessNetwork, InProcessTransport
from protocols.transport.in_threads import Federation, Party, run_in_process
from secure_kg.data.graph import ClientGraph
from secure_kg.federation.client.site import OwnSite
from secure_kg.federation.client.take_part import Participation, take_part
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.serve import run_in_folder
from secure_kg.federation.server.server import FederationServer, Report
from secure_kg.foundation.errors import InternalError, UserError
from secure_kg.runs.outcome import ServerOutcome
from secure_kg.runs.records.summary import Summary
from secure_kg.runs.run_folder import RunFolder

_NEVER: Final = 1e9  # seconds
_SECONDS_TO_END: Final = 10.0
"""That an interrupted party may take to notice; one that is in a long step of training ends with that step."""


class Interrupted(BaseException):
    """A party is to end at once. No part catches it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSite(OwnSite):
    """The site of a client whose data were read already: one reading serves all clients of a process."""

    given: ClientGraph = field(repr=False)

    def graph(self) -> ClientGraph:
        return self.given


class _Stopping(InProcessTransport):
    """An end of the network that ends its party once it is told to."""

    def __init__(
        self, network: InProcessNetwork, party: PartyId, peers: Collection[PartyId], stop: threading.Event
    ) -> None:
        super().__init__(network, party, peers)
        self._stop = stop

    def _post(self, to: PartyId, frame: Frame) -> None:
        self._check()
        super()._post(to, frame)

    def _take(self, senders: Collection[PartyId], deadline: Deadline) -> tuple[PartyId, Frame] | None:
        self._check()
        try:
            return super()._take(senders, deadline)
        except PeerLost:
            self._check()  # nobody is lost: all of them are told to end
            raise

    def _check(self) -> None:
        if self._stop.is_set():
            raise Interrupted


class _Stage:
    """The network of a run, and how it is taken down."""

    def __init__(self) -> None:
        self._stop, self._networks = threading.Event(), list[InProcessNetwork]()
        self._parties: list[Party[Any]] = []

    def endpoint(self, network: InProcessNetwork, party: PartyId) -> Transport:
        self._networks.append(network)
        if isinstance(thread := threading.current_thread(), Party):
            self._parties.append(thread)
        return _Stopping(network, party, network.endpoint(party).peers, self._stop)

    def take_down(self) -> None:
        """End all parties, and wait a little until they have ended."""
        self._stop.set()
        for network in self._networks[:1]:
            for party in network.parties:
                network.end(party)
        until = Deadline.after(_SECONDS_TO_END)
        for thread in list(self._parties):
            thread.over.wait(max(until.remaining(), 0.0))


def run_parties(config: RunConfig, graphs: Sequence[ClientGraph], path: Path, report: Report) -> Summary:
    """A whole run in the new folder `path`. `UserError` in one line for what the caller can mend."""
    # The parties share one process: no answer means a long step, so nobody is a dropout.
    patient = dataclasses.replace(config, deadline=_NEVER, grace=_NEVER)
    clients, threads = len(graphs), torch.get_num_threads()

    def serve(transport: Transport) -> Summary:
        def work(folder: RunFolder) -> ServerOutcome:
            return FederationServer(patient, transport, folder, report).run()

        return run_in_folder(config, path, resume=False, work=work)

    def client(number: int, graph: ClientGraph) -> Callable[[Transport], Participation]:
        site = GivenSite(
            config=patient, number=number, clients=clients, runs=path.parent, out=path, resume=False, given=graph
        )
        return lambda transport: take_part(patient, transport, clients, site)

    parts = {PartyId(number): client(number, graph) for number, graph in enumerate(graphs, start=1)}
    stage = _Stage()
    try:
        return _result(run_in_process(serve, parts, endpoint=stage.endpoint))
    except KeyboardInterrupt:
        stage.take_down()
        raise
    finally:
        torch.set_num_threads(threads)  # clients had one each, as ranks of a job have


def _result(ended: Federation[Summary, Participation]) -> Summary:
    """What the run has come to. If it failed, the party that failed knows why; the others only heard of it."""
    if ended.server.error is None:
        return ended.server.result()
    problems = [one.error for one in ended.clients.values() if one.error is not None]
    causes = [one for one in problems if not isinstance(one, Aborted | PeerLost)]
    problem = (causes or [ended.server.error])[0]
    if isinstance(problem, InternalError) and problem.__cause__ is not None:
        problem = problem.__cause__
    if isinstance(problem, ProtocolError):
        raise UserError(str(problem)) from problem
    raise problem
