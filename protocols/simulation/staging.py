"""The stage of a simulation: clients by number, dropouts that nobody has to wait for, and a record of what arrives."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

import numpy as np

from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import PartyId, RoundId, SessionId
from protocols.primitives.group import GroupVector
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience
from protocols.session.server_session import ServerSession
from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import MaskedInput
from protocols.sums.secagg.params import ParametersRefused, ThreatModel
from protocols.transport.traffic import Direction

USUAL_THREAT: Final = ThreatModel(corrupt=0.25, dropout=0.4)
"""As in the launchers: a quarter of the clients on the server's side, two fifths may drop out."""
_SECONDS: Final = 60.0
"""Until a simulation that hangs is given up. No step comes near."""


class DroppedOut(Exception):
    """A client of the simulation has left, as it was told to."""


class Foreseen(Patience):
    """Patience with everybody but those who are known to leave, for whom nobody waits."""

    def __init__(self, leaving: Collection[PartyId]) -> None:
        super().__init__(_SECONDS, _SECONDS)
        self._leaving = frozenset(leaving)
        self.begun = False
        """Whether they have left."""

    def limit(self, step: str, party: PartyId, answered: Sequence[float], asked: int) -> float:
        if self.begun and party in self._leaving:
            return 0.0
        return super().limit(step, party, answered, asked)


class ReceivedInputs:
    """A recorder at the server's end that keeps the input of each client as it arrived: in clear, or masked."""

    def __init__(self, session: SessionId) -> None:
        self._session = session
        self.inputs: dict[int, GroupVector] = {}

    def write(self, direction: Direction, peer: PartyId, round_id: RoundId, phase: str, frame: wire.Frame) -> None:
        if direction == "received" and wire.kind_of(frame) in (ClearInput, MaskedInput):
            message = wire.decode(frame, session=self._session).message
            if isinstance(message, ClearInput | MaskedInput):
                self.inputs[int(peer)] = np.array(message.vector)

    def close(self) -> None:
        """Nothing to release."""


def numbered(clients: Iterable[int]) -> tuple[PartyId, ...]:
    """The clients of a simulation, which are numbered from 1 without a gap."""
    found = sorted(clients)
    if not found or found != list(range(1, len(found) + 1)):
        raise ParametersRefused("clients of a simulation are numbered from 1, without a gap")
    return tuple(PartyId(number) for number in found)


def at_server(conversation: Conversation, clients: Collection[PartyId], patience: Patience) -> ServerSession:
    """The server's session with all clients; dropouts leave it."""
    return ServerSession(conversation, set(clients), patience, lambda parties, step: None)


def at_client(conversation: Conversation) -> ClientSession:
    """A client's session for its next step."""
    return ClientSession(conversation, Deadline.after(_SECONDS))
