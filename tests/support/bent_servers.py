"""Servers of masked sums that tell clients something else than they should."""

from collections.abc import Callable
from typing import TypeAlias

import msgspec
import pytest

from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.session.conversation import Conversation
from tests.support.sum_conversations import (
    SECAGG,
    SIGNED,
    everyone,
    layout_for,
    random_inputs,
    task_of,
)

CLIENTS = everyone(4)
ONE, TWO, THREE, FOUR = CLIENTS
LAYOUT = layout_for(4)
TASK = task_of(LAYOUT, CLIENTS)
INPUTS = random_inputs(LAYOUT, CLIENTS)
PAST = Deadline(0.0)
SECURE = {"secagg": SECAGG, "signed": SIGNED}
both = pytest.mark.parametrize("twin", SECURE.values(), ids=SECURE)

Lie: TypeAlias = Callable[[PartyId, wire.Message], wire.Message]


class Lying(Conversation):
    """A server's conversation in which everything it sends is what `lie` makes of it."""

    def __init__(self, straight: Conversation, lie: Lie) -> None:
        super().__init__(straight.transport, straight.session)
        self.setup = straight.setup
        self._lie = lie

    def send(self, to: PartyId, message: wire.Message, round_id: RoundId) -> None:
        super().send(to, self._lie(to, message), round_id)


def changed(message: wire.Message, **fields: object) -> wire.Message:
    return msgspec.structs.replace(message, **fields)
