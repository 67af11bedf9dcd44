"""A sum on its way back to the clients, for them to read or to go on with."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt

from protocols.foundation import wire
from protocols.foundation.frame_sizes import (
    LONGEST_NUMBER,
    array_bytes,
    frame_bytes,
    list_head_bytes,
    number_bytes,
    text_bytes,
)
from protocols.foundation.identifiers import PartyId, RoundId
from protocols.primitives.group import VECTOR_TYPES
from protocols.session.conversation import MAX_PURPOSE
from protocols.sums.interface import SumLayout, Total
from protocols.sums.terms import SumTerms


@wire.message(0x0141, wire.MAX_FRAME_BYTES)
class SumTotal(wire.Message, frozen=True):
    """Server to client: a sum as the server holds it. In secret aggregation it lies under masks that clients remove.

    It may be of an earlier round than the message: a dropout that is back takes what it has missed.
    """

    purpose: str
    of_round: int
    contributors: list[int]
    """Whose vectors are in it, in ascending order."""
    vector: np.ndarray[Any, Any]
    """As vectors of the sum's group travel."""

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        wire.require(self.of_round >= 0, "negative round")
        in_order = all(a < b for a, b in zip(self.contributors, self.contributors[1:], strict=False))
        wire.require(in_order and all(party > 0 for party in self.contributors), "contributors that are no set")
        wire.require_array(self.vector, *VECTOR_TYPES, ndim=1)

    @classmethod
    def of(
        cls, round_id: RoundId, purpose: str, contributors: Collection[PartyId], vector: npt.NDArray[Any]
    ) -> "SumTotal":
        """`vector`: as vectors of the sum's group travel."""
        return cls(purpose, int(round_id), sorted(int(party) for party in contributors), vector)


class TotalReader(ABC):
    """A client's part in sums that clients alone can read; beside `SumClient`."""

    @abstractmethod
    def open(self, terms: SumTerms[SumLayout], total: SumTotal) -> Total:
        """What the contributors' numbers add up to."""


def sum_total_bytes(purpose: str, entries: int, entry_bytes: int, participants: Collection[PartyId]) -> int:
    """The largest size of a `SumTotal` frame: of any round, with all participants as contributors."""
    contributors = list_head_bytes(len(participants)) + sum(number_bytes(party) for party in participants)
    return frame_bytes(text_bytes(purpose), LONGEST_NUMBER, contributors, array_bytes(entries, entry_bytes))
