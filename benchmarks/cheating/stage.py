"""A whole federation in one process for a server to cheat in: real clients, trainers and protocols, as threads.

The clients are those of the toolkit and know nothing of the play. What is watched of them, to judge a server's success
by, is watched in their trainers: the rows they hold when they contribute, and the figures they rank.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch

from benchmarks.cheating.meddling import Cheat, Meddling, ServerDied
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import Aborted, LeftOut, PeerLost, ProtocolError
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.foundation.wire import Frame
from protocols.session.credentials import Credentials
from protocols.session.identities import (
    Identity,
    PublicIdentity,
    credentials,
    directory_text,
    new_identity,
    parse_directory,
)
from protocols.transport.base import Transport
from protocols.transport.in_process import InProcessNetwork, InProcessTransport
from protocols.transport.in_threads import run_in_process
from secure_kg.data.graph import ClientGraph, Part
from secure_kg.data.partition import partition
from secure_kg.data.sources import load_source
from secure_kg.evaluation.ranking import Sides
from secure_kg.evaluation.sums import RankingSums
from secure_kg.federation.client.client import FederationClient
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.kge import KgeLearner
from secure_kg.learning.learner import Settings, TrainStats
from secure_kg.runs.outcome import ServerOutcome
from secure_kg.runs.run_folder import RunFolder
from secure_kg.runs.summary import summarise

CLIENTS: Final = 5
VICTIM: Final = 3
COLLUDER: Final = 1
_JOIN_SECONDS: Final = 60.0
SMALL: Final = TrainingConfig(dim=8, negatives=14, batch_size=512, local_epochs=1, lr=0.01)

Rows = npt.NDArray[np.float32]


def stage_config(**changes: Any) -> RunConfig:
    """Of a small federation on Nations, with a transcript, against an active server unless told otherwise."""
    settings: dict[str, Any] = {
        "dataset": "nations",
        "clients": CLIENTS,
        "rounds": 4,
        "eval_every": 2,
        "checkpoint_every": 2,
        "transcript": True,
        "adversary": "active",
        "deadline": 30.0,
        "training": SMALL,
        **changes,
    }
    if settings["adversary"] == "active":
        settings.setdefault("keys", "keys")
    return RunConfig(**settings)


class WatchedTrainer(KgeLearner):
    """A trainer that lets the judge see what its client holds."""

    def __init__(self, graph: ClientGraph, config: Settings, number: int) -> None:
        super().__init__(graph, config.training, torch.device("cpu"), config.seed, number)
        self.trained: dict[int, Rows] = {}
        """By round: the relations' rows after its epochs, which are what its client contributes."""
        self.losses: dict[int, TrainStats] = {}
        self.ranked: dict[tuple[Part, Sides], list[RankingSums]] = {}
        self.put: list[Rows] = []
        """Tables of relations as they were put in from outside."""

    def train(self, round: int) -> TrainStats:
        done = super().train(round)
        self.trained[round], self.losses[round] = self.export_block("relation"), done
        return done

    def load_block(self, table: Any, rows: Rows) -> None:
        super().load_block(table, rows)
        self.put.append(self.export_block("relation"))

    def rank(self, part: Part, sides: Sides = "tail") -> RankingSums:
        sums = super().rank(part, sides)
        self.ranked.setdefault((part, sides), []).append(sums)
        return sums


class _Gone(Exception):
    """The job is over for this client: its server is dead."""


class _ClientTransport(InProcessTransport):
    """Ends with the server, as processes of one job do, or with its first masked input of the round `vanishes_in`."""

    def __init__(self, network: InProcessNetwork, party: PartyId, vanishes_in: int | None) -> None:
        super().__init__(network, party, [SERVER])
        self._last = vanishes_in

    def _post(self, to: PartyId, frame: Frame) -> None:
        if self._round == self._last and self._phase.startswith("masked input/"):
            raise _Gone
        super()._post(to, frame)

    def _take(self, senders: Collection[PartyId], deadline: Deadline) -> tuple[PartyId, Frame] | None:
        try:
            return super()._take(senders, deadline)
        except PeerLost:  # no error of the protocol: the process of this client would be ended
            raise _Gone from None


@dataclass
class Session:
    """What became of one start of the job."""

    notebook: Path
    """The cheating server's own record of what passed, to be read as a transcript."""
    clients: dict[int, FederationClient] = field(default_factory=dict)
    trainers: dict[int, WatchedTrainer] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)
    """By client: why it would not go on."""
    crashed: dict[int, str] = field(default_factory=dict)
    """By client: an error that is no refusal. A cheat that ends in one has shown nothing but a fault."""
    outcome: ServerOutcome | None = None
    server_error: str = ""

    def trained(self, number: int, round_id: int) -> Rows | None:
        """The rows with which a client came out of its epochs of a round; None if it did not come to that."""
        return self.trainers[number].trained.get(round_id) if number in self.trainers else None


@dataclass(frozen=True)
class _Job:
    """One start of the job."""

    config: RunConfig
    folder: RunFolder
    session: Session


