"""The k best keys of every query by CrypTen's comparisons, with nothing opened but shares of the answers to the asker.

    weights     sharings of [c = j] for j = 0..n from the clients' own bits, n - 1 rounds of products; with them L / c
    keys        one product per cell (`protocols.scores.crypten.position_keys`)
    lists       keys become sorted lists of 1, 2, 4, .. K entries, K the power of two at or above k, by bitonic merges
    tournament  two lists of K make one: the larger of the i-th of one and the i-th from the end of the other are the K
                best of both, in bitonic order; log2 K steps sort them
    answers     the k first keys as bits: their positions, blanked where a key is negative

A rank's own scores and bits are its shares as they are: nothing is sent to share them. They are never opened. Why ranks
see nothing of the scores: which cells meet depends on N, Q and k alone, and all that CrypTen opens in products,
conjunctions and conversions lies under masks to which every rank adds a part that only it and the dealer know. So
opened values are uniform for any number of ranks but all of them. Why the asker sees its answers alone: a share of an
answer word is the outcome of a conjunction, and so uniform but for the xor of all of them.

This module imports torch and CrypTen: processes that compute load it, the server's process does not.
"""

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from protocols.scores.crypten.crypten_import import load_crypten
from protocols.scores.crypten.position_keys import PositionKeys
from protocols.scores.interface import EncodedScores

Share: TypeAlias = torch.Tensor
"""One rank's share of a tensor of whole numbers: all shares add up to it modulo 2^64."""
_CELLS: Final = 1 << 18
"""So many keys are compared at a time: a rank needs many times their memory meanwhile."""


class Selection:
    """One batch as one of its ranks computes it, inside of `protocols.scores.crypten.group.computing`."""

    def __init__(self, keys: PositionKeys, rank: int, ranks: int) -> None:
        self._keys, self._rank, self._ranks = keys, rank, ranks
        self._mpc = load_crypten().mpc

    def answer_words(self, encoded: EncodedScores) -> npt.NDArray[np.int64]:
        """This rank's shares, by xor, of the answer words [queries, answers]. `encoded`: its own scores."""
        weights, nobody = self._weights(torch.from_numpy(encoded.held.astype(np.int64)))
        cells = torch.from_numpy(encoded.cells.astype(np.int64))
        at_once = max(1, _CELLS // self._keys.terms.positions)
        words = [self._words(self.best(self._scored(rows, weights, nobody))) for rows in torch.split(cells, at_once)]
        return torch.cat(words).numpy()

    def best(self, keys: Share) -> Share:
        """[queries, answers] from keys [queries, positions]: the largest, largest first."""
        length = 1 << (self._keys.answers - 1).bit_length()
        missing = -keys.shape[1] % length
        padding = self._public(torch.full((len(keys), missing), self._keys.least))
        lists = torch.cat([keys, padding], dim=1).unsqueeze(-1)  # [queries, lists, entries]
        while lists.shape[-1] < length:
            lists = self._merged(lists, halved=False)
        while lists.shape[1] > 1:
            paired = lists.shape[1] // 2 * 2
            lists = torch.cat([self._merged(lists[:, :paired], halved=True), lists[:, paired:]], dim=1)
        return lists[:, 0, : self._keys.answers]

    def _merged(self, lists: Share, halved: bool) -> Share:
        """Every two lists as one in descending order; `halved`: of its larger half."""
        larger, smaller = self._exchanged(lists[:, 0::2], lists[:, 1::2].flip(-1))
        merged = torch.stack([larger] if halved else [larger, smaller], dim=2)  # [queries, lists, halves, entries]
        queries, pairs, halves, entries = merged.shape
        distance = entries // 2
        while distance:
            there = merged.reshape(queries, -1, 2, distance)
            merged = torch.stack(self._exchanged(there[:, :, 0], there[:, :, 1]), dim=2)
            distance //= 2
        return merged.reshape(queries, pairs, halves * entries)

    def _exchanged(self, one: Share, other: Share) -> tuple[Share, Share]:
        """The larger of every two keys, and the smaller: one comparison and one product."""
        difference = (other - one).contiguous()
        change = self._product(self._positive(difference), difference)
        return one + change, other - change

    def _weights(self, bits: Share) -> tuple[Share, Share]:
        """Sharings [positions] of L / c, 0 where c = 0, and of [c = 0]. `bits`: where this rank gives a score."""
        none, first = torch.zeros_like(bits), bits if self._rank == 0 else torch.zeros_like(bits)
        exactly = [self._public(torch.ones_like(bits)) - first, first]  # [j]: whether j of the ranks so far give one
        for rank in range(1, self._ranks):
            bit = bits if rank == self._rank else none
            before, after = torch.stack([none, *exactly]), torch.stack([*exactly, none])
            exactly = list(after + self._product(bit.expand_as(after).contiguous(), before - after))
        common = self._keys.terms.common_multiple
        weights = none
        for count, share in enumerate(exactly[1:], start=1):
            weights = weights + common // count * share
        return weights, exactly[0]

    def _scored(self, cells: Share, weights: Share, nobody: Share) -> Share:
        """Keys [queries, positions]. `cells`: this rank's own scores."""
        means = self._product(cells, weights.expand_as(cells).contiguous())
        offset, bits = self._keys.largest_mean, self._keys.position_bits
        above = self._public(torch.full_like(nobody, offset)) - (offset + 1) * nobody
        return (means + above << bits) + self._public(torch.from_numpy(self._keys.tails))

    def _words(self, keys: Share) -> Share:
        """Shares by xor of the answer words of these keys."""
        bits = self._arithmetic(keys.contiguous()).to(self._mpc.binary)
        negative = bits.clone()
        negative.share = negative.share >> 63  # in every bit of a word the sign
        mark = 1 << self._keys.position_bits
        words = (bits._tensor & (mark - 1)) ^ mark
        share: Share = (words & ~negative._tensor).share
        return share

    def _positive(self, numbers: Share) -> Share:
        """1 for every number above 0, else 0: CrypTen's comparison."""
        share: Share = (self._arithmetic(numbers) > 0).share
        return share

    def _product(self, one: Share, other: Share) -> Share:
        share: Share = self._arithmetic(one).mul(self._arithmetic(other)).share
        return share

    def _arithmetic(self, share: Share) -> Any:
        return self._mpc.MPCTensor.from_shares(share, precision=0)

    def _public(self, values: torch.Tensor) -> Share:
        """A sharing of what everybody knows."""
        return values if self._rank == 0 else torch.zeros_like(values)


def comparisons(positions: int, answers: int) -> tuple[int, int]:
    """How many keys of one query are compared with another one, and in how many steps, one after the other."""
    length = 1 << (answers - 1).bit_length()
    lists, size, compared, steps = -(-positions // length) * length, 1, 0, 0
    while size < length:
        lists, size = lists // 2, 2 * size
        compared += lists * (size // 2) * (size.bit_length() - 1)
        steps += size.bit_length() - 1
    while lists > 1:
        pairs = lists // 2
        compared += pairs * (size + size // 2 * (size.bit_length() - 1))
        steps += size.bit_length()
        lists -= pairs
    return compared, steps
