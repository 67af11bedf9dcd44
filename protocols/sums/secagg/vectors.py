"""The masked sum of bare group vectors as a conversation: what every secure sum of this project is made of.

Parties, adversary, what is revealed, assumed and not covered: see the package, `protocols.sums.secagg`. A participant
that misses the deadline of a step is reported as a dropout (`ServerSession.on_dropout`) and is out of the steps that
follow.

Several sums may be prepared before the first of them is contributed to; each is known by its round and purpose. A
client has sent its shares when `prepare` returns, and takes what the others have sent for it when it contributes: the
server relays them while clients do what comes in between. The key of a sum to come may be advertised beforehand
(`advertise`), right after what a client says last in the sum before: the server then answers with the directory as soon
as that sum begins.

Masked inputs may travel inside messages of another protocol, e.g. encrypted (`Carry`, `CarriedInputs`). The server then
adds up what it reads of them, and removes the masks from that. If it reads zeros, the total is the negative sum of the
masks: the correction of a sum that is made elsewhere.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeAlias

from protocols.foundation import wire
from protocols.foundation.errors import PeersRefused, ProtocolError, SumAbandoned
from protocols.foundation.identifiers import SERVER, SETUP, PartyId, RoundId
from protocols.foundation.spent import Spent
from protocols.primitives.group import GroupVector
from protocols.session.channels import setup_transcript
from protocols.session.client_session import ClientSession
from protocols.session.conversation import MAX_REASON, Abandon
from protocols.session.credentials import Credentials
from protocols.session.messages import AdvertiseChannel, ChannelDirectory
from protocols.session.server_session import ServerSession
from protocols.sums.interface import MayOpen, NotedOpening
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
from protocols.sums.secagg.refusals import Refusals
from protocols.sums.secagg.server import EXPECTED, SecAggServer, Step
from protocols.sums.secagg.session import SecAggSession
from protocols.sums.secagg.states import New
from protocols.sums.secagg.terms import BoundTerms
from protocols.sums.terms import Layout, SumKey, SumTerms


@dataclass(frozen=True, slots=True)
class VectorTotal:
    """A sum as the server holds it, and whose vectors are in it."""

    vector: GroupVector
    contributors: frozenset[PartyId]


Carry: TypeAlias = Callable[[MaskedInput], wire.Message]
"""A client's masked input as the message that carries it."""


class CarriedInputs(Protocol):
    """The server's counterpart of `Carry`."""

    @property
    def expected(self) -> type[wire.Message]:
        """What clients send."""

    def read(self, party: PartyId, message: wire.Message) -> MaskedInput:
        """What is added up of it here; `PeerMisbehaved` if it is not what `party` should have sent."""


