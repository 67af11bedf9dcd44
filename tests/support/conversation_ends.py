"""The two sides of a conversation over an in-process network, and all ways of listening."""

from collections.abc import Callable, Collection
from typing import Any

import pytest

from protocols.alignment.plain import ClearNames
from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import (
    PeerLost,
)
from protocols.foundation.identifiers import SERVER, PartyId, RoundId, SessionId
from protocols.foundation.wire import Frame
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience
from protocols.transport.in_process import InProcessNetwork, InProcessTransport
from tests.support.in_threads import PATIENCE, soon

SESSION = SessionId(bytes(range(16)))
ONE, TWO, THREE = PartyId(1), PartyId(2), PartyId(3)
CLIENTS = [ONE, TWO, THREE]
PAST = Deadline(0.0)
ROUND = RoundId(5)
STEP = "names"
UNHURRIED = Patience.fixed(PATIENCE)
NOW = Patience.fixed(0.0)
"""Takes what is there and waits for nothing."""


def names(*values: str) -> ClearNames:
    return ClearNames(list(values))


class Fragile(InProcessTransport):
    """An end that shows what MPI shows of a peer that dies: one no longer takes messages, or stops within one."""

    def __init__(self, network: InProcessNetwork) -> None:
        super().__init__(network, SERVER, CLIENTS)
        self.deaf: set[PartyId] = set()
        self.full: set[PartyId] = set()

    def busy(self, to: PartyId) -> bool:
        return to in self.full

    def _post(self, to: PartyId, frame: Frame) -> None:
        if to in self.deaf:
            raise PeerLost(f"client {to} can no longer be reached", to)
        super()._post(to, frame)

    def _take(self, senders: Collection[PartyId], deadline: Deadline) -> tuple[PartyId, Frame] | None:
        taken = super()._take(senders, deadline)
        if taken is not None and taken[1] == CUT_OFF:
            raise PeerLost(f"client {taken[0]} stopped in the middle of a message", taken[0])
        return taken


CUT_OFF = b"cut off"


class Ends:
    """The server's end and the clients' ends of one session; what is sent is there at once, so PAST is never early."""

    def __init__(self) -> None:
        network = InProcessNetwork(3)
        self.wire = Fragile(network)
        self.server = Conversation(self.wire, SESSION)
        self.clients = {party: Conversation(network.endpoint(party), SESSION) for party in CLIENTS}

    def say(self, party: PartyId, message: wire.Message, round_id: int = ROUND) -> None:
        self.clients[party].send(SERVER, message, RoundId(round_id))

    def say_bytes(self, party: PartyId, frame: wire.Frame) -> None:
        self.clients[party].transport.send(SERVER, frame)


Listen = Callable[[Conversation], Any]
LISTENING: dict[str, Listen] = {
    "receive": lambda server: server.receive(ONE, ClearNames, ROUND, PAST),
    "receive_any": lambda server: server.receive_any(ONE, ROUND, PAST),
    "gather": lambda server: server.gather([ONE, TWO], ClearNames, ROUND, PAST),
    "gather_all": lambda server: server.gather_all([ONE], ClearNames, ROUND, PAST),
    "gather_each": lambda server: dict(server.gather_each([ONE, TWO], ClearNames, ROUND, NOW, STEP)),
}
HEARING: dict[str, Listen] = {
    "receive": lambda server: server.receive(ONE, ClearNames, ROUND, soon()),
    "receive_any": lambda server: server.receive_any(ONE, ROUND, soon()),
    "gather": lambda server: server.gather([ONE], ClearNames, ROUND, soon()),
    "gather_all": lambda server: server.gather_all([ONE], ClearNames, ROUND, soon()),
    "gather_each": lambda server: dict(server.gather_each([ONE], ClearNames, ROUND, UNHURRIED, STEP)),
}
"""With time left: what is late is dropped only as long as there is some."""
every_hearing = pytest.mark.parametrize("listen", HEARING.values(), ids=HEARING)
typed_way = pytest.mark.parametrize("way", ["receive", "gather", "gather_all", "gather_each"])


def waiting(client: Conversation) -> object:
    return client.receive(SERVER, ClearNames, ROUND, soon(), "rows")
