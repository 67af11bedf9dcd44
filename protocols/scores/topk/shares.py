"""Computing on shares: look-up, product, sign and shuffle, each on whole arrays and in as few exchanges as can be.

Shares are additive in Z_2^64, or XOR shares of bits. What is opened lies under fresh randomness of the dealer
(`dealing`), of which every client has a part.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from protocols.foundation.errors import PeerMisbehaved
from protocols.scores.topk.dealing import WORD_TYPES, Deal, Seed, look_up_shift
from protocols.scores.topk.exchange import Exchange
from protocols.scores.topk.words import AnyWords, Words, in_tree_order

Bits = npt.NDArray[np.uint8]
_TOP: Final = np.uint64(63)
_BELOW_TOP: Final = np.uint64((1 << 63) - 1)
_TREE: Final = (32, 16, 8, 4, 2)
"""How many bits the half of a word has, level by level; the last level has one."""


class SharedArithmetic:
    """One client's side of all operations of a batch."""

    def __init__(self, exchange: Exchange, seed: Seed) -> None:
        self._exchange, self._seed = exchange, seed

    def public(self, words: Words) -> Words:
        """This client's share of a number that everybody knows."""
        return words.copy() if self._exchange.leads else np.zeros_like(words)

    def look_up(self, counts: Words, tables: npt.NDArray[np.uint64]) -> list[Words]:
        """Shares of f(c) for shares of small numbers c [positions] and each table f [tables, size]; one exchange.

        The size is a power of two. Opened: c + r modulo the size, uniform. With u the unit vector of r, f(c) is the
        sum over m of f(c + r - m) u_m.
        """
        size, positions = tables.shape[1], len(counts)
        step, deal = self._exchange.step, [int(Deal.LOOKUP), positions, size]
        shifted = counts.astype(np.uint8) + look_up_shift(self._seed, step, positions, size)
        opened, dealt = self._exchange.add(deal, shifted & np.uint8(size - 1))
        at = opened.astype(np.int64) & (size - 1)
        unit = self._dealt(dealt, "unit", step, size * positions).reshape(size, positions)
        found = [np.zeros(positions, dtype=np.uint64) for _ in tables]
        for place in range(size):
            index = (at - place) & (size - 1)
            for total, table in zip(found, tables, strict=True):
                total += table[index] * unit[place]
        return found

    def scale(self, values: Words, factors: Words) -> Words:
        """Shares of values [queries, positions] times factors [positions]; one exchange.

        The mask of the factors serves all queries: they are opened once.
        """
        queries, positions = values.shape
        step, deal = self._exchange.step, [int(Deal.SCALE), queries, positions]
        left = self._seed.words(step, "a", values.size).reshape(values.shape)
        right = self._seed.words(step, "b", positions)
        masked = np.concatenate([(values - left).reshape(-1), factors - right])
        opened, dealt = self._exchange.add(deal, masked)
        d, e = opened[: values.size].reshape(values.shape), opened[values.size :]
        product: Words = self._dealt(dealt, "c", step, values.size).reshape(values.shape) + d * right + e * left
        if self._exchange.leads:
            product += d * e
        return product

    def negative(self, numbers: Words) -> Bits:
        """XOR shares of whether each number, read as signed, is below zero; seven exchanges.

        Opened: m = d + r. The sign of d = m - r is m's xor r's top bit xor the borrow from the 63 bits below, which is
        a binary tree of pairs: g, a stretch of bits borrows by itself, and p, it passes a borrow on.
        """
        step, deal = self._exchange.step, [int(Deal.SIGN), len(numbers)]
        opened, dealt = self._exchange.add(deal, numbers + self._seed.words(step, "r", len(numbers)))
        bits = self._dealt(dealt, "bits", step, len(numbers))
        m = in_tree_order(opened)
        # In tree order, too, the top bit is the top bit: it borrows nothing by itself and passes everything on.
        sign = (bits >> _TOP).astype(np.uint8)
        passes, borrows = bits & _BELOW_TOP, ~m & bits & _BELOW_TOP
        if self._exchange.leads:
            sign ^= (m >> _TOP).astype(np.uint8)
            passes = ~(m ^ bits) | ~_BELOW_TOP
        return sign ^ self._borrow(borrows, passes)

    def _borrow(self, g: AnyWords, p: AnyWords) -> Bits:
        """XOR shares of the borrow out of all bits; six exchanges. The upper half of a word stands for higher bits."""
        for half in _TREE:
            word = WORD_TYPES[max(1, 2 * half // 8)].type
            low = g.dtype.type((1 << half) - 1)
            shift = g.dtype.type(half)
            upper, lower = (p >> shift) & low, (g & low) | ((p & low) << shift)
            both = self.conjunction((upper | (upper << shift)).astype(word), lower.astype(word))
            narrow = WORD_TYPES[max(1, half // 8)].type
            mask = word((1 << half) - 1)
            g = ((g >> shift) & low).astype(narrow) ^ (both & mask).astype(narrow)
            p = (both >> word(half)).astype(narrow)
        one = np.uint8(1)
        borrowed: Bits = ((g >> one) & one) ^ self.conjunction((p >> one) & one, g & one)
        return borrowed

    def conjunction(self, left: AnyWords, right: AnyWords) -> AnyWords:
        """XOR shares of left & right, bit by bit; one exchange."""
        count, size = len(left), left.dtype.itemsize
        step, deal = self._exchange.step, [int(Deal.AND), count, size]
        drawn = self._seed.words(step, "and", (2 if self._exchange.leads else 3) * count, left.dtype)
        a, b = drawn[:count], drawn[count : 2 * count]
        opened, dealt = self._exchange.xor(deal, np.concatenate([left ^ a, right ^ b]))
        d, e = opened[:count], opened[count:]
        if self._exchange.leads:
            c = _words(dealt, count, left.dtype)
            return c ^ (d & b) ^ (e & a) ^ (d & e)
        if dealt:
            raise PeerMisbehaved("a correction for a client that is to get none")
        return drawn[2 * count :] ^ (d & b) ^ (e & a)

    def larger(self, one: Words, other: Words) -> Words:
        """Shares of the larger of two signed numbers, entry by entry; nine exchanges.

        other + [other < one] (one - other). The bit is made a number under a random bit that is shared as both.
        """
        bit = self.negative(other - one)
        step, deal = self._exchange.step, [int(Deal.BIT), len(bit)]
        mask = self._seed.words(step, "bit", len(bit), np.uint8) & np.uint8(1)
        opened, dealt = self._exchange.xor(deal, bit ^ mask)
        number = self._dealt(dealt, "number", step, len(bit))
        differs = (opened & np.uint8(1)).astype(np.uint64)
        number = number - np.uint64(2) * differs * number + self.public(differs)
        larger: Words = other + self.scale((one - other)[None, :], number)[0]
        return larger

    def open_bits(self, bits: Bits) -> npt.NDArray[np.bool_]:
        """What XOR shares of single bits stand for; one exchange."""
        packed = np.packbits(bits & 1)
        opened, _ = self._exchange.xor([int(Deal.NOTHING)], packed)
        return np.unpackbits(opened, count=len(bits)).astype(np.bool_)

    def shuffle(self, values: Words) -> Words:
        """Shares of the values [queries, length], those of each query in an order that no client knows.

        The server does: it dealt the seeds of all permutations (`in_common_order`). As many exchanges as clients: each
        permutes in its turn, under masks that the others have put on their shares and whose permuted sum the dealer
        hands it.
        """
        queries, length = values.shape
        share = values.reshape(-1)
        for turn in self._exchange.parties:
            step, deal = self._exchange.step, [int(Deal.SHUFFLE), int(turn), queries, length]
            if turn != self._exchange.party:
                masked = share - self._seed.words(step, "a", share.size)
                self._exchange.hand_over(deal, turn, masked)
                share = self._seed.words(step, "b", share.size)
                continue
            order = self._seed.permutations(step, queries, length)
            given, dealt = self._exchange.hand_over(deal, turn, share)
            total = share.copy()
            for one in given:
                total += one
            share = total[order] + _words(dealt, share.size, np.dtype("<u8"))
        return share.reshape(queries, length)

    def in_common_order(self, values: Words) -> Words:
        """The values of each query in an order that the server does not know, whatever order they were in before.

        Every client moves its own shares: nothing is sent.
        """
        return np.take_along_axis(values, self._exchange.common_order(*values.shape), axis=1)

    def _dealt(self, dealt: bytes, what: str, step: int, count: int) -> Words:
        """This client's share of what the lead is sent and the others draw."""
        if self._exchange.leads:
            return _words(dealt, count, np.dtype("<u8"))
        if dealt:
            raise PeerMisbehaved("a correction for a client that is to get none")
        return self._seed.words(step, what, count)


def _words(dealt: bytes, count: int, dtype: np.dtype[np.unsignedinteger]) -> AnyWords:
    if len(dealt) != count * dtype.itemsize:
        raise PeerMisbehaved("dealt randomness of another length")
    return np.frombuffer(dealt, dtype=dtype)