@lru_cache(maxsize=64)  # the same in every round
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
        self._running: dict[SumKey, tuple[SecAggClient, Spent]] = {}
        self._refusals = Refusals()

    @property
    def model(self) -> ThreatModel:
        """What this client's configuration declares."""
        return self._model

    @property
    def session(self) -> SecAggSession:
        """The channels to the other clients; `setup` comes first."""
        if self._session is None:
            raise RuntimeError("setup() comes first")
        return self._session

    def setup(self, session: ClientSession) -> None:
        talk = session.conversation
        channels = SecAggSession(
            session.party, self._clients, talk.session, self._credentials, self._openings, talk.greeting
        )
        with session.phase(SETUP, "advertise channel"):
            session.send(channels.start(), SETUP)
            channels.receive(session.receive(ChannelDirectory, SETUP))
        self._session = channels

    def prepare(self, session: ClientSession, terms: SumTerms[Layout]) -> None:
        """Agree on the keys of this sum, until it only lacks the inputs."""
        self._forget_before(terms.round)
        spent = Spent()
        with spent.measure():
            running = self.session.begin(terms, self._parameters(terms))
            advert = running.start() if isinstance(running.state, New) else None
        step = _Steps(session, terms, running, spent, self._refusals)
        with step.or_abort():
            with step.phase("advertise keys"):
                session.conversation.begin(terms.round, terms.purpose)
                if advert is not None:
                    session.send(advert, terms.round)
                directory = step.receive(KeyDirectory)
            step.answer("share keys", directory)
        self._running[terms.key] = running, spent

    def advertise(self, session: ClientSession, terms: SumTerms[Layout]) -> None:
        """Advertise the key of a sum that is to come, by its public terms."""
        advert = self.session.advertise(terms, self._parameters(terms))
        with session.phase(terms.round, f"advertise keys/{terms.purpose}"):
            session.conversation.send_ahead(SERVER, advert, terms.round)

    def forget_ahead(self) -> None:
        """Forget what was advertised: the server has gone on without this client."""
        if self._session is not None:
            self._session.forget_ahead()

    def _parameters(self, terms: SumTerms[Layout]) -> SumParameters:
        return parameters_for(len(terms.participants), len(self._clients), self._model, self._min_survivors)

    def contribute(
        self,
        session: ClientSession,
        terms: SumTerms[Layout],
        vector: GroupVector,
        more_masks: Sequence[bytes] = (),
        may_open: MayOpen | None = None,
        carry: Carry | None = None,
    ) -> Spent:
        """Send `vector`, masked in place, to a sum that is prepared, and help to open it; the time it took in all.

        `more_masks`: keys of masks that stay on the sum. `may_open`: asked before this client helps to open it.
        `carry`: how the input travels, if not by itself.
        """
        try:
            running, spent = self._running.pop(terms.key)
        except KeyError:
            raise RuntimeError("prepare() comes first") from None
        step = _Steps(session, terms, running, spent, self._refusals)
        with step.or_abort():
            with step.phase("share keys"):
                shares = step.receive(EncryptedShares)
            step.answer("share keys", shares)
            message = step.input(vector, more_masks, carry)
            with step.phase("masked input"):
                session.send(message, terms.round)
                survivors = step.receive(Survivors)
            if self._credentials is None:
                step.answer("unmasking", survivors, may_open)
            else:
                step.answer("consistency check", survivors, may_open)
                with step.phase("consistency check"):
                    signed = step.receive(SignedSurvivors)
                step.answer("unmasking", signed)
        self._refusals.helped(terms.purpose)
        return spent

    def _forget_before(self, round_id: RoundId) -> None:
        """Forget sums of earlier rounds that were prepared and then abandoned."""
        for key in [key for key in self._running if key[0] < round_id]:
            self._running.pop(key)[0].abort("abandoned")


class _Steps:
    """A client's answers in one sum, and the time they took."""

    def __init__(
        self,
        session: ClientSession,
        terms: SumTerms[Layout],
        running: SecAggClient,
        spent: Spent,
        refusals: Refusals,
    ) -> None:
        self._session, self._terms, self._running, self._spent = session, terms, running, spent
        self._refusals = refusals

    def phase(self, step: str) -> AbstractContextManager[None]:
        return self._session.phase(self._terms.round, f"{step}/{self._terms.purpose}")

    def receive(self, expected: type[wire.M]) -> wire.M:
        return self._session.receive(expected, self._terms.round, self._terms.purpose)

    def input(self, vector: GroupVector, more_masks: Sequence[bytes], carry: Carry | None) -> wire.Message:
        with self._refusing(), self._spent.measure():
            masked = self._running.set_input(vector, more_masks)
            return masked if carry is None else carry(masked)

    def answer(self, step: str, message: wire.Message, may_open: MayOpen | None = None) -> None:
        with self._refusing(), self._spent.measure():
            if may_open is not None and isinstance(message, Survivors):
                missing = self._running.missing_with(message)
                may_open(missing)
                if isinstance(may_open, NotedOpening):
                    self._running.require_announced(message)
                    may_open.note(missing)
            answer = self._running.receive(message)
        if answer is not None:
            with self.phase(step):
                self._session.send(answer, self._terms.round)

    @contextmanager
    def or_abort(self) -> Iterator[None]:
        """Whatever goes wrong in the block ends the sum for this client, and none of its secrets is kept."""
        try:
            yield
        except ProtocolError as problem:
            self._running.abort(str(problem))
            raise

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """A client that must not help to open the sum says so: the server need not wait."""
        try:
            yield
        except PeersRefused as problem:
            self._refusals.say(self._session, *self._terms.key, problem)
            raise
        except SumAbandoned as problem:
            self._session.send(Abandon(self._terms.purpose, str(problem)[:MAX_REASON]), self._terms.round)
            raise


