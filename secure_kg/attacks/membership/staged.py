"""A federation staged for membership attacks: real clients and a real server in one process, two of them watched.

Client 1 attacks, client 2 is the victim, client 3, if there is one, the bystander to whom a triple may be attributed.
All of them run the federation's own code over in-process transports (`protocols.transport.in_threads`); the attacker's
learner keeps what it uploads and receives, and the server's end of the wire has a tap.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import torch

from protocols.foundation.errors import Aborted, ProtocolError
from protocols.foundation.identifiers import PartyId
from protocols.sums.noted_noise import Drawn
from protocols.transport.base import Transport
from protocols.transport.in_threads import run_in_process
from secure_kg.attacks.membership.curious import CuriousClient
from secure_kg.attacks.membership.server_view import ServerRows, ServerTap
from secure_kg.attacks.membership.watching import (
    ActiveLearner,
    ActivePrivateLearner,
    Kept,
    WatchedLearner,
    WatchedPrivateLearner,
)
from secure_kg.attacks.uploads import Places
from secure_kg.data.graph import ClientGraph
from secure_kg.federation.client.reasons import for_server
from secure_kg.federation.plan.row_sum import Rows
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.server import FederationServer
from secure_kg.foundation.errors import UserError
from secure_kg.models.shapes import entity_width
from secure_kg.runs.alignment_files import own_positions
from secure_kg.runs.run_folder import RunFolder

ATTACKER: Final = 1
VICTIM: Final = 2
BYSTANDER: Final = 3
_EVALUATED: Final = 200
"""Held-out triples that clients rank at the end: a federation ends with results, and attacks have no use for them."""


@dataclass(frozen=True, slots=True)
class Staged:
    """What everybody has seen, under the rules of the run."""

    server: ServerRows
    kept: dict[int, Kept] = field(repr=False)
    """By client. The attacker has its own; the others' are the truth."""
    places: Places = field(repr=False)
    """Positions [entities] of the attacker's names in the union."""
    noise: dict[int, Rows] = field(default_factory=dict, repr=False)
    """By round: the attacker's own share of the noise in its rows [entities, width]; nothing where there is none."""


def stage(
    config: RunConfig,
    graphs: Sequence[ClientGraph],
    rounds: frozenset[int],
    reversals: Mapping[int, npt.NDArray[np.int64]],
    path: Path,
    report: Callable[[str], None] = lambda line: None,
) -> Staged:
    """Run a federation in the new folder `path`, keeping some rounds. `reversals`: by round, whose rows A_CIA reverses.

    All clients must be drawn for every round.
    """
    if config.client_fraction < 1:
        raise UserError("--client-fraction: the attacks count rounds, so all clients take part in each")
    torch.set_num_threads(1)
    folder = RunFolder.create(path, config)
    server = ServerRows(config, rounds)
    kept: dict[int, Kept] = {}
    drawn: dict[int, dict[int, Drawn]] = {}

    def serve(transport: Transport) -> None:
        transport.attach(ServerTap(server))
        FederationServer(config, transport, folder, report).run()

    def client(number: int) -> Callable[[Transport], None]:
        graph = _briefly_evaluated(graphs[number - 1])

        def take_part(transport: Transport) -> None:
            role = CuriousClient(config, transport, len(graphs))
            drawn[number] = role.watch(rounds if number == ATTACKER else ())
            try:
                role.greet()
                learner = _learner(config, graph, number, reversals)
                kept[number] = learner.keep(rounds, (lambda block: role.means[block]) if number == ATTACKER else None)
                role.run(learner, folder.client(number))
            except Aborted:
                raise
            except (UserError, ProtocolError) as problem:
                role.say_failed(for_server(problem, config))
                raise

        return take_part

    ended = run_in_process(serve, {PartyId(number): client(number) for number in range(1, len(graphs) + 1)})
    for party in (*ended.clients.values(), ended.server):
        party.result()
    places = own_positions(folder.client(ATTACKER), graphs[ATTACKER - 1].entities).own
    width = entity_width(config.training.model, config.training.dim)
    noise = {round: found.reshape(-1, width)[places] for round, found in drawn[ATTACKER].items()}
    return Staged(server, kept, places, noise)


def _learner(
    config: RunConfig, graph: ClientGraph, number: int, reversals: Mapping[int, npt.NDArray[np.int64]]
) -> WatchedLearner:
    cpu = torch.device("cpu")
    if config.privacy is not None:
        private = (WatchedPrivateLearner if number != ATTACKER else ActivePrivateLearner)(config, graph, number, cpu)
        learner: WatchedLearner = private
    else:
        kind = WatchedLearner if number != ATTACKER else ActiveLearner
        learner = kind(graph, config.training, cpu, config.seed, number)
    if isinstance(learner, ActiveLearner):
        learner.plan(reversals)
    return learner


def _briefly_evaluated(graph: ClientGraph) -> ClientGraph:
    return dataclasses.replace(graph, valid=graph.valid[:_EVALUATED], test=graph.test[:_EVALUATED])
