"""Asking clients one after the other until one of them has done what only one has to do."""

from collections.abc import Callable, Collection
from typing import TypeAlias, TypeVar

from protocols.foundation import wire
from protocols.foundation.errors import PeerLost, ProtocolError
from protocols.foundation.identifiers import SETUP, PartyId
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience

M = TypeVar("M", bound=wire.Message)
Silent: TypeAlias = Callable[[Collection[PartyId], str], None]
"""Called with parties that did not answer a step in time, and the name of the step."""


def ask_in_turn(
    conversation: Conversation,
    present: Collection[PartyId],
    request: wire.Message,
    expected: type[M],
    patience: Patience,
    silent: Silent,
    step: str,
) -> tuple[PartyId, M]:
    """Who has answered, and what: the lowest number that does. Those asked in vain are reported as silent."""
    for party in sorted(present):
        patience.note(step, party, 0.0)  # next to no work, and nobody to compare with: it has its grace, no longer
        try:
            conversation.send(party, request, SETUP)
            for _, answer in conversation.gather_each([party], expected, SETUP, patience, step):
                return party, answer
        except PeerLost:
            pass
        silent({party}, step)
    raise ProtocolError(f"no client is left for the step '{step}'")
