"""A client that cannot go on says so; free of torch, so that a mistake in a file or an option is told at once.

What goes wrong in a client's own work depends on what it has: how it fails could tell an asker, or a server, of its
rows, its relations or its records. Others then read one and the same sentence, and its own console says more. What a
peer has done wrong, which all clients see alike, is told in words.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from protocols.foundation.errors import Aborted, EncodingOverflow, ProtocolError
from protocols.foundation.identifiers import SERVER, SETUP
from protocols.session.conversation import MAX_REASON, Conversation, Failed
from secure_kg.foundation.errors import DataError, InternalError, UserError

OWN_WORK: Final = "it cannot go on, for a reason that its own console tells"


def is_own(problem: BaseException) -> bool:
    """Whether it lies in what a client does by itself, and no peer is to blame."""
    return isinstance(problem, EncodingOverflow) or not isinstance(problem, ProtocolError)


@contextmanager
def telling(conversation: Conversation, *, before: bool = False) -> Iterator[None]:
    """Whoever cannot go on says so to the server, and then nobody waits for it any longer. The problem is raised.

    `before`: before anything was asked, a mistake in a file or an option is told in words. No peer can bring it about.
    What is wrong with a client's data is not: names of their files may tell of it.
    """
    try:
        yield
    except Aborted:  # the server knows
        raise
    except Exception as problem:
        early = before and isinstance(problem, UserError | InternalError) and not isinstance(problem, DataError)
        told = early or not is_own(problem)
        reason = str(problem) if told else OWN_WORK
        with suppress(ProtocolError):  # a server that takes no messages cannot be told
            conversation.send(SERVER, Failed(reason[:MAX_REASON]), SETUP)
        raise
