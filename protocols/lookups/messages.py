"""The messages of lookups that no other protocol has: a total of names, and which step of a session comes next."""

from typing import Any, Final

import numpy as np

from protocols.foundation import wire
from protocols.scores.messages import require_total

MOST_SIZES: Final = 4
_LARGEST: Final = (1 << 32) - 1
_LONGEST_KIND: Final = 16
TABLE_BYTES: Final = 32


@wire.message(0x0471, wire.MAX_FRAME_BYTES)
class NamesTotal(wire.Message, frozen=True):
    """Server to asker: the sum of what the contributors have written, under the asker's masks."""

    purpose: str
    contributors: list[int]
    """In ascending order."""
    vector: np.ndarray[Any, Any]

    def __post_init__(self) -> None:
        require_total(self.purpose, self.contributors, self.vector, "<u8")


@wire.message(0x0472)
class NextStep(wire.Message, frozen=True):
    """Asker to server, and server to all other clients: what comes next, and how large it is. Public."""

    kind: str
    sizes: list[int]
    table: bytes
    """Digest of what all answer from. At the end: a word that clients alone can make (`protocols.lookups.steps`)."""

    def __post_init__(self) -> None:
        wire.require(len(self.kind) <= _LONGEST_KIND, "a kind that is too long")
        wire.require(len(self.sizes) <= MOST_SIZES, "too many sizes")
        wire.require(all(0 <= size <= _LARGEST for size in self.sizes), "a size that is none")
        wire.require(len(self.table) in (0, TABLE_BYTES), "a digest of another length")
