"""The union in clear: twin of a private set union. The server sees each client's names, and so who holds what.

Parties:     n clients, 1 server.
Adversary:   none.
Reveals:     every client's names, to the server; the size of the union and the positions of its own names, to a client.
Assumes:     authentic channels.
Not covered: any privacy of names.
Reference:   FedR (Zhang et al., Findings of EMNLP 2022), algorithm 1, line 1.
Deviations:  in clear, where the paper assumes a private set union.
"""

from collections.abc import Collection
from typing import Any

import numpy as np

from protocols import wire
from protocols.conversation import Conversation
from protocols.errors import PeerMisbehaved
from protocols.identifiers import SERVER, SETUP, PartyId
from protocols.patience import Patience
from protocols.sums import Silent
from protocols.transport.deadline import Deadline
from protocols.unions import Positions


@wire.message(0x0211)
class ClearNames(wire.Message, frozen=True):
    """Client to server: the client's own names."""

    names: list[str]

    def __post_init__(self) -> None:
        wire.require(len(set(self.names)) == len(self.names), "a name stands twice")


@wire.message(0x0212)
class ClearPositions(wire.Message, frozen=True):
    """Server to client: where the client's names stand in the union, in the order they were sent."""

    union_size: int
    positions: np.ndarray[Any, Any]

    def __post_init__(self) -> None:
        wire.require_array(self.positions, "<i8", ndim=1)


def join(conversation: Conversation, names: Collection[str], deadline: Deadline) -> Positions:
    """The client's side."""
    with conversation.transport.phase(SETUP, "union"):
        conversation.send(SERVER, ClearNames(list(names)), SETUP)
        answer = conversation.receive(SERVER, ClearPositions, SETUP, deadline)
    return Positions.checked(answer.union_size, answer.positions, len(names))


def serve(conversation: Conversation, present: Collection[PartyId], patience: Patience, silent: Silent) -> int:
    """The server's side; returns the size of the union of those who answered."""
    step = "union"
    with conversation.transport.phase(SETUP, step):
        lists = dict(conversation.gather_each(present, ClearNames, SETUP, patience, step))
        if missing := set(present) - lists.keys():
            silent(missing, step)
        union = sorted({name for answer in lists.values() for name in answer.names})
        if not union:
            raise PeerMisbehaved("no client has any name to align")
        position = {name: index for index, name in enumerate(union)}
        answers = {
            party: ClearPositions(len(union), np.array([position[name] for name in answer.names], dtype=np.int64))
            for party, answer in lists.items()
        }
        if lost := conversation.deliver(answers, SETUP):
            silent(lost, step)
    return len(union)
