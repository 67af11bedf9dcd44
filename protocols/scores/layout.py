"""A batch of scores as one vector of the ring Z_2^32: scores, packed counts, and a check of both.

    entries              content
    queries x positions  scores in fixed point, two's complement
    positions / 4        who holds what: one byte per position, four to an entry (a count is 12 at most)
    4                    the check, in limbs of 16 bits

The check. No sum of these entries wraps, as whole numbers: scores by their bound (`ScoreTerms`), counts and limbs
because there are few clients. So the total of n vectors, read back from the ring, is their sum as whole numbers, and
every linear form of the entries over a field is additive. Clients share factors f_i of the field of p = 2^61 - 1
elements, which the server does not have. Each appends c = sum of f_i x_i, in limbs; the asker accepts a total t if the
limbs add up to sum of f_i t_i modulo p.

Why a changed total does not pass. What the server has seen, the total under the asker's masks included, is independent
of the factors. So is what it hands on, and the difference of the masks of the contributors that it names and of those
whose vectors are in it. The asker reads t' instead of t, with t' - t = d as whole numbers, each d_i between -2^32 and
2^32. The d_i of scores and counts are independent of the factors, because scores and counts are. If one of them is not
zero, it is not zero modulo p, and the sum of f_i d_i is uniform. The check passes if that sum equals the change of the
limbs. Each limb changes by one of two amounts, by whether it wraps, so there are 16 values at most: the check passes
with probability 16/p at most. If only limbs are changed, the asker reads the same sums and counts or refuses them.

The check alone is linear: it passes every multiple of a total. The asker's masks are what a server cannot multiply.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.foundation.errors import PeerMisbehaved
from protocols.primitives.group import MODULUS, FieldArray, GroupVector, PrimeField, Ring
from protocols.primitives.prg import combine_keystreams
from protocols.scores.interface import EncodedScores
from protocols.scores.ranking import ScoreSums
from protocols.scores.terms import RING, ScoreTerms

_FIELD: Final = PrimeField()
_LANES: Final = 4
_LIMBS: Final = 4
_LIMB_BITS: Final = 16
_BLOCK: Final = 1 << 14
"""So many entries are worked on at a time: they and what is computed from them stay in the processor's cache."""


FALSE_TOTAL: Final = "the server or a scorer is at fault: a total that is none of these contributors"
"""A scorer that gives a false check has the same effect as a server that changes a total."""


def count_entries(terms: ScoreTerms) -> int:
    """How many entries the packed counts of a batch take."""
    return -(-terms.positions // _LANES)


def packed_counts(encoded: EncodedScores, terms: ScoreTerms) -> GroupVector:
    """Who holds what, one byte per position."""
    lanes = np.zeros(count_entries(terms) * _LANES, dtype=np.uint8)
    lanes[: terms.positions] = encoded.held
    return lanes.view("<u4")


def unpacked_counts(entries: GroupVector, terms: ScoreTerms) -> npt.NDArray[np.int64]:
    """Counts of the scorers by position from a sum of packed ones; `PeerMisbehaved` for counts that are impossible."""
    counts = np.ascontiguousarray(entries).view(np.uint8)[: terms.positions].astype(np.int64)
    if int(counts.max(initial=0)) > len(terms.scorers):
        raise PeerMisbehaved(FALSE_TOTAL)
    return counts


@dataclass(frozen=True, slots=True)
class ScoreLayout:
    """The layout of a batch; a `protocols.sums.terms.Layout`."""

    terms: ScoreTerms

    @property
    def group(self) -> Ring:
        return RING

    @property
    def count_entries(self) -> int:
        return count_entries(self.terms)

    @property
    def checked_entries(self) -> int:
        return self.terms.cells + self.count_entries

    @property
    def entries(self) -> int:
        return self.checked_entries + _LIMBS

    def unchecked(self, encoded: EncodedScores) -> GroupVector:
        """Scores and counts; zeros where the check will be."""
        cells, vector = self.terms.cells, RING.zeros(self.entries)
        vector[:cells] = encoded.cells.reshape(-1).view(np.uint32)
        vector[cells : self.checked_entries] = packed_counts(encoded, self.terms)
        return vector

    def vector(self, encoded: EncodedScores, factor_key: bytes) -> GroupVector:
        """What a scorer contributes."""
        vector = self.unchecked(encoded)
        check = self._check(vector, factor_key)
        limbs = [(check >> (_LIMB_BITS * place)) & ((1 << _LIMB_BITS) - 1) for place in range(_LIMBS)]
        vector[self.checked_entries :] = limbs
        return vector

    def read(self, total: GroupVector) -> ScoreSums:
        """Sums and counts of a total, without a look at its check. `PeerMisbehaved` for counts that are impossible."""
        cells = self.terms.cells
        sums = total[:cells].view(np.int32).astype(np.int64).reshape(self.terms.queries, self.terms.positions)
        return ScoreSums(sums, unpacked_counts(total[cells : self.checked_entries], self.terms))

    def read_checked(self, total: GroupVector, factor_key: bytes) -> ScoreSums:
        """Sums and counts; `PeerMisbehaved` unless the total is what its contributors have sent."""
        limbs = total[self.checked_entries :]
        told = sum(int(limb) << (_LIMB_BITS * place) for place, limb in enumerate(limbs)) % MODULUS
        if told != self._check(total, factor_key):
            raise PeerMisbehaved(FALSE_TOTAL)
        return self.read(total)

    def _check(self, vector: GroupVector, factor_key: bytes) -> int:
        """The sum of f_i x_i over the checked entries, as whole numbers, modulo p."""
        factors: FieldArray = np.zeros(self.checked_entries, dtype=_FIELD.dtype)
        combine_keystreams(factors, _FIELD, [factor_key])
        total, cells = 0, self.terms.cells
        for start in range(0, self.checked_entries, _BLOCK):
            part = vector[start : min(start + _BLOCK, self.checked_entries)]
            elements = part.astype(np.uint64)
            signed = elements[: max(0, cells - start)]  # counts are not
            np.add(signed, np.uint64(MODULUS - (1 << 32)), out=signed, where=signed >= 1 << 31)
            total += int(_FIELD.sum(_FIELD.multiply(factors[start : start + len(part)], elements)))
        return total % MODULUS
