"""The messages that all backends share: asking, and a total on its way to the asker."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved
from protocols.foundation.frame_sizes import array_bytes, frame_bytes, list_head_bytes, number_bytes, text_bytes
from protocols.foundation.identifiers import PartyId
from protocols.primitives.aead import OVERHEAD_BYTES
from protocols.scores.terms import ScoreTerms
from protocols.session.conversation import MAX_PURPOSE

PURPOSE: Final = "scores"
"""Of every message of a batch, but for those of the count of holders."""
MAX_QUERY_BYTES: Final = 1 << 20
"""Of all queries of a batch together."""


def require_contributors(listed: Sequence[int]) -> None:
    """Check a list of contributors inside `__post_init__`."""
    in_order = all(a < b for a, b in pairwise(listed))
    wire.require(in_order and all(party > 0 for party in listed), "contributors that are no set")


def require_total(purpose: str, contributors: Sequence[int], vector: np.ndarray[Any, Any], dtype: str) -> None:
    """Check a total on its way to the asker inside `__post_init__`."""
    wire.require(len(purpose) <= MAX_PURPOSE, "purpose too long")
    require_contributors(contributors)
    wire.require_array(vector, dtype, ndim=1)


@wire.message(0x0401, 1 << 24)
class AskScores(wire.Message, frozen=True):
    """Asker to server: for every scorer, encrypted for it alone, the secrets of the batch and the queries."""

    purpose: str
    sealed: dict[int, bytes]

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        wire.require(all(party > 0 for party in self.sealed), "a party that is no client")
        wire.require(all(_fits(entry) for entry in self.sealed.values()), "an entry of impossible length")


@wire.message(0x0402)
class ScoresAsked(wire.Message, frozen=True):
    """Server to scorer: what the asker has encrypted for it."""

    purpose: str
    sealed: bytes

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")
        wire.require(_fits(self.sealed), "an entry of impossible length")


def _fits(sealed: bytes) -> bool:
    return OVERHEAD_BYTES < len(sealed) <= MAX_QUERY_BYTES + 4096


@wire.message(0x0403, wire.MAX_FRAME_BYTES)
class ScoresTotal(wire.Message, frozen=True):
    """Server to asker: the sum of the contributors' vectors; under the asker's masks, where the backend has any."""

    purpose: str
    contributors: list[int]
    """In ascending order."""
    vector: np.ndarray[Any, Any]

    def __post_init__(self) -> None:
        require_total(self.purpose, self.contributors, self.vector, "<u4")


@wire.message(0x0404)
class BatchServed(wire.Message, frozen=True):
    """Server to scorer: the asker has its answer, and nothing more is to come of this batch."""

    purpose: str

    def __post_init__(self) -> None:
        wire.require(len(self.purpose) <= MAX_PURPOSE, "purpose too long")


def total_bytes(terms: ScoreTerms, entries: int) -> int:
    """The largest size of a `ScoresTotal` frame."""
    return frame_bytes(text_bytes(PURPOSE), contributors_bytes(terms), array_bytes(entries, 4))


def contributors_bytes(terms: ScoreTerms) -> int:
    """The largest size of a list of contributors."""
    return list_head_bytes(len(terms.scorers)) + sum(number_bytes(party) for party in terms.scorers)


def checked_contributors(listed: Sequence[int], terms: ScoreTerms) -> list[PartyId]:
    """`PeerMisbehaved` unless they are scorers, and enough of them that no single one's scores are read."""
    contributors = [PartyId(party) for party in listed]
    if not set(contributors) <= set(terms.scorers):
        raise PeerMisbehaved("a total with contributors that take no part in it")
    if len(contributors) < max(2, terms.least):
        raise PeerMisbehaved(f"a total of {len(contributors)} scorers, fewer than {max(2, terms.least)}")
    return contributors


def require_sendable(terms: ScoreTerms, largest: int) -> None:
    """`ValueError`, before anybody works, for a batch whose `largest` frame would be too large to be sent."""
    if largest > wire.MAX_FRAME_BYTES:
        raise ValueError(
            f"a batch of {terms.queries} queries over {terms.positions} positions has messages of more than "
            f"{wire.MAX_FRAME_BYTES >> 20} MiB: ask fewer queries at a time"
        )
