"""Corrupted triples: a head or a tail drawn anew, so that the triple is none of the client's train part."""

import numpy as np
import numpy.typing as npt

from secure_kg.data.graph import Side, TripleArray
from secure_kg.data.vocabulary import triple_keys

Ids = npt.NDArray[np.int64]

_TRIES = 20


class Corruption:
    """Draws entities that make a train triple a false one."""

    def __init__(self, train: TripleArray, entities: int, relations: int) -> None:
        self._size = entities, relations
        self._known = np.unique(triple_keys(train, entities, relations))

    def draw(self, triples: TripleArray, side: Side, number: int, draws: np.random.Generator) -> Ids:
        """Entities [b, number] for that side of triples [b, 3].

        One that gives a train triple is drawn again, up to 20 times: among a few entities all may be true.
        """
        drawn = draws.integers(self._size[0], size=(len(triples), number))
        true = self._true(triples, side, drawn)
        for _ in range(_TRIES):
            if not len(true[0]):
                break
            drawn[true] = draws.integers(self._size[0], size=len(true[0]))
            still = self._true(triples[true[0]], side, drawn[true][:, None])[0]
            true = true[0][still], true[1][still]
        return drawn

    def _true(self, triples: TripleArray, side: Side, drawn: Ids) -> tuple[Ids, Ids]:
        """Rows and columns of those that give a train triple."""
        made = np.repeat(triples, drawn.shape[1], axis=0)
        made[:, 2 if side == "tail" else 0] = drawn.ravel()
        keys = triple_keys(made, *self._size)
        place = np.minimum(np.searchsorted(self._known, keys), len(self._known) - 1)
        rows, columns = np.nonzero((self._known[place] == keys).reshape(drawn.shape))
        return rows, columns