class Stage:
    """One run's folder, its clients, and the sessions that were held. `perform` holds another one."""

    def __init__(
        self,
        path: Path,
        config: RunConfig,
        graphs: list[ClientGraph] | None = None,
        vanishes: tuple[int, int] | None = None,
        earlier: "Stage | None" = None,
        trainer: type[WatchedTrainer] = WatchedTrainer,
    ) -> None:
        """`path`: an empty folder; the run's own is `run` in it. `vanishes`: client and round in which it is lost.

        `earlier`: another run of the same clients, whose identities they have still, with what lies beside them.
        `trainer`: what clients learn with.
        """
        self.config, self.path, self.run = config, path, path / "run"
        count = config.clients or 0
        self.graphs = graphs if graphs is not None else nations(count, config)
        self.sessions: list[Session] = []
        self.directory: Mapping[PartyId, bytes] | None = None
        self._credentials: dict[int, Credentials] = {}
        self._pairs: dict[int, Identity] = {}
        self._replaced = 0
        self._vanishes, self._trainer = vanishes, trainer
        self.keys: Path = earlier.keys if earlier is not None else path / "keys"
        if earlier is not None:
            self.directory, self._credentials = earlier.directory, earlier._credentials
            self._pairs = earlier._pairs
        elif config.adversary == "active":
            self._make_identities(count)

    @property
    def last(self) -> Session:
        return self.sessions[-1]

    @property
    def refused(self) -> dict[int, str]:
        """Of all sessions."""
        return {number: reason for session in self.sessions for number, reason in session.refused.items()}

    def replace(self, number: int) -> None:
        """Another organisation has this number from now on, with an identity of its own and no record."""
        self._replaced, self._pairs = number, {**self._pairs, number: new_identity()}
        self._know_identities()

    def perform(self, cheat: Cheat, config: RunConfig | None = None) -> Session:
        """One session of the run under `cheat`, from greeting to end; the first makes the run's folder."""
        torch.set_num_threads(1)
        config = config if config is not None else self.config
        resume = self.run.exists()
        folder = RunFolder.reopen(self.run, config) if resume else RunFolder.create(self.run, config)
        session = Session(self.path / f"notebook-{len(self.sessions) + 1}.bin")
        self.sessions.append(session)
        cheat.begin(self)
        job = _Job(config, folder, session)

        def endpoint(network: InProcessNetwork, party: PartyId) -> Transport:
            if party == SERVER:
                return Meddling(network.endpoint(SERVER), cheat, session.notebook)
            client, in_round = self._vanishes if self._vanishes is not None else (SERVER, None)
            return _ClientTransport(network, party, in_round if client == party else None)

        clients = {PartyId(number): partial(self._take_part, job) for number in range(1, len(self.graphs) + 1)}
        ended = run_in_process(partial(self._serve, cheat, job), clients, endpoint=endpoint, seconds=_JOIN_SECONDS)
        if (problem := ended.server.error) is not None:
            session.server_error = "died" if isinstance(problem, ServerDied) else f"{type(problem).__name__}: {problem}"
        return session

    @staticmethod
    def _serve(cheat: Cheat, job: _Job, transport: Transport) -> None:
        cheat.server_object = cheat.server(job.config, transport, job.folder, lambda line: None)
        job.session.outcome = cheat.server_object.run()
        job.folder.write_summary(summarise(job.config, job.session.outcome, job.folder))

    def _take_part(self, job: _Job, transport: Transport) -> None:
        number = int(transport.party)
        client = job.session.clients[number] = FederationClient(job.config, transport, len(self.graphs))
        graph = self.graphs[number - 1]
        try:
            client.greet()
            trainer = job.session.trainers[number] = self._trainer(graph, job.config, number)
            own, credentials = job.folder.client(number), self._credentials.get(number)
            # Against an active server the record of openings lies beside the identity.
            record = self.keys / f"client-{number}.record" if credentials is not None else None
            if number == self._replaced:
                record = self.path / "newcomer.record"
            client.run(trainer, own, credentials, record)
        except (_Gone, LeftOut, Aborted):
            pass
        except (ProtocolError, UserError) as problem:
            job.session.refused[number] = f"{type(problem).__name__}: {problem}"
            self._say_failed(client, number, job.session, str(problem))
        except Exception as problem:
            job.session.crashed[number] = f"{type(problem).__name__}: {problem}"
            self._say_failed(client, number, job.session, "internal error")

    @staticmethod
    def _say_failed(client: FederationClient, number: int, session: Session, reason: str) -> None:
        """A client that cannot even say so has crashed."""
        try:
            client.say_failed(reason)
        except Exception as problem:
            session.crashed[number] = f"{type(problem).__name__}: {problem}"

    def _make_identities(self, count: int) -> None:
        self._pairs = {number: new_identity() for number in range(1, count + 1)}
        self._know_identities()

    def _know_identities(self) -> None:
        text = directory_text([PublicIdentity(PartyId(number), pair.public) for number, pair in self._pairs.items()])
        self.directory = {one.number: bytes.fromhex(one.public) for one in parse_directory(text)}
        self._credentials = {
            number: credentials(pair.private_pem, text, number) for number, pair in self._pairs.items()
        }


def thread_name(number: int) -> str:
    """Of the thread that a party runs in: 0 is the server."""
    return f"party {number}"


def nations(clients: int, config: RunConfig) -> list[ClientGraph]:
    return partition(load_source("nations"), clients, config.by, config.seed)
