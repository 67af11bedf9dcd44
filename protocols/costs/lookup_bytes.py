"""Bytes of the messages of lookups, counted without sending them (`protocols.lookups`).

As `score_bytes`: by step, under the names by which the transport counts, exact for every size. A lookup of vectors is a
batch of masked scores. Announcements are the same up and down.

Not covered: what the server sends in the masked sums of a lookup.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from protocols.alignment.psu.names import POSITION_ENTRIES
from protocols.costs import score_bytes
from protocols.costs.byte_counts import FIELD_BYTES, MaskedSum
from protocols.costs.score_bytes import ScoreBatch
from protocols.foundation.frame_sizes import (
    array_bytes,
    binary_bytes,
    frame_bytes,
    list_head_bytes,
    number_bytes,
    text_bytes,
)
from protocols.foundation.identifiers import PartyId
from protocols.lookups.names import POSITION_BYTES
from protocols.lookups.steps import STEP
from protocols.lookups.vectors import VectorTerms
from protocols.scores.messages import PURPOSE, contributors_bytes
from protocols.scores.terms import ScoreTerms


def announcement(kind: str, sizes: Sequence[int], table_bytes: int) -> dict[str, int]:
    """`NextStep`, from the asker and to every other client."""
    numbers = list_head_bytes(len(sizes)) + sum(map(number_bytes, sizes))
    return {STEP: frame_bytes(text_bytes(kind), numbers, binary_bytes(table_bytes))}


@dataclass(frozen=True, slots=True)
class VectorLookup:
    """`protocols.lookups.vectors`, in which everybody takes part and nobody drops out."""

    terms: VectorTerms
    request_bytes: int
    signed: bool = False
    """Against an active server."""
    announced: bool = False
    """Whether a sum of the same model was opened before, so that clients announce over whom."""

    def up(self, party: PartyId) -> dict[str, int]:
        return score_bytes.masked_up(self._batch, party)

    def down(self, party: PartyId) -> dict[str, int]:
        """Without the steps of the masked sum."""
        return score_bytes.masked_down(self._batch, party)

    @property
    def _batch(self) -> ScoreBatch:
        return ScoreBatch(self.terms.scores, self.request_bytes, self.signed, self.announced)


@dataclass(frozen=True, slots=True)
class NameLookup:
    """`protocols.lookups.names`, likewise."""

    terms: ScoreTerms
    signed: bool = False
    announced: bool = False

    def up(self, party: PartyId) -> dict[str, int]:
        batch = self._batch
        if party == self.terms.asker:
            return {"ask": batch.asking()}
        entries, neighbours = self.terms.positions * POSITION_ENTRIES, batch.neighbours(party)
        return MaskedSum(
            PURPOSE,
            entries,
            FIELD_BYTES,
            party,
            neighbours,
            signed=self.signed,
            guarded=True,
            announced=self.announced,
        ).bytes_up()

    def down(self, party: PartyId) -> dict[str, int]:
        """Without the steps of the masked sum."""
        if party != self.terms.asker:
            return score_bytes.masked_down(self._batch, party)
        entries = array_bytes(self.terms.positions * POSITION_ENTRIES, FIELD_BYTES)
        return {f"total/{PURPOSE}": frame_bytes(text_bytes(PURPOSE), contributors_bytes(self.terms), entries)}

    @property
    def _batch(self) -> ScoreBatch:
        return ScoreBatch(self.terms, POSITION_BYTES * self.terms.positions, self.signed)
