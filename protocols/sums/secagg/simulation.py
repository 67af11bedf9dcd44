"""One masked sum of 2 to 10,000 clients in one process: what it costs each party, step by step.

Parties:     the very objects of a real job (`SecAggSession`, `SecAggClient`, `SecAggServer`), one thread, no network.
             Every message becomes a frame of `protocols.foundation.wire` and is decoded again by its receiver.
Adversary:   none: everybody is honest, and clients drop out where they are told to.
Not covered: the network. Times are those of computing alone; (de)serialisation is measured apart from it.
Cost:        the sum of all parties' work. Memory is O(n k) for keys and shares and O(1) vectors: an input is made,
             masked, added by the server and dropped before the next client's.

The set-up is once per session and is reported apart from the sum: signing on, and agreeing on channels with this sum's
neighbours (a real client does that when a channel is first needed; here it is done, and timed, just before).
"""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

from protocols.foundation import wire
from protocols.foundation.identifiers import SETUP, PartyId, RoundId, new_session
from protocols.primitives.group import GroupVector
from protocols.primitives.identity import IdentityKey
from protocols.session.channels import setup_transcript
from protocols.session.credentials import Credentials
from protocols.session.messages import AdvertiseChannel, ChannelDirectory
from protocols.session.pair_secrets import PairSecrets
from protocols.sums.secagg.client import SecAggClient
from protocols.sums.secagg.messages import KeyDirectory
from protocols.sums.secagg.params import SumParameters, ThreatModel, complete_parameters, sparse_parameters
from protocols.sums.secagg.server import SecAggServer, Step
from protocols.sums.secagg.session import SecAggSession
from protocols.sums.secagg.step_costs import Spread, StepCost, Tally, measured
from protocols.sums.secagg.terms import BoundTerms
from protocols.sums.terms import SumTerms, VectorLayout

M = TypeVar("M", bound=wire.Message)
Inputs: TypeAlias = Callable[[PartyId], GroupVector]
"""A client's input, asked for right before it is masked. The array is overwritten."""
Progress: TypeAlias = Callable[[str, int, int], None]
"""Called outside all measurements with a step's name, how many clients have done it, and of how many."""

ROUND: Final = RoundId(1)
PURPOSE: Final = "simulation"


@dataclass(frozen=True, slots=True)
class SimulationResult:
    parameters: SumParameters
    layout: VectorLayout
    setup: StepCost
    steps: tuple[StepCost, ...]
    mask_seconds: Spread
    """The part of the step 'masked input' in which a client adds its masks."""
    expansions: int
    """How many keystreams of the sum's length the server removed."""
    survivors: frozenset[PartyId]
    total: GroupVector = field(repr=False)
    """The sum over `survivors`. Whether it is the right one is for the caller to check, who knows the inputs."""

    @property
    def client_seconds(self) -> float:
        """Of one client that stays to the end: the mean of each step, without set-up and serialisation."""
        return sum(step.client_seconds.mean for step in self.steps)

    @property
    def server_seconds(self) -> float:
        """Of the server for all clients, without set-up and serialisation."""
        return sum(step.server_seconds for step in self.steps)

    @property
    def client_bytes_up(self) -> float:
        """Of one client that stays to the end, without the set-up."""
        return sum(step.bytes_up.mean for step in self.steps)

    @property
    def client_bytes_down(self) -> float:
        return sum(step.bytes_down.mean for step in self.steps)


@dataclass(frozen=True, slots=True)
class Scenario:
    """Clients 1 to `clients` add up vectors, and some of them drop out."""

    clients: int
    layout: VectorLayout
    model: ThreatModel
    dropped: Mapping[Step, Collection[PartyId]] = field(default_factory=dict)
    """Who sends nothing in which step and from then on. `Step.MASKED_INPUT` costs the server most: it has to remove
    every mask that such a client shares."""
    parameters: SumParameters | None = None
    """Graph and threshold; None: those of a real job."""
    credentials: Mapping[PartyId, Credentials] | None = None
    """Made where they are needed, against an active server, unless given."""

    @property
    def parties(self) -> tuple[PartyId, ...]:
        return tuple(PartyId(number) for number in range(1, self.clients + 1))


def simulate(scenario: Scenario, inputs: Inputs, progress: Progress | None = None) -> SimulationResult:
    """One sum.

    Raises `ParametersRefused` for a declaration without parameters, `SumAbandoned` if more drop out than it allows.
    """
    if scenario.layout.entries < 1:
        raise ValueError(f"a sum of {scenario.layout.entries} entries")
    active = scenario.model.server == "active"
    parameters, credentials = scenario.parameters, scenario.credentials
    if parameters is None:
        parameters = (complete_parameters if active else sparse_parameters)(scenario.clients, scenario.model)
    if active and credentials is None:
        credentials = _identities(scenario.parties)
    return _Simulation(scenario, parameters, credentials, inputs, progress).run()


def _identities(parties: Collection[PartyId]) -> dict[PartyId, Credentials]:
    keys = {party: IdentityKey.generate() for party in parties}
    directory = {party: key.public for party, key in keys.items()}
    return {party: Credentials(key, directory) for party, key in keys.items()}


