"""Keys: one number of 64 bits per position, made so that their order is the ranking and their lowest bits the answer.

    key = (mean x L - penalty) x 2^(b + 1) + 2 (2^b - 1 - position) + given

b bits hold a position. `given` is 1 if anybody gave a score; where nobody did, the penalty puts the position below all
others. All of it is linear in shares of mean x L and of `given`.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.foundation.errors import EncodingOverflow, PeerMisbehaved
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.words import Words

_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class KeyLayout:
    """`largest`: of a single score, in units. Refuses terms under which the difference of two keys could overflow."""

    terms: ScoreTerms
    largest: int

    def __post_init__(self) -> None:
        if self.largest > largest_score(self.terms):
            raise EncodingOverflow(
                f"scores of up to {self.largest} units and {self.terms.positions} positions "
                f"do not fit {_BITS} bits: fewer clients, or a smaller bound"
            )

    @classmethod
    def of_scores(cls, terms: ScoreTerms) -> "KeyLayout":
        """For the scores that every backend takes."""
        return cls(terms, round(terms.codec.largest_value * terms.codec.scale))

    @property
    def largest_mean(self) -> int:
        """Of a mean times L."""
        return self.largest * self.terms.common_multiple

    @property
    def position_bits(self) -> int:
        return _position_bits(self.terms)

    @property
    def low_bits(self) -> int:
        """Those that are the answer: position and `given`."""
        return self.position_bits + 1

    @property
    def table_size(self) -> int:
        """The least power of two that holds a count of givers."""
        return 1 << len(self.terms.clients).bit_length()

    def tables(self) -> npt.NDArray[np.uint64]:
        """[2, table size]: of a count, L / count, and whether it is not zero."""
        multiple, clients = self.terms.common_multiple, len(self.terms.clients)
        weights = [multiple // count if 1 <= count <= clients else 0 for count in range(self.table_size)]
        given = [int(1 <= count <= clients) for count in range(self.table_size)]
        return np.array([weights, given], dtype=np.uint64)

    def keys(self, means: Words, given: Words, leads: bool) -> Words:
        """Shares of the keys [queries, positions] from shares of means and of `given` [positions].

        `leads`: whether this client's share has what is public.
        """
        penalty = np.uint64(self.largest_mean + 1)
        shared = means + penalty * given  # the penalty itself is public: taken off everywhere, given back to givers
        keys = (shared << np.uint64(self.low_bits)) + given
        if leads:
            names = np.uint64((1 << self.position_bits) - 1) - np.arange(self.terms.positions, dtype=np.uint64)
            keys = keys + (names << np.uint64(1)) - (penalty << np.uint64(self.low_bits))
        return keys

    def answer(self, low: Words) -> npt.NDArray[np.int64]:
        """The positions of opened lowest bits, in order, without those of which nobody gave a score."""
        if (low >> np.uint64(self.low_bits)).any():
            raise PeerMisbehaved("an answer that is none")
        given = (low & np.uint64(1)).astype(np.bool_)
        positions = (1 << self.position_bits) - 1 - (low >> np.uint64(1)).astype(np.int64)
        if (positions >= self.terms.positions).any():
            raise PeerMisbehaved("an answer outside the union")
        found: npt.NDArray[np.int64] = positions[given]
        return found


def largest_score(terms: ScoreTerms) -> int:
    """In units: with larger ones the difference of two keys could overflow."""
    # 2 (largest x L + 2) x 2^(b + 1) stays below 2^63.
    room = (1 << (_BITS - 2)) >> (_position_bits(terms) + 1)
    return max(0, (room - 3) // terms.common_multiple)


def _position_bits(terms: ScoreTerms) -> int:
    return max(1, (terms.positions - 1).bit_length())
