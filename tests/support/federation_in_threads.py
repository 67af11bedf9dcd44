"""A whole federation in one process: the real server, clients, trainers and protocols over the in-process transport."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from protocols.foundation.identifiers import SERVER, PartyId
from protocols.session.credentials import Credentials
from protocols.transport.base import Transport
from protocols.transport.in_process import InProcessNetwork
from protocols.transport.in_threads import run_in_process
from secure_kg.data.graph import ClientGraph
from secure_kg.data.partition import partition
from secure_kg.data.sources import load_source
from secure_kg.federation.client.members import NUMBERS_ALONE, Members
from secure_kg.federation.client.site import Equipment, PreparedSite
from secure_kg.federation.client.take_part import Participation, take_part
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.pacing import Turns
from secure_kg.federation.server.server import FederationServer
from secure_kg.foundation.errors import InternalError
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.kge import KgeLearner
from secure_kg.runs.outcome import ServerOutcome
from secure_kg.runs.run_folder import RunFolder

SMALL = TrainingConfig(dim=8, negatives=14, batch_size=256, local_epochs=1, lr=0.01)


def small_config(**changes: Any) -> RunConfig:
    training = changes.pop("training", SMALL)
    defaults: dict[str, Any] = {"dataset": "nations", "rounds": 4, "eval_every": 2, "checkpoint_every": 2}
    return RunConfig(**{**defaults, "deadline": 30.0, **changes}, training=training)


def nations(clients: int, by: Any = "triples", seed: int = 0) -> list[ClientGraph]:
    return partition(load_source("nations"), clients, by, seed)


class Vanished(BaseException):
    """A client is gone without a word, as if killed: nothing that its part catches."""


class Told:
    """What a server reports. A client that is to be slow waits until it is said to be lost, however long that takes."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._changed = threading.Condition()

    def __call__(self, line: str) -> None:
        with self._changed:
            self.lines.append(line)
            self._changed.notify_all()

    def said(self, *words: str) -> bool:
        return all(any(one in line for line in self.lines) for one in words)

    def wait_for(self, *words: str, seconds: float = 60.0) -> bool:
        """Until each of the words was said, or for so long; whether they were."""
        with self._changed:
            return self._changed.wait_for(lambda: self.said(*words), seconds)


@dataclass
class Run:
    outcome: ServerOutcome | None = None
    server_error: BaseException | None = None
    client_errors: dict[int, BaseException] = field(default_factory=dict)
    trainers: dict[int, KgeLearner] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)

    @property
    def on_consoles(self) -> list[str]:
        """What clients have said on their own consoles, of which the server may know no more than that they failed."""
        return [str(problem) for problem in self.client_errors.values()]

    def done(self) -> ServerOutcome:
        assert self.server_error is None, self.server_error
        assert not self.client_errors, self.client_errors
        assert self.outcome is not None
        return self.outcome


def run_federation(
    config: RunConfig,
    graphs: list[ClientGraph],
    path: Path,
    *,
    resume: bool = False,
    client_config: dict[int, RunConfig] | None = None,
    trainer_of: Callable[[ClientGraph, RunConfig, int], KgeLearner] | None = None,
    transport_of: Callable[[InProcessNetwork, int], Transport] | None = None,
    server_transport: Callable[[], Transport] | None = None,
    credentials: dict[int, Credentials] | None = None,
    report: Callable[[str], None] = lambda line: None,
    turns: Turns | None = None,
    records: Path | None = None,
    members: dict[int, Members] | None = None,
) -> Run:
    """`records`: where clients keep their records of openings, if these are to hold for several runs. `members`: whom
    each knows all to be."""
    torch.set_num_threads(1)
    run = Run()
    folder = RunFolder.reopen(path, config) if resume else RunFolder.create(path, config)

    def endpoint(network: InProcessNetwork, party: PartyId) -> Transport:
        if party == SERVER:
            return server_transport() if server_transport else network.endpoint(party)
        return transport_of(network, party) if transport_of else network.endpoint(party)

    def serve(transport: Transport) -> ServerOutcome:
        return FederationServer(config, transport, folder, report, turns).run()

    def client(number: int, graph: ClientGraph) -> Callable[[Transport], Participation]:
        own = (client_config or {}).get(number, config)

        def equip() -> Equipment:
            run.trainers[number] = (trainer_of or _trainer)(graph, own, number)
            record = records / f"client-{number}.record" if records is not None else None
            known = (members or {}).get(number, NUMBERS_ALONE)
            return Equipment(run.trainers[number], (credentials or {}).get(number), record, members=known)

        site = PreparedSite(folder.client(number), equip)
        return lambda transport: take_part(own, transport, len(graphs), site)

    clients = {PartyId(number): client(number, graph) for number, graph in enumerate(graphs, start=1)}
    ended = run_in_process(serve, clients, endpoint=endpoint, seconds=120)
    assert not any(party.hangs for party in (ended.server, *ended.clients.values())), "a party hangs"
    run.server_error = ended.server.error
    if run.server_error is None:
        run.outcome = ended.server.result()
    for number, party in ended.clients.items():
        if isinstance(party.error, Vanished) or Participation.EXCLUDED in party.values:
            run.gone.add(number)
        elif party.error is not None:
            fault = isinstance(party.error, InternalError) and party.error.__cause__
            run.client_errors[number] = fault or party.error
    return run


def _trainer(graph: ClientGraph, config: RunConfig, number: int) -> KgeLearner:
    return KgeLearner(graph, config.training, torch.device("cpu"), config.seed, number)


def relation_rows(run: Run) -> dict[int, np.ndarray[Any, Any]]:
    return {number: trainer.export_block("relation") for number, trainer in run.trainers.items()}
