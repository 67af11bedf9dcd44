"""Parties of a batch of queries that fall silent, change what they say, or keep what they heard."""

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.session.conversation import Abandon, Conversation, M
from tests.support.score_batches import Wrap
from tests.support.sum_conversations import Bend, Bent, Foreseen, Stopped

Lie: TypeAlias = Callable[[PartyId, wire.Message, RoundId], wire.Message]
"""What a server sends a party in place of a message."""


def bending(bend: Bend) -> Wrap:
    """A client whose every message passes through `bend`."""

    def wrap(conversation: Conversation) -> Conversation:
        return Bent(conversation, bend)

    return wrap


def falling_silent(kind: type[wire.Message], purpose: str, after: int = 0) -> Wrap:
    """A client that says nothing any more from its message of this kind on that comes after so many others of it."""
    said = 0

    def bend(message: wire.Message, round_id: RoundId) -> wire.Message:
        nonlocal said
        if isinstance(message, kind) and getattr(message, "purpose", "") == purpose:
            said += 1
            if said > after:
                raise Stopped
        return message

    return bending(bend)


class SilentAfter(Foreseen):
    """Knows of one party that it will not answer a step any more once it has answered it so many times."""

    def __init__(self, step: str, party: PartyId, answers: int) -> None:
        super().__init__()
        self._awaited, self._answers = (step, party), answers

    def limit(self, step: str, party: PartyId, answered: Sequence[float], asked: int) -> float:
        gone = (step, party) == self._awaited and self._answers <= 0
        return 0.0 if gone else super().limit(step, party, answered, asked)

    def note(self, step: str, party: PartyId, seconds: float) -> None:
        self._answers -= (step, party) == self._awaited
        super().note(step, party, seconds)


def refusing_once(purpose: str, at: int) -> Wrap:
    """A client that gives its first round up, in place of its message of that number."""
    said = 0

    def bend(message: wire.Message, round_id: RoundId) -> wire.Message:
        nonlocal said
        if round_id == 1 and getattr(message, "purpose", "") == purpose:
            said += 1
            if said == at:
                return Abandon(purpose, "a test")
        return message

    return bending(bend)


class LyingServer(Conversation):
    """A server's conversation in which everything that it sends is what `lie` makes of it."""

    def __init__(self, straight: Conversation, lie: Lie) -> None:
        super().__init__(straight.transport, straight.session)
        self.setup = straight.setup
        self._lie = lie

    def send(self, to: PartyId, message: wire.Message, round_id: RoundId) -> None:
        super().send(to, self._lie(to, message, round_id), round_id)

    def broadcast(self, to: Collection[PartyId], message: wire.Message, round_id: RoundId) -> set[PartyId]:
        lost = set[PartyId]()
        for party in sorted(to):
            lost |= super().broadcast([party], self._lie(party, message, round_id), round_id)
        return lost


def lying(lie: Lie) -> Wrap:
    def wrap(conversation: Conversation) -> Conversation:
        return LyingServer(conversation, lie)

    return wrap


def about(kind: type[M], change: Callable[[PartyId, M], wire.Message]) -> Lie:
    """Honest but for messages of one kind."""
    return lambda party, message, round_id: change(party, message) if isinstance(message, kind) else message


def hearing(kept: list[tuple[PartyId, RoundId, wire.Message]]) -> Lie:
    """An honest server that keeps what it sends."""

    def note(party: PartyId, message: wire.Message, round_id: RoundId) -> wire.Message:
        kept.append((party, round_id, message))
        return message

    return note
