"""A client's end of a session: its conversation with the server, and until when the current step may take."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TypeVar

from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.session.conversation import Conversation

M = TypeVar("M", bound=wire.Message)


@dataclass(frozen=True, slots=True)
class ClientSession:
    """What every protocol needs of a client's side."""

    conversation: Conversation
    deadline: Deadline
    """Of the step that the session is handed to."""

    @property
    def party(self) -> PartyId:
        """The client itself."""
        return self.conversation.transport.party

    def phase(self, round_id: RoundId, step: str) -> AbstractContextManager[None]:
        """Count the traffic of the block for this round and step."""
        return self.conversation.transport.phase(round_id, step)

    def send(self, message: wire.Message, round_id: RoundId) -> None:
        """Send `message` to the server."""
        self.conversation.send(SERVER, message, round_id)

    def receive(self, expected: type[M], round_id: RoundId, purpose: str | None = None) -> M:
        """The server's next message of this round, which must be an `expected`.

        `purpose`: the sum it belongs to; if that is abandoned instead, `SumAbandoned`.
        """
        return self.conversation.receive(SERVER, expected, round_id, self.deadline, purpose)
