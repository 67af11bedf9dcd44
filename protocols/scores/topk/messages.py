"""The messages of a selection: dealt seeds, and one exchange between all clients per step, through the server."""

from typing import Final

from protocols.foundation import wire
from protocols.primitives.prg import KEY_BYTES
from protocols.session.conversation import MAX_PURPOSE

MOST_NUMBERS: Final = 4


@wire.message(0x0441)
class DealtSeed(wire.Message, frozen=True):
    """Server to client: the seed of its part of the randomness of this batch. For this client's eyes only."""

    purpose: str
    seed: bytes

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        wire.require(len(self.seed) == KEY_BYTES, "seed of wrong length")


@wire.message(0x0442, wire.MAX_FRAME_BYTES)
class SelectionStep(wire.Message, frozen=True):
    """Client to server: what it tells the others in one step, and which randomness the step takes."""

    purpose: str
    step: int
    deal: list[int]
    """Kind and sizes of the randomness (`protocols.scores.topk.dealing`); the same from all clients."""
    to_all: bytes
    """Sealed for all other clients; may be empty."""
    to_one: dict[int, bytes]
    """Sealed for one client each."""

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        wire.require(self.step > 0, "a step that is none")
        wire.require(len(self.deal) <= MOST_NUMBERS, "too many numbers")
        wire.require(all(number >= 0 for number in self.deal), "a negative number")
        wire.require(all(party > 0 for party in self.to_one), "a party that is no client")


@wire.message(0x0443, wire.MAX_FRAME_BYTES)
class SelectionRelay(wire.Message, frozen=True):
    """Server to client: what the others tell it, and its share of the randomness as far as no seed gives it."""

    purpose: str
    step: int
    to_all: dict[int, bytes]
    to_one: dict[int, bytes]
    dealt: bytes

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        wire.require(self.step > 0, "a step that is none")
        wire.require(all(party > 0 for party in (*self.to_all, *self.to_one)), "a party that is no client")


@wire.message(0x0444, wire.MAX_FRAME_BYTES)
class SharesForAsker(wire.Message, frozen=True):
    """Server to an asker outside: the shares of its answers, each sealed by one client."""

    purpose: str
    sealed: dict[int, bytes]

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        wire.require(all(party > 0 for party in self.sealed), "a party that is no client")


@wire.message(0x0461, wire.MAX_FRAME_BYTES)
class MaskedTable(wire.Message, frozen=True):
    """Scorer to server, and server to asker: a scorer's rows under a mask, sealed for the asker."""

    purpose: str
    owner: int
    sealed: bytes

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        wire.require(self.owner > 0, "a party that is no client")


@wire.message(0x0462, wire.MAX_FRAME_BYTES)
class DealtProduct(wire.Message, frozen=True):
    """Server to scorer: its share of the product of the two masks, that of its rows and that of the queries."""

    purpose: str
    product: bytes

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
