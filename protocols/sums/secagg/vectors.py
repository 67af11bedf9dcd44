"""The masked sum of bare group vectors as a conversation: what every secure sum of this project is made of.

Parties, adversary, what is revealed, assumed and not covered: see the package, `protocols.sums.secagg`. A party that
stays silent in a step is reported to the caller (`Silent`) and left out of the steps that follow.

Several sums may be prepared before the first of them is contributed to; each is known by its round and purpose.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import ProtocolError, SumAbandoned
from protocols.foundation.identifiers import SERVER, SETUP, PartyId, RoundId
from protocols.foundation.spent import Spent
from protocols.primitives.group import Group, GroupVector
from protocols.session.channels import setup_transcript
from protocols.session.conversation import MAX_REASON, Abandon, Conversation
from protocols.session.credentials import Credentials
from protocols.session.messages import AdvertiseChannel, ChannelDirectory
from protocols.session.patience import Patience
from protocols.session.turns import Silent
from protocols.sums.interface import MayOpen
from protocols.sums.secagg.client import SecAggClient
from protocols.sums.secagg.messages import (
    EncryptedShares,
    KeyDirectory,
    MaskedInput,
    SignedSurvivors,
    Survivors,
    masked_input_bytes,
)
from protocols.sums.secagg.openings import Openings
from protocols.sums.secagg.params import SumParameters, ThreatModel, complete_parameters, sparse_parameters
from protocols.sums.secagg.server import EXPECTED, SecAggServer, Step
from protocols.sums.secagg.session import SecAggSession
from protocols.sums.secagg.terms import Terms

_Sum: TypeAlias = tuple[RoundId, str]


@dataclass(frozen=True, slots=True)
class VectorTask:
    """One sum of vectors, as a party reckons it itself. See `protocols.sums.interface.SumTask`."""

    round: RoundId
    purpose: str
    participants: tuple[PartyId, ...]
    group: Group
    length: int
    model: bytes = b""
    state: bytes = b""

    @property
    def key(self) -> _Sum:
        return self.round, self.purpose


@dataclass(frozen=True, slots=True)
class VectorTotal:
    """A sum as the server holds it, and whose vectors are in it."""

    vector: GroupVector
    contributors: frozenset[PartyId]


def parameters_for(participants: int, clients: int, model: ThreatModel, min_survivors: int) -> SumParameters:
    """The graph and threshold of a sum over `participants` of `clients`, of whom a share is corrupt.

    Complete against an active server, else the sparsest graph that can be justified.
    """
    choose = complete_parameters if model.server == "active" else sparse_parameters
    return choose(participants, model.among(participants, clients), min_survivors)


class VectorClient:
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
        self._session: SecAggSession | None = None
        self._running: dict[_Sum, tuple[SecAggClient, Spent]] = {}

    @property
    def session(self) -> SecAggSession:
        """The channels to the other clients; `setup` comes first."""
        if self._session is None:
            raise RuntimeError("setup() comes first")
        return self._session

    def setup(self, conversation: Conversation, deadline: Deadline) -> None:
        me = conversation.transport.party
        session = SecAggSession(
            me, self._clients, conversation.session, self._credentials, self._openings, conversation.greeting
        )
        with conversation.transport.phase(SETUP, "advertise channel"):
            conversation.send(SERVER, session.start(), SETUP)
            session.receive(conversation.receive(SERVER, ChannelDirectory, SETUP, deadline))
        self._session = session

    def prepare(self, conversation: Conversation, task: VectorTask, deadline: Deadline) -> None:
        """Agree on the keys of this sum, until it only lacks the inputs."""
        self._forget_before(task.round)
        spent = Spent()
        with spent.measure():
            parameters = parameters_for(len(task.participants), len(self._clients), self._model, self._min_survivors)
            running = self.session.begin(
                task.round,
                task.purpose,
                task.participants,
                parameters,
                task.group,
                task.length,
                model=task.model,
                state=task.state,
            )
            advert = running.start()
        step = _Steps(conversation, task, running, spent)
        try:
            with conversation.transport.phase(task.round, f"advertise keys/{task.purpose}"):
                conversation.send(SERVER, advert, task.round)
                directory = conversation.receive(SERVER, KeyDirectory, task.round, deadline, task.purpose)
            step.answer("share keys", directory)
            with conversation.transport.phase(task.round, f"share keys/{task.purpose}"):
                shares = conversation.receive(SERVER, EncryptedShares, task.round, deadline, task.purpose)
            step.answer("share keys", shares)
        except ProtocolError as problem:
            running.abort(str(problem))
            raise
        self._running[task.key] = running, spent

    def contribute(
        self,
        conversation: Conversation,
        task: VectorTask,
        vector: GroupVector,
        deadline: Deadline,
        more_masks: Sequence[bytes] = (),
        may_open: MayOpen | None = None,
    ) -> Spent:
        """Send `vector`, masked in place, to a sum that is prepared, and help to open it; the time it took in all.

        `more_masks`: keys of masks that stay on the sum. `may_open`: asked before this client helps to open it.
        """
        try:
            running, spent = self._running.pop(task.key)
        except KeyError:
            raise RuntimeError("prepare() comes first") from None
        step, transport = _Steps(conversation, task, running, spent), conversation.transport
        try:
            masked = step.input(vector, more_masks)
            with transport.phase(task.round, f"masked input/{task.purpose}"):
                conversation.send(SERVER, masked, task.round)
                survivors = conversation.receive(SERVER, Survivors, task.round, deadline, task.purpose)
            if self._credentials is None:
                step.answer("unmasking", survivors, may_open)
            else:
                step.answer("consistency check", survivors, may_open)
                with transport.phase(task.round, f"consistency check/{task.purpose}"):
                    signed = conversation.receive(SERVER, SignedSurvivors, task.round, deadline, task.purpose)
                step.answer("unmasking", signed)
        except ProtocolError as problem:
            running.abort(str(problem))
            raise
        return spent

    def _forget_before(self, round_id: RoundId) -> None:
        """Sums of earlier rounds that were prepared and then given up."""
        for key in [key for key in self._running if key[0] < round_id]:
            self._running.pop(key)[0].abort("given up")


class _Steps:
    """A client's answers in one sum, and the time they took."""

    def __init__(self, conversation: Conversation, task: VectorTask, running: SecAggClient, spent: Spent) -> None:
        self._conversation, self._task, self._running = conversation, task, running
        self._spent = spent

    def input(self, vector: GroupVector, more_masks: Sequence[bytes]) -> MaskedInput:
        with self._refusing(), self._spent.measure():
            return self._running.set_input(vector, more_masks)

    def answer(self, step: str, message: wire.Message, may_open: MayOpen | None = None) -> None:
        with self._refusing(), self._spent.measure():
            if may_open is not None and isinstance(message, Survivors):
                may_open(self._running.missing_with(message))
            answer = self._running.receive(message)
        if answer is not None:
            with self._conversation.transport.phase(self._task.round, f"{step}/{self._task.purpose}"):
                self._conversation.send(SERVER, answer, self._task.round)

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """A client that must not help to open the sum says so: the server need not wait."""
        try:
            yield
        except SumAbandoned as problem:
            self._conversation.send(SERVER, Abandon(self._task.purpose, str(problem)[:MAX_REASON]), self._task.round)
            raise


