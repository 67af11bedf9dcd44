"""The masked sum as a conversation: the secure twin of `protocols.plain.sums`.

Parties, adversary, what is revealed, assumed and not covered: see the package, `protocols.secagg`. A party that stays
silent in a step is reported to the caller (`Silent`) and left out of the steps that follow.
"""

import time
from collections.abc import Collection, Mapping

from protocols import wire
from protocols.conversation import MAX_REASON, Abandon, Conversation
from protocols.errors import ProtocolError, SumAbandoned
from protocols.identifiers import SERVER, SETUP, PartyId
from protocols.patience import Patience
from protocols.primitives.group import GroupVector
from protocols.secagg.client import SecAggClient
from protocols.secagg.messages import (
    AdvertiseChannel,
    ChannelDirectory,
    EncryptedShares,
    KeyDirectory,
    SignedSurvivors,
    Survivors,
)
from protocols.secagg.openings import Openings
from protocols.secagg.params import SumParameters, ThreatModel, complete_parameters, sparse_parameters
from protocols.secagg.server import EXPECTED, SecAggServer, Step
from protocols.secagg.session import ClientSession
from protocols.secagg.terms import Credentials, Terms, setup_transcript
from protocols.sums import (
    Collected,
    Contribution,
    ContributionReport,
    Silent,
    SumClient,
    SumLayout,
    SumServer,
    SumTask,
)
from protocols.transport.deadline import Deadline


def parameters_for(participants: int, clients: int, model: ThreatModel, min_survivors: int) -> SumParameters:
    """The graph and threshold of a sum over `participants` of `clients`, of whom a share is corrupt.

    Complete against an active server, else the sparsest graph that can be justified.
    """
    choose = complete_parameters if model.server == "active" else sparse_parameters
    return choose(participants, model.among(participants, clients), min_survivors)


class SecAggSumClient(SumClient):
    """`clients`, `model`, `min_survivors` and `credentials` come from this client's own configuration."""

    def __init__(
        self,
        clients: Collection[PartyId],
        model: ThreatModel,
        min_survivors: int = 2,
        credentials: Credentials | None = None,
        openings: Openings | None = None,
    ) -> None:
        if (model.server == "active") != (credentials is not None):
            raise ValueError("identity keys are needed against an active server, and only then")
        self._clients = frozenset(clients)
        self._model, self._min_survivors, self._credentials = model, min_survivors, credentials
        self._openings = openings
        self._session: ClientSession | None = None
        self._running: SecAggClient | None = None
        self._seconds = 0.0
        self._vector: GroupVector | None = None

    def setup(self, conversation: Conversation, deadline: Deadline) -> None:
        session = ClientSession(
            conversation.transport.party, self._clients, conversation.session, self._credentials, self._openings
        )
        with conversation.transport.phase(SETUP, "advertise channel"):
            conversation.send(SERVER, session.start(), SETUP)
            session.receive(conversation.receive(SERVER, ChannelDirectory, SETUP, deadline))
        self._session = session

    def prepare(self, conversation: Conversation, task: SumTask, deadline: Deadline) -> None:
        if self._session is None:
            raise RuntimeError("setup() comes first")
        started = time.perf_counter()
        parameters = parameters_for(len(task.participants), len(self._clients), self._model, self._min_survivors)
        layout = task.layout
        running = self._session.begin(
            task.round, task.purpose, task.participants, parameters, layout.ring, layout.entries, model=task.model
        )
        self._running, self._seconds = running, 0.0
        advert = running.start()
        self._seconds += time.perf_counter() - started
        try:
            with conversation.transport.phase(task.round, f"advertise keys/{task.purpose}"):
                conversation.send(SERVER, advert, task.round)
                directory = conversation.receive(SERVER, KeyDirectory, task.round, deadline, task.purpose)
            self._answer(conversation, task, f"share keys/{task.purpose}", directory)
        except ProtocolError as problem:
            running.abort(str(problem))
            self._running = None
            raise

    def contribute(
        self, conversation: Conversation, task: SumTask, contribution: Contribution, deadline: Deadline
    ) -> ContributionReport:
        running, transport = self._running, conversation.transport
        if running is None:
            raise RuntimeError("prepare() comes first")
        self._running = None
        try:
            started = time.perf_counter()
            encoded = task.layout.encode(contribution, into=self._vector_for(task.layout))
            encode_seconds = time.perf_counter() - started
            with transport.phase(task.round, f"share keys/{task.purpose}"):
                shares = conversation.receive(SERVER, EncryptedShares, task.round, deadline, task.purpose)
            started = time.perf_counter()
            running.receive(shares)
            masked = running.set_input(encoded.vector)
            self._seconds += time.perf_counter() - started
            with transport.phase(task.round, f"masked input/{task.purpose}"):
                conversation.send(SERVER, masked, task.round)
                survivors = conversation.receive(SERVER, Survivors, task.round, deadline, task.purpose)
            self._running = running
            if self._credentials is not None:
                self._answer(conversation, task, f"consistency check/{task.purpose}", survivors)
                with transport.phase(task.round, f"consistency check/{task.purpose}"):
                    signed = conversation.receive(SERVER, SignedSurvivors, task.round, deadline, task.purpose)
                self._answer(conversation, task, f"unmasking/{task.purpose}", signed)
            else:
                self._answer(conversation, task, f"unmasking/{task.purpose}", survivors)
        except ProtocolError as problem:
            running.abort(str(problem))
            raise
        finally:
            self._running = None
        return ContributionReport(encoded.clipped, encoded.max_error, encode_seconds, self._seconds)

    def _vector_for(self, layout: SumLayout) -> GroupVector:
        """The memory of the last such upload: it was copied into its message, and the next round needs as much."""
        if self._vector is None or (self._vector.dtype, len(self._vector)) != (layout.ring.dtype, layout.entries):
            self._vector = layout.ring.zeros(layout.entries)
        return self._vector

    def _answer(self, conversation: Conversation, task: SumTask, phase: str, message: wire.Message) -> None:
        """One step: the client's answer to `message`."""
        if self._running is None:
            raise RuntimeError("prepare() comes first")
        started = time.perf_counter()
        try:
            answer = self._running.receive(message)
        except SumAbandoned as problem:  # this client must not open it: the server need not wait
            conversation.send(SERVER, Abandon(task.purpose, str(problem)[:MAX_REASON]), task.round)
            raise
        self._seconds += time.perf_counter() - started
        if answer is not None:
            with conversation.transport.phase(task.round, phase):
                conversation.send(SERVER, answer, task.round)


