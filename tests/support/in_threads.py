"""Parties as threads over an `InProcessNetwork`; what one of them raises fails the test."""

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import PartyId, SessionId
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience
from protocols.session.server_session import OnDropout, ServerSession
from protocols.transport.in_process import InProcessNetwork

SESSION = SessionId(bytes(range(16)))
PATIENCE = 20.0
"""Seconds until a test that hangs fails; nothing that passes waits for it."""

SHORT = 0.05
"""Seconds for a deadline that is meant to pass; whatever should arrive before it is already there."""

Part = Callable[[Conversation], Any]


def soon() -> Deadline:
    """A deadline that is meant to be met."""
    return Deadline.after(PATIENCE)


def at_once(conversation: Conversation) -> ClientSession:
    """A client's session whose deadline is meant to be met."""
    return ClientSession(conversation, soon())


def at_server(
    conversation: Conversation,
    present: Collection[PartyId] | None = None,
    patience: Patience | None = None,
    on_dropout: OnDropout | None = None,
) -> ServerSession:
    """The server's session with those `present`, or everybody. Each call begins with all of them again."""
    attending = set(conversation.transport.peers if present is None else present)
    return ServerSession(conversation, attending, patience or Patience.fixed(PATIENCE), on_dropout or _unexpected)


def _unexpected(parties: Collection[PartyId], step: str) -> None:
    raise AssertionError(f"{parties} dropped out in '{step}'")


def meeting(parties: int) -> Callable[[], object]:
    """A point that none of `parties` threads passes before all have reached it."""
    barrier = Barrier(parties)
    return lambda: barrier.wait(PATIENCE)


def converse(parts: Mapping[PartyId, Part]) -> dict[PartyId, Any]:
    """Run every party's part at once, each on its own end; their results, or all that they raised."""
    network = InProcessNetwork(clients=max(parts))
    with ThreadPoolExecutor(len(parts)) as pool:
        running = {
            party: pool.submit(part, Conversation(network.endpoint(party), SESSION)) for party, part in parts.items()
        }
    problems = [problem for future in running.values() if isinstance(problem := future.exception(), Exception)]
    if problems:
        raise ExceptionGroup("parties failed", problems)
    return {party: future.result() for party, future in running.items()}