class VectorServer:
    """Number of `clients`, `model` and `min_survivors` must be those of the clients: others would refuse to answer."""

    def __init__(self, clients: int, model: ThreatModel, min_survivors: int = 2) -> None:
        self.unmasking = Spent()
        """All that the server computes for the sums, so far."""
        self._clients, self._model, self._min_survivors = clients, model, min_survivors
        self._transcript: bytes | None = None
        self._channels: frozenset[PartyId] = frozenset()
        self._running: dict[_Sum, SecAggServer] = {}

    @property
    def channels(self) -> frozenset[PartyId]:
        """The clients that have channels to each other: no others can take part in this session's sums."""
        return self._channels

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
        self._transcript = setup_transcript(conversation.session, keys, conversation.greeting)

    def prepare(
        self,
        conversation: Conversation,
        task: VectorTask,
        present: Collection[PartyId],
        patience: Patience,
        silent: Silent,
    ) -> None:
        """The counterpart of `VectorClient.prepare`, with those of the participants that are `present`."""
        if self._transcript is None:
            raise RuntimeError("setup() comes first")
        self._running = {key: running for key, running in self._running.items() if key[0] >= task.round}
        terms = Terms(
            conversation.session,
            self._transcript,
            task.round,
            task.purpose,
            tuple(sorted(task.participants)),
            parameters_for(len(task.participants), self._clients, self._model, self._min_survivors),
            task.group,
            task.length,
        )
        conversation.admit(masked_input_bytes(task.purpose, task.length, task.group.element_bytes))
        running = SecAggServer(terms, frozenset(present) & self._channels, signed=self._model.server == "active")
        while running.step in (Step.ADVERTISE_KEYS, Step.SHARE_KEYS):
            self._step(running, conversation, task, patience, silent)
        self._running[task.key] = running

    def collect(
        self,
        conversation: Conversation,
        task: VectorTask,
        patience: Patience,
        silent: Silent,
        present: Collection[PartyId] | None = None,
    ) -> VectorTotal:
        """Add up the vectors of those who are still `present` (None: all); `SumAbandoned` if they are too few."""
        try:
            running = self._running.pop(task.key)
        except KeyError:
            raise RuntimeError("prepare() comes first") from None
        if present is not None:
            running.give_up(running.awaited - frozenset(present))
        while running.step is not Step.DONE:
            self._step(running, conversation, task, patience, silent)
        return VectorTotal(running.total(), running.survivors)

    def _step(
        self,
        running: SecAggServer,
        conversation: Conversation,
        task: VectorTask,
        patience: Patience,
        silent: Silent,
    ) -> None:
        """Take the answers of one step as they arrive, end it, and send everybody the next message."""
        step = f"{running.step.value}/{task.purpose}"
        with conversation.transport.phase(task.round, step):
            expected = EXPECTED[running.step]
            answers = conversation.gather_each(running.awaited, expected, task.round, patience, step, task.purpose)
            for party, message in answers:
                with self.unmasking.measure():
                    running.receive(party, message)
                del message  # before the next one arrives
            if running.missing:
                silent(running.missing, step)
            with self.unmasking.measure():
                messages: Mapping[PartyId, wire.Message] = running.close()
            if lost := conversation.deliver(dict(messages), task.round):
                running.give_up(lost)
                silent(lost, step)
