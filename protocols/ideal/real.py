"""Real sessions in one process, and what their server saw: the other half of every comparison with a simulator.

The parties are the ones of a real job, as threads over the in-process transport; only who drops out, and when, is
arranged. A client that is to drop out stops in place of the first message of that step, and the server does not wait
for it: whether somebody counts as a dropout never depends on how fast the machine is.
"""

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import SERVER, PartyId, RoundId, SessionId, new_session
from protocols.ideal.masked_sum import Silences
from protocols.ideal.views import View, ViewRecorder
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Conversation
from protocols.session.credentials import Credentials
from protocols.session.patience import Patience
from protocols.session.server_session import ServerSession
from protocols.sums.secagg.messages import MaskedInput
from protocols.sums.secagg.params import ThreatModel
from protocols.sums.secagg.server import EXPECTED, Step
from protocols.sums.secagg.vectors import VectorClient, VectorServer
from protocols.transport.in_process import InProcessNetwork
from protocols.transport.tap import Recorder

_LONGEST: Final = 120.0
"""Seconds until a session that hangs fails; nothing waits for it."""


def soon() -> Deadline:
    return Deadline.after(_LONGEST)


def at_once(conversation: Conversation) -> ClientSession:
    """A client's session for its next step."""
    return ClientSession(conversation, soon())


class _Stopped(Exception):
    """A client has dropped out for good."""


@dataclass(frozen=True)
class ServerSide:
    """What the server's part of a session is given."""

    session: ServerSession
    patience: "_Foreseen"
    """That of the session."""

    @classmethod
    def of(cls, conversation: Conversation, clients: Collection[PartyId]) -> "ServerSide":
        """Dropouts are out of the session, and nobody is told."""
        patience = _Foreseen()
        return cls(ServerSession(conversation, set(clients), patience, lambda parties, step: None), patience)

    def expect(self, purpose: str, silences: Silences) -> None:
        """Who will drop out in the sum that comes next."""
        self.patience.expected = {(f"{step.value}/{purpose}", party) for party, step in silences.items()}


class _Foreseen(Patience):
    def __init__(self) -> None:
        super().__init__(_LONGEST, _LONGEST)
        self.expected: set[tuple[str, PartyId]] = set()

    def limit(self, step: str, party: PartyId, answered: Sequence[float], asked: int) -> float:
        return 0.0 if (step, party) in self.expected else super().limit(step, party, answered, asked)


@dataclass(frozen=True)
class Falls:
    """Who drops out in the sums of a session, by round and purpose."""

    of: Mapping[tuple[RoundId, str], Silences] = field(default_factory=dict)
    carrier: type[wire.Message] = MaskedInput
    """What clients send as their inputs."""

    def at(self, round_id: RoundId, purpose: str) -> Silences:
        return self.of.get((round_id, purpose), {})


class _Falling(Conversation):
    """A client's conversation that ends where the client is to drop out."""

    def __init__(self, straight: Conversation, falls: Falls) -> None:
        super().__init__(straight.transport, straight.session)
        self._falls = falls

    def send(self, to: PartyId, message: wire.Message, round_id: RoundId) -> None:
        silences = self._falls.at(round_id, str(getattr(message, "purpose", "")))
        step = silences.get(self.transport.party)
        expected = {**EXPECTED, Step.MASKED_INPUT: self._falls.carrier}
        if step is not None and isinstance(message, expected[step]):
            raise _Stopped
        super().send(to, message, round_id)


ServerPart: TypeAlias = Callable[[ServerSide], None]
ClientPart: TypeAlias = Callable[[Conversation], None]


@dataclass(frozen=True)
class Parties:
    """The clients of a session and what they declare of their server."""

    clients: tuple[PartyId, ...]
    model: ThreatModel
    credentials: Mapping[PartyId, Credentials] | None = None

    @classmethod
    def of(cls, count: int, model: ThreatModel) -> "Parties":
        return cls(tuple(PartyId(number) for number in range(1, count + 1)), model)

    def vector_client(self, me: PartyId) -> VectorClient:
        own = None if self.credentials is None else self.credentials[me]
        return VectorClient(self.clients, self.model, credentials=own)

    def vector_server(self) -> VectorServer:
        return VectorServer(len(self.clients), self.model)

    def view(
        self, serve: ServerPart, take_part: ClientPart, falls: Falls | None = None, session: SessionId | None = None
    ) -> View:
        """One real session, and all frames at the server's end."""
        recorder = ViewRecorder()
        return recorder.view(self.record(recorder, serve, take_part, falls, session))

    def record(
        self,
        recorder: Recorder,
        serve: ServerPart,
        take_part: ClientPart,
        falls: Falls | None = None,
        session: SessionId | None = None,
    ) -> SessionId:
        """The same with any recorder; it is closed in the end. Raises what the parties have raised."""
        network = InProcessNetwork(max(self.clients))
        identifier = session if session is not None else new_session()

        def server() -> None:
            with network.endpoint(SERVER) as transport:
                transport.attach(recorder)
                serve(ServerSide.of(Conversation(transport, identifier), self.clients))

        def client(party: PartyId) -> None:
            straight = Conversation(network.endpoint(party), identifier)
            with contextlib.suppress(_Stopped):
                take_part(straight if falls is None else _Falling(straight, falls))

        with ThreadPoolExecutor(len(self.clients) + 1) as pool:
            running = [pool.submit(server), *(pool.submit(client, party) for party in self.clients)]
        problems = [problem for future in running if isinstance(problem := future.exception(), Exception)]
        if problems:
            raise ExceptionGroup("parties failed", problems)
        return identifier