class _Simulation:
    def __init__(
        self,
        scenario: Scenario,
        parameters: SumParameters,
        credentials: Mapping[PartyId, Credentials] | None,
        inputs: Inputs,
        progress: Progress | None,
    ) -> None:
        self._parties, self._parameters, self._credentials = scenario.parties, parameters, credentials
        self._silent = {step: frozenset(who) for step, who in scenario.dropped.items()}
        self._terms = SumTerms(ROUND, PURPOSE, self._parties, scenario.layout)
        self._inputs = inputs
        self._progress: Progress = progress or (lambda _step, _done, _of: None)
        self._id = new_session()
        self._members = frozenset(self._parties)
        self._sessions: dict[PartyId, SecAggSession] = {}
        self._clients: dict[PartyId, SecAggClient] = {}
        self._inbox: dict[PartyId, wire.Frame] = {}
        self._setup = Tally("set-up")
        self._mask_seconds: defaultdict[PartyId, float] = defaultdict(float)
        self._directory: tuple[ChannelDirectory, float] | None = None

    def run(self) -> SimulationResult:
        channel_keys = self._sign_on()
        with measured(self._setup.server, "close"):
            transcript = setup_transcript(self._id, channel_keys)
        terms = BoundTerms(self._id, transcript, self._parameters, self._terms)
        server = SecAggServer(terms, self._members, signed=self._credentials is not None)
        costs: list[StepCost] = []
        shared: frozenset[PartyId] = frozenset()
        while server.step is not Step.DONE:
            sharing = server.step is Step.SHARE_KEYS
            costs.append(self._step(server))
            if sharing:
                shared = server.awaited
        lost = shared - server.survivors
        graph = terms.graph
        pairs = sum(len(server.survivors.intersection(graph.neighbours(party))) for party in lost)
        return SimulationResult(
            self._parameters,
            self._terms.layout,
            self._setup.cost(),
            tuple(costs),
            Spread.of(self._mask_seconds.values()),
            len(server.survivors) + pairs,
            server.survivors,
            server.total(),
        )

    def _sign_on(self) -> dict[PartyId, bytes]:
        """Everybody's channel key; the frame of the directory is in every inbox."""
        adverts: dict[PartyId, AdvertiseChannel] = {}
        for done, party in enumerate(self._parties, start=1):
            credentials = self._credentials[party] if self._credentials is not None else None
            with measured(self._setup.client, party):
                session = SecAggSession(party, self._members, self._id, credentials)
                advert = session.start()
            self._sessions[party] = session
            adverts[party] = self._up(self._setup, party, advert, SETUP)
            self._progress(self._setup.name, done, len(self._parties))
        with measured(self._setup.server, "close"):
            keys = {party: advert.channel_key for party, advert in adverts.items()}
            signatures = {int(party): advert.signature for party, advert in adverts.items()}
            directory = ChannelDirectory({int(party): key for party, key in keys.items()}, signatures)
        with measured(self._setup.server, "codec"):
            frame = wire.encode(directory, self._id, SETUP)
        self._setup.down = [len(frame)] * len(self._parties)
        self._inbox = dict.fromkeys(self._parties, frame)
        return keys

    def _step(self, server: SecAggServer) -> StepCost:
        step = server.step
        tally = Tally(step.value)
        silent = self._silent.get(step, frozenset())
        answering = sorted(server.awaited - silent)
        for party in silent:
            self._clients.pop(party, None)
        for done, party in enumerate(answering, start=1):
            answer = self._begin(tally, party) if step is Step.ADVERTISE_KEYS else self._answer(tally, party, step)
            message = self._up(tally, party, answer, ROUND)
            with measured(tally.server, "receive"):
                server.receive(party, message)
            self._progress(step.value, done, len(answering))
        with measured(tally.server, "close"):
            messages = server.close()
        self._inbox = {}
        while messages:
            party, message = messages.popitem()
            with measured(tally.server, "codec"):
                self._inbox[party] = wire.encode(message, self._id, ROUND)
            tally.down.append(len(self._inbox[party]))
        return tally.cost()

    def _begin(self, tally: Tally, party: PartyId) -> wire.Message:
        session = self._sessions.pop(party)
        directory = self._read_directory(party)
        with measured(self._setup.client, party):
            session.receive(directory)
        with measured(tally.client, party):
            client = session.begin(self._terms, self._parameters)
            advert = client.start()
        self._clients[party] = client
        return advert

    def _answer(self, tally: Tally, party: PartyId, step: Step) -> wire.Message:
        client = self._clients[party]
        with measured(tally.client_codec, party):
            message = wire.decode(self._inbox.pop(party), session=self._id).message
        if isinstance(message, KeyDirectory):
            with measured(self._setup.client, party):
                channels = _channels_of(client)
                for peer in message.mask_keys:
                    channels.secret(PartyId(peer))
        with measured(tally.client, party):
            answer = client.receive(message)
        if step is Step.MASKED_INPUT:
            vector = self._inputs(party)
            with measured(self._mask_seconds, party):
                answer = client.set_input(vector)
            tally.client[party] += self._mask_seconds[party]
        if answer is None:
            raise AssertionError(f"no answer in step '{step.value}'")
        return answer

    def _up(self, tally: Tally, party: PartyId, message: M, round_id: RoundId) -> M:
        """What the server reads from a client's message."""
        with measured(tally.client_codec, party):
            frame = wire.encode(message, self._id, round_id)
        tally.up.append(len(frame))
        with measured(tally.server, "codec"):
            read = wire.decode(frame, session=self._id).message
        if not isinstance(read, type(message)):
            raise AssertionError(f"{type(message).__name__} was read as {type(read).__name__}")
        return read

    def _read_directory(self, party: PartyId) -> ChannelDirectory:
        """The frame is the same for all and as long as there are clients: it is read once and counted for each."""
        frame = self._inbox.pop(party)
        if self._directory is None:
            started = time.perf_counter()
            message = wire.decode(frame, session=self._id).message
            if not isinstance(message, ChannelDirectory):
                raise AssertionError(f"the directory was read as {type(message).__name__}")
            self._directory = message, time.perf_counter() - started
        directory, seconds = self._directory
        self._setup.client_codec[party] += seconds
        return directory


def _channels_of(client: SecAggClient) -> PairSecrets:
    if client._channels is None:
        raise AssertionError("a client that has aborted")
    return client._channels
