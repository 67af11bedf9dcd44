"""Messages before a session of questions begins. They travel outside of any session, and say nothing of a question."""

from typing import Final

from protocols.foundation import wire
from protocols.foundation.identifiers import SESSION_BYTES
from protocols.session.site_keys import SIGNATURE_BYTES

MOST_STATEMENT_BYTES: Final = 2048


@wire.message(0x1101)
class Attend(wire.Message, frozen=True):
    """Member to server: I am here, and sessions of others can begin with me. Nothing follows before one does."""


@wire.message(0x1102)
class AskSession(wire.Message, frozen=True):
    """Member to server: I am here, and ask for a session. Nothing follows before one begins."""

    answers: bool
    """Whether sessions of others can begin with me until then."""
    statement: bytes
    """As `secure_kg.queries.sessions.statement` writes it."""
    signature: bytes

    def __post_init__(self) -> None:
        require_signed(self.statement, self.signature)


@wire.message(0x1103)
class BeginSession(wire.Message, frozen=True):
    """Server to the asker and to those who answer: a session begins, in which this is the next message."""

    session: bytes
    statement: bytes
    signature: bytes

    def __post_init__(self) -> None:
        wire.require(len(self.session) == SESSION_BYTES and any(self.session), "no number of a session")
        require_signed(self.statement, self.signature)


def require_signed(statement: bytes, signature: bytes) -> None:
    wire.require(0 < len(statement) <= MOST_STATEMENT_BYTES, "a statement of another length")
    wire.require(len(signature) == SIGNATURE_BYTES, "a signature of another length")
