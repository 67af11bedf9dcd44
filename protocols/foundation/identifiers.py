"""Names for parties, sessions and rounds, so that an integer of one kind is not taken for another."""

import secrets
from typing import NewType

PartyId = NewType("PartyId", int)
"""0 is the server, clients are numbered from 1."""

RoundId = NewType("RoundId", int)
"""0 is the set-up, training rounds are numbered from 1."""

SessionId = NewType("SessionId", bytes)
"""16 random bytes; fresh for every start of a job, a resumed one too."""

SERVER = PartyId(0)
SETUP = RoundId(0)
SESSION_BYTES = 16
NO_SESSION = SessionId(bytes(SESSION_BYTES))
"""Used only by the greeting that precedes the session."""


def new_session() -> SessionId:
    return SessionId(secrets.token_bytes(SESSION_BYTES))
