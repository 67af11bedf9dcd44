"""Ranking keys: one whole number per position, whose order is that of the answers, and what is read from the best.

With n clients, L = lcm(1..n), S the sum of a position's encoded scores, c > 0 the number of those who gave one, V the
largest absolute value of S L / c, and p bits for positions, the key of position i is

    (S L / c + V) 2^p + (2^p - 1 - i)     if c > 0: not negative, larger means first, of equal means the lower position
    -1 - i                                if c = 0: negative, after all answers

Keys differ in pairs, and two of them differ by less than (2 V + 2) 2^p, which must fit 63 bits: then the sign of their
difference, computed modulo 2^64, is their order. What the asker reads of a key is an *answer word*: 0 of a negative
key, else 2^p and the p low bits.

This module needs numpy only.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from protocols.foundation.errors import EncodingOverflow, PeerMisbehaved
from protocols.scores.terms import ScoreTerms


@dataclass(frozen=True, slots=True)
class PositionKeys:
    """The keys of one batch. Terms whose keys could overflow are refused."""

    terms: ScoreTerms

    def __post_init__(self) -> None:
        if (2 * self.largest_mean + 2) << self.position_bits >= 1 << 63:
            raise EncodingOverflow(
                f"means of {len(self.terms.clients)} clients and {self.terms.positions:,} positions do not fit 63 bits"
            )

    @property
    def position_bits(self) -> int:
        """p."""
        return max(1, (self.terms.positions - 1).bit_length())

    @property
    def largest_mean(self) -> int:
        """V, in units of a mean times L: no S is larger than c times the largest encoded score."""
        return self.terms.common_multiple * (self.terms.largest_sum // len(self.terms.clients))

    @property
    def answers(self) -> int:
        """How many keys per query the asker reads a word of."""
        return min(self.terms.top, self.terms.positions)

    @property
    def tails(self) -> npt.NDArray[np.int64]:
        """[positions]: 2^p - 1 - i."""
        return (1 << self.position_bits) - 1 - np.arange(self.terms.positions, dtype=np.int64)

    @property
    def least(self) -> int:
        """Below every key."""
        return -1 - (1 << self.position_bits)

    def read(self, words: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], ...]:
        """Positions from answer words [queries, answers], best first. `PeerMisbehaved` for words that are none."""
        return tuple(self._positions(row) for row in words)

    def _positions(self, row: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        mark = 1 << self.position_bits
        answers = row[row != 0]
        positions: npt.NDArray[np.int64] = 2 * mark - 1 - answers
        if (row[: len(answers)] == 0).any() or ((positions < 0) | (positions >= self.terms.positions)).any():
            raise PeerMisbehaved("the shares of the answers do not fit together")
        if len(np.unique(positions)) != len(positions):
            raise PeerMisbehaved("the shares of the answers do not fit together")
        return positions
