"""The formula on shares: XOR shares of bits, eight positions to a byte."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from protocols.exact.formula import Formula
from protocols.scores.topk.exchange import Exchange
from protocols.scores.topk.shares import SharedArithmetic

Sets: TypeAlias = npt.NDArray[np.bool_]
"""[atoms, positions]: of every atom, which positions one client has as stored answers."""
Packed: TypeAlias = npt.NDArray[np.uint8]


class SharedSets:
    """One client's side."""

    def __init__(self, arithmetic: SharedArithmetic, exchange: Exchange) -> None:
        self._arithmetic, self._exchange = arithmetic, exchange

    def result(self, formula: Formula, own: Sets) -> Packed:
        """This client's share of the formula's set."""
        return formula.walk(list(self._united(np.packbits(own, axis=1))), self._both, self._inverted)

    def _united(self, own: Packed) -> Packed:
        """Shares of the union over all clients of their sets [atoms, bytes].

        What one client has is shared as it is: all others have zeros.
        """
        parties, me = self._exchange.parties, self._exchange.party
        lacking = [self._inverted(own if party == me else np.zeros_like(own)) for party in parties]
        while len(lacking) > 1:
            pairs = len(lacking) // 2
            joined = self._both(np.stack(lacking[:pairs]), np.stack(lacking[pairs : 2 * pairs]))
            lacking = [*joined, *lacking[2 * pairs :]]
        return self._inverted(lacking[0])

    def _both(self, first: Packed, second: Packed) -> Packed:
        """One exchange."""
        joined: npt.NDArray[Any] = self._arithmetic.conjunction(first.reshape(-1), second.reshape(-1))
        return joined.reshape(first.shape)

    def _inverted(self, share: Packed) -> Packed:
        """The lead's share has what is public."""
        return ~share if self._exchange.leads else share


def in_clear(formula: Formula, sets: list[Sets]) -> npt.NDArray[np.bool_]:
    """The plain twin: the same formula over everybody's sets in one place."""
    united: Sets = np.logical_or.reduce(sets)
    return formula.walk(list(united), np.logical_and, np.logical_not)