class SecAggSumServer(SumServer):
    """Number of `clients`, `model` and `min_survivors` must be those of the clients: others would refuse to answer."""

    def __init__(self, clients: int, model: ThreatModel, min_survivors: int = 2) -> None:
        self._clients, self._model, self._min_survivors = clients, model, min_survivors
        self._transcript: bytes | None = None
        self._channels: frozenset[PartyId] = frozenset()
        self._running: SecAggServer | None = None

    def setup(
        self, conversation: Conversation, present: Collection[PartyId], patience: Patience, silent: Silent
    ) -> None:
        step = "advertise channel"
        with conversation.transport.phase(SETUP, step):
            adverts = dict(conversation.gather_each(present, AdvertiseChannel, SETUP, patience, step))
            keys = {party: advert.channel_key for party, advert in sorted(adverts.items())}
            signatures = {int(party): advert.signature for party, advert in sorted(adverts.items())}
            directory = ChannelDirectory({int(party): key for party, key in keys.items()}, signatures)
            lost = conversation.deliver(dict.fromkeys(adverts, directory), SETUP)
        if missing := (set(present) - adverts.keys()) | lost:
            silent(missing, step)
        self._channels = frozenset(adverts)
        self._transcript = setup_transcript(conversation.session, keys)

    def prepare(
        self,
        conversation: Conversation,
        task: SumTask,
        present: Collection[PartyId],
        patience: Patience,
        silent: Silent,
    ) -> None:
        if self._transcript is None:
            raise RuntimeError("setup() comes first")
        terms = Terms(
            conversation.session,
            self._transcript,
            task.round,
            task.purpose,
            tuple(sorted(task.participants)),
            parameters_for(len(task.participants), self._clients, self._model, self._min_survivors),
            task.layout.ring,
            task.layout.entries,
            model=task.model,
        )
        running = SecAggServer(terms, frozenset(present) & self._channels, signed=self._model.server == "active")
        self._running = running
        while running.step in (Step.ADVERTISE_KEYS, Step.SHARE_KEYS):
            self._step(running, conversation, task, patience, silent)

    def collect(self, conversation: Conversation, task: SumTask, patience: Patience, silent: Silent) -> Collected:
        running = self._running
        if running is None:
            raise RuntimeError("prepare() comes first")
        self._running = None
        while running.step is not Step.DONE:
            self._step(running, conversation, task, patience, silent)
        started = time.perf_counter()
        total = task.layout.decode(running.total())
        self.unmask_seconds += time.perf_counter() - started
        return Collected(total, running.survivors)

    def _step(
        self,
        running: SecAggServer,
        conversation: Conversation,
        task: SumTask,
        patience: Patience,
        silent: Silent,
    ) -> None:
        """Take the answers of one step as they arrive, end it, and send everybody the next message."""
        step = f"{running.step.value}/{task.purpose}"
        with conversation.transport.phase(task.round, step):
            expected = EXPECTED[running.step]
            answers = conversation.gather_each(running.awaited, expected, task.round, patience, step, task.purpose)
            for party, message in answers:
                started = time.perf_counter()
                running.receive(party, message)
                self.unmask_seconds += time.perf_counter() - started
            if running.missing:
                silent(running.missing, step)
            started = time.perf_counter()
            messages: Mapping[PartyId, wire.Message] = running.close()
            self.unmask_seconds += time.perf_counter() - started
            if lost := conversation.deliver(dict(messages), task.round):
                running.give_up(lost)
                silent(lost, step)
