"""A batch of scores as one vector of a group of about 2^32 elements: scores, and packed counts.

    entries              content
    queries x positions  scores in fixed point; a negative one is its distance below the modulus
    positions / 4        who holds what: one byte per position, four to an entry (a count is 12 at most)

As `protocols.scores.layout`, without the check: these backends do not stand against a server that changes totals.
"""

from dataclasses import dataclass

import numpy as np

from protocols.foundation.errors import EncodingOverflow
from protocols.primitives.group import GroupVector, Ring
from protocols.primitives.residues import Residues
from protocols.scores.interface import EncodedScores
from protocols.scores.layout import count_entries, packed_counts, unpacked_counts
from protocols.scores.ranking import ScoreSums
from protocols.scores.terms import ScoreTerms


@dataclass(frozen=True, slots=True)
class EncryptedLayout:
    """The layout of a batch; a `protocols.sums.terms.Layout`. Refused if a sum could leave the group's range."""

    terms: ScoreTerms
    group: Ring | Residues

    def __post_init__(self) -> None:
        # A cipher wraps without a word: what does not fit is refused here, by arithmetic.
        if 2 * self.terms.largest_sum >= self.modulus:
            raise EncodingOverflow(
                f"{len(self.terms.clients)} scores of ±{self.terms.bound:g} with {self.terms.codec.fraction_bits} "
                f"fraction bits do not fit a plain modulus of {self.modulus}"
            )
        if len(self.terms.scorers) * 0x01010101 >= self.modulus:
            raise EncodingOverflow(f"counts of {len(self.terms.scorers)} do not fit a plain modulus of {self.modulus}")

    @property
    def modulus(self) -> int:
        return 1 << self.group.bits if isinstance(self.group, Ring) else self.group.modulus

    @property
    def entries(self) -> int:
        return self.terms.cells + count_entries(self.terms)

    @property
    def addends(self) -> int:
        """How many vectors are added up at most: those of all scorers, and the correction."""
        return len(self.terms.scorers) + 1

    def vector(self, encoded: EncodedScores) -> GroupVector:
        """What a scorer contributes."""
        vector, cells = self.group.zeros(self.entries), encoded.cells.reshape(-1)
        vector[: len(cells)] = np.where(cells < 0, cells + np.int64(self.modulus), cells)
        vector[len(cells) :] = packed_counts(encoded, self.terms)
        return vector

    def read(self, total: GroupVector) -> ScoreSums:
        """Sums and counts of a total. `PeerMisbehaved` for counts that are impossible."""
        cells = self.terms.cells
        sums = total[:cells].astype(np.int64)
        sums[sums > self.modulus // 2] -= self.modulus
        counts = unpacked_counts(total[cells:], self.terms)
        return ScoreSums(sums.reshape(self.terms.queries, self.terms.positions), counts)
