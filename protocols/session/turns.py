"""Work that one client does for all: clients are asked one after the other until one answers."""

from collections.abc import Callable
from typing import TypeVar

from protocols.foundation import wire
from protocols.foundation.errors import PeerLost, ProtocolError
from protocols.foundation.identifiers import SETUP, PartyId
from protocols.session.server_session import ServerSession

M = TypeVar("M", bound=wire.Message)


def ask_in_turn(
    session: ServerSession,
    request: wire.Message,
    expected: type[M],
    step: str,
    check: Callable[[PartyId, M], None] = lambda party, answer: None,
) -> tuple[PartyId, M]:
    """The first client to answer, by number, and its answer. Those that did not answer are reported as dropouts.

    `check`: raises `PeerMisbehaved` for an answer that is none.
    """
    for party in sorted(session.present):
        session.patience.note(step, party, 0.0)  # next to no work, and nobody to compare with: it has its grace only
        try:
            session.conversation.send(party, request, SETUP)
            for _, answer in session.gather_each([party], expected, SETUP, step):
                with session.bearing(party):
                    check(party, answer)
                    return party, answer
        except PeerLost:
            pass
        session.dropout({party}, step)
    raise ProtocolError(f"no client is left for the step '{step}'")
