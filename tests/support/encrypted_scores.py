"""The ciphers of encrypted scores with keys that tests can afford, and clients that drop out or bend what they send."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from protocols.foundation import wire
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.primitives.group import GroupVector
from protocols.registry import SCORES, encrypted_scores
from protocols.scores.encrypted.bfv import BfvScheme
from protocols.scores.encrypted.disclosure import PAILLIER_SCORES
from protocols.scores.encrypted.layout import EncryptedLayout
from protocols.scores.encrypted.paillier import PACKAGES, PaillierScheme
from protocols.scores.encrypted.paillier_keys import KeySize
from protocols.scores.encrypted.scheme import Scheme
from protocols.session.conversation import Conversation
from tests.support.score_batches import Wrap, terms_of
from tests.support.sum_conversations import Stopped

SHORT_KEYS = KeySize(1024, for_tests=True)
SMALL_PAILLIER = "paillier with short keys"
BACKENDS = [SMALL_PAILLIER, "bfv"]
SCHEMES: dict[str, Callable[[], Scheme]] = {
    SMALL_PAILLIER: lambda: PaillierScheme(SHORT_KEYS),
    "bfv": BfvScheme,
}


@contextmanager
def small_paillier() -> Iterator[None]:
    """Paillier's backend under another name, with keys too short for anything but tests."""
    SCORES.register(encrypted_scores(SMALL_PAILLIER, SCHEMES[SMALL_PAILLIER], PACKAGES, PAILLIER_SCORES))
    try:
        yield
    finally:
        SCORES.unregister(SMALL_PAILLIER)


def layout_of(scheme: Scheme, clients: int = 5, positions: int = 40, queries: int = 1) -> EncryptedLayout:
    return EncryptedLayout(terms_of(clients, positions, queries=queries), scheme.group)


def uniform(layout: EncryptedLayout, seed: int) -> GroupVector:
    """A vector as masked ones are."""
    vector: GroupVector = np.random.default_rng(seed).integers(0, layout.modulus, layout.entries, dtype=np.uint32)
    return vector


def sum_of(layout: EncryptedLayout, *vectors: GroupVector) -> GroupVector:
    total = layout.group.zeros(layout.entries)
    for vector in vectors:
        layout.group.add_into(total, vector)
    return total


class Bent(Conversation):
    """An end that changes what it sends. `bend`: the message and its round as they are sent; `Stopped` ends it."""

    def __init__(self, inner: Conversation, bend: Callable[[Any, RoundId], wire.Message]) -> None:
        super().__init__(inner.transport, inner.session, inner.greeting)
        self.setup = inner.setup
        self._bend = bend

    def send(self, to: PartyId, message: wire.Message, round_id: RoundId) -> None:
        super().send(to, self._bend(message, round_id), round_id)

    def broadcast(self, to: Any, message: wire.Message, round_id: RoundId) -> set[PartyId]:
        return super().broadcast(to, self._bend(message, round_id), round_id)


def bending(kind: type[wire.Message], change: Callable[[Any], wire.Message]) -> Wrap:
    """Messages of one kind are changed."""
    return lambda inner: Bent(inner, lambda message, _: change(message) if isinstance(message, kind) else message)


def stopping(kind: type[wire.Message], purpose: str) -> Wrap:
    """Gone for good instead of the first message of one kind and purpose."""

    def stop(message: Any) -> wire.Message:
        if message.purpose == purpose:
            raise Stopped
        return message  # type: ignore[no-any-return]

    return bending(kind, stop)
