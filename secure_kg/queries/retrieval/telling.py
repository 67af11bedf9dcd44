"""A client that cannot go on says so; free of torch, so that a mistake in a file or an option is told at once."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from protocols.foundation.errors import Aborted, ProtocolError
from protocols.foundation.identifiers import SERVER, SETUP
from protocols.session.conversation import MAX_REASON, Conversation, Failed
from secure_kg.foundation.errors import InternalError, UserError


@contextmanager
def telling(conversation: Conversation) -> Iterator[None]:
    """Whoever cannot go on tells the server why, and then nobody waits for it any longer. The problem is raised."""
    try:
        yield
    except Aborted:  # the server knows
        raise
    except Exception as problem:
        told = isinstance(problem, ProtocolError | UserError | InternalError)
        reason = str(problem) if told else "an error in its program"
        with suppress(ProtocolError):  # a server that takes no messages cannot be told
            conversation.send(SERVER, Failed(reason[:MAX_REASON]), SETUP)
        raise