class VectorServer:
    """Number of `clients`, `model` and `min_survivors` must be those of the clients: others would refuse to answer."""

    def __init__(self, clients: int, model: ThreatModel, min_survivors: int = 2) -> None:
        self.unmasking = Spent()
        """Time that the server has spent on the sums so far."""
        self._clients, self._model, self._min_survivors = clients, model, min_survivors
        self._transcript: bytes | None = None
        self._channels: frozenset[PartyId] = frozenset()
        self._running: dict[SumKey, SecAggServer] = {}

    @property
    def channels(self) -> frozenset[PartyId]:
        """The clients that have channels to each other: no others can take part in this session's sums."""
        return self._channels

    def setup(self, session: ServerSession) -> None:
        step, present, talk = "advertise channel", session.present, session.conversation
        with session.phase(SETUP, step):
            adverts = dict(session.gather_each(present, AdvertiseChannel, SETUP, step))
            keys = {party: advert.channel_key for party, advert in sorted(adverts.items())}
            signatures = {int(party): advert.signature for party, advert in sorted(adverts.items())}
            directory = ChannelDirectory({int(party): key for party, key in keys.items()}, signatures)
            lost = talk.deliver(dict.fromkeys(adverts, directory), SETUP)
        session.dropout((present - adverts.keys()) | lost, step)
        self._channels = frozenset(adverts)
        self._transcript = talk.setup = setup_transcript(talk.session, keys, talk.greeting)

    def prepare(self, session: ServerSession, terms: SumTerms[Layout]) -> None:
        """The counterpart of `VectorClient.prepare`, with those of the participants that are present."""
        if self._transcript is None:
            raise RuntimeError("setup() comes first")
        self._running = {key: running for key, running in self._running.items() if key[0] >= terms.round}
        parameters = parameters_for(len(terms.participants), self._clients, self._model, self._min_survivors)
        bound = BoundTerms(session.conversation.session, self._transcript, parameters, terms)
        layout = terms.layout
        session.conversation.admit(masked_input_bytes(terms.purpose, *layout.group.on_wire(layout.entries)))
        running = SecAggServer(bound, session.present & self._channels, signed=self._model.server == "active")
        while running.step in (Step.ADVERTISE_KEYS, Step.SHARE_KEYS):
            self._step(running, session, terms)
        self._running[terms.key] = running

    def collect(
        self, session: ServerSession, terms: SumTerms[Layout], carried: CarriedInputs | None = None
    ) -> VectorTotal:
        """Add up the vectors of those who are still present; `SumAbandoned` if they are too few.

        `carried`: how to read inputs that do not travel by themselves.
        """
        try:
            running = self._running.pop(terms.key)
        except KeyError:
            raise RuntimeError("prepare() comes first") from None
        running.drop(running.awaited - session.present)
        while running.step is not Step.DONE:
            self._step(running, session, terms, carried if running.step is Step.MASKED_INPUT else None)
        return VectorTotal(running.total(), running.survivors)

    def _step(
        self,
        running: SecAggServer,
        session: ServerSession,
        terms: SumTerms[Layout],
        carried: CarriedInputs | None = None,
    ) -> None:
        """Take the answers of one step as they arrive, end it, and send everybody the next message."""
        step = f"{running.step.value}/{terms.purpose}"
        with session.phase(terms.round, step):
            expected = EXPECTED[running.step] if carried is None else carried.expected
            for party, message in session.gather_each(running.awaited, expected, terms.round, step, terms.purpose):
                with session.bearing(party), self.unmasking.measure():
                    running.receive(party, message if carried is None else carried.read(party, message))
                del message  # before the next one arrives
                running.require_open()
            session.dropout(running.missing, step)
            with self.unmasking.measure():
                messages: Mapping[PartyId, wire.Message] = running.close()
            if running.step in (Step.CONSISTENCY_CHECK, Step.UNMASKING):
                session.on_opening()
            if lost := session.conversation.deliver(dict(messages), terms.round):
                running.drop(lost)
                session.dropout(lost, step)
