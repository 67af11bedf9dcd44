"""A private federation under audit: real sessions of three clients in one process, one of them corrupt.

Client 1 has the canaries, client 2 is honest too, client 3 and the server are the attacker. Sums are by secure
aggregation with shares of noise, so that single contributions stay hidden; all clients have all names, which are
public. The clients are the federation's own (`secure_kg.federation.client`); the corrupt one follows the protocol and
writes down its share of the noise (`secure_kg.attacks.membership.curious`).
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
import torch
from torch import Tensor

from benchmarks.canaries.cases import SessionCase
from benchmarks.canaries.insecure_clients import InsecureBareGrid, InsecureClient
from benchmarks.canaries.planting import Planted
from protocols.foundation.errors import Aborted, ProtocolError
from protocols.foundation.identifiers import PartyId
from protocols.sums.noted_noise import Drawn
from protocols.transport.base import Transport
from protocols.transport.in_threads import run_in_process
from secure_kg.attacks.membership.curious import CuriousClient
from secure_kg.data.graph import ClientGraph
from secure_kg.federation.client.client import FederationClient
from secure_kg.federation.client.count_learner import CountLearner
from secure_kg.federation.client.private_learner import PrivateLearner
from secure_kg.federation.plan.row_sum import Rows
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.server.server import FederationServer
from secure_kg.foundation.errors import UserError
from secure_kg.learning.learner import Contributed, Learner, TrainStats
from secure_kg.runs.alignment_files import own_positions
from secure_kg.runs.run_folder import RunFolder

CLIENTS: Final = 3
VICTIM, BYSTANDER, CORRUPT = 1, 2, 3
_EVALUATED: Final = 3
"""Held-out triples that clients rank at the end: a federation ends with results, and an audit has no use for them."""


@dataclass(slots=True)
class Kept:
    """What a learner has gone through, by round."""

    before: dict[int, tuple[Rows, Rows]] = field(default_factory=dict)
    """Both tables as a round begins."""
    contributed: dict[int, Contributed] = field(default_factory=dict)
    """Into the sum of shared rows, before noise."""
    would_add: dict[int, tuple[Tensor, Tensor, Tensor]] = field(default_factory=dict)
    """What all canaries would add to both tables, and the candidates: of public rows, seed and canaries alone."""
    round: int = 0


class WatchedPrivateLearner(PrivateLearner):
    """A private learner that keeps what it goes through. `watch` comes first."""

    def watch(self, canaries: Tensor, *, bare: bool) -> Kept:
        """`bare`: the fault of rows of its own that move without noise."""
        self.kept, self._canaries = Kept(), canaries
        if bare:
            self._grid = InsecureBareGrid.like(self._grid)
        return self.kept

    def train(self, round: int) -> TrainStats:
        candidates = self._drawn(round)
        own = self._gradients.sums(self._canaries, candidates, self._plan.privacy.dp_clip, self._side(round))
        self.kept.round = round
        self.kept.before[round] = self.export_block("entity"), self.export_block("relation")
        self.kept.would_add[round] = own.entity, own.relation, candidates
        return super().train(round)

    def contributed_block(self, block: str) -> Contributed:
        rows = super().contributed_block(block)
        self.kept.contributed[self.kept.round] = rows
        return rows


class WatchedCountLearner(CountLearner):
    """The same of a learner that counts."""

    def watch(self, canaries: Tensor, *, bare: bool) -> Kept:
        self.kept = Kept()
        return self.kept

    def contributed_block(self, block: str) -> Contributed:
        rows = super().contributed_block(block)
        self.kept.contributed[1] = rows
        return rows


@dataclass(frozen=True, slots=True)
class Session:
    """A run that has ended, as its attacker and its auditor have seen it."""

    kept: dict[int, Kept]
    """By client."""
    last: dict[int, tuple[Rows, Rows]]
    """By client: both tables at the end; of a run that counts, the table of means twice."""
    noise: dict[int, Rows]
    """By round: the corrupt client's own share, in the order of its rows."""


def run_session(config: RunConfig, planted: Planted, case: SessionCase) -> Session:
    """One federation from its first round to its end, in a folder of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        return _Staged(config, planted, case, RunFolder.create(Path(scratch) / "run", config)).run()


class _Staged:
    def __init__(self, config: RunConfig, planted: Planted, case: SessionCase, folder: RunFolder) -> None:
        self._config, self._case, self._folder = config, case, folder
        self._graphs = divided(planted)
        self._canaries = torch.from_numpy(planted.canaries)
        self._learners: dict[int, WatchedPrivateLearner | WatchedCountLearner] = {}
        self._drawn: dict[int, Drawn] = {}

    def run(self) -> Session:
        torch.set_num_threads(1)

        def serve(transport: Transport) -> None:
            FederationServer(self._config, transport, self._folder, lambda line: None).run()

        ended = run_in_process(serve, {PartyId(number): self._client(number) for number in range(1, CLIENTS + 1)})
        for party in (*ended.clients.values(), ended.server):
            party.result()
        learner = self._learners[CORRUPT]
        (block,) = RunPlan(self._config, CLIENTS).blocks
        places = own_positions(self._folder.client(CORRUPT), learner.block_names(block.name)).own
        noise = {round: found.reshape(-1, block.width)[places] for round, found in self._drawn.items()}
        last = {number: _tables(one) for number, one in self._learners.items()}
        return Session({number: one.kept for number, one in self._learners.items()}, last, noise)

    def _client(self, number: int) -> Callable[[Transport], None]:
        def take_part(transport: Transport) -> None:
            role = self._role(number, transport)
            try:
                role.greet()
                role.run(self._learner(number), self._folder.client(number))
            except Aborted:
                raise
            except (UserError, ProtocolError) as problem:
                role.say_failed(str(problem))
                raise

        return take_part

    def _role(self, number: int, transport: Transport) -> FederationClient:
        if number == CORRUPT:
            curious = CuriousClient(self._config, transport, CLIENTS)
            self._drawn = curious.watch(range(self._config.rounds + 1))
            return curious
        case = self._case
        if case.bends is not None and (case.bent == "all" or number == BYSTANDER):
            return InsecureClient(self._config, transport, CLIENTS, case.bends())
        return FederationClient(self._config, transport, CLIENTS)

    def _learner(self, number: int) -> Learner:
        counts = self._config.privacy is not None and self._config.privacy.counts
        kind = WatchedCountLearner if counts else WatchedPrivateLearner
        learner = kind(self._config, self._graphs[number - 1], number, torch.device("cpu"))
        learner.watch(self._canaries, bare=self._case.bare_own_rows)
        self._learners[number] = learner
        return learner


def divided(planted: Planted) -> list[ClientGraph]:
    """The triples of three clients. All canaries that are in are the first one's, and all clients have all names."""
    graph, inside = planted.graph, int(planted.inside.sum())
    own, canaries = np.split(graph.train, [len(graph.train) - inside])
    parts = [own[number::CLIENTS] for number in range(CLIENTS)]
    parts[VICTIM - 1] = np.concatenate((parts[VICTIM - 1], canaries))
    short = replace(graph, valid=graph.valid[:_EVALUATED], test=graph.test[:_EVALUATED])
    return [replace(short, train=part) for part in parts]


def _tables(learner: WatchedPrivateLearner | WatchedCountLearner) -> tuple[Rows, Rows]:
    if isinstance(learner, WatchedCountLearner):
        return learner.export_block("counts"), learner.export_block("counts")
    return learner.export_block("entity"), learner.export_block("relation")
