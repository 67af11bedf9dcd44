"""Auxiliary knowledge of an attacker: a client's pairs of names and rows, leaked in whole or in part.

FedR (Zhang et al. 2022), section 3.1, step 1: the server colludes with one client to get its element-embedding pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from secure_kg.attacks.uploads import Places
from secure_kg.federation.plan.row_sum import Rows
from secure_kg.foundation.errors import UserError
from secure_kg.foundation.seeds import generator

UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Named:
    """Rows [n, width] under their names, and at which positions of the union they stand if their table is shared."""

    names: tuple[str, ...] = field(repr=False)
    rows: Rows = field(repr=False)
    positions: Places | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.names)

    def take(self, chosen: Places) -> "Named":
        positions = self.positions[chosen] if self.positions is not None else None
        return Named(tuple(self.names[number] for number in chosen.tolist()), self.rows[chosen], positions)


@dataclass(frozen=True, slots=True)
class LeakedPairs:
    """The element-embedding pairs of a client on the server's side."""

    client: int
    entities: Named
    relations: Named
    ratio: float = 1.0
    """Which share of the client's pairs has leaked."""

    def part(self, ratio: float, seed: int) -> "LeakedPairs":
        """A random share of the entities and of the relations, one of each at least."""
        if not 0 < ratio <= 1:
            raise UserError("a leakage ratio must lie above 0 and at most at 1")
        if ratio == 1:
            return self
        draw = generator(seed, "leaked pairs", self.client, str(ratio))

        def some(named: Named) -> Named:
            size = min(len(named), max(1, round(ratio * len(named))))
            return named.take(np.sort(draw.permutation(len(named))[:size]))

        return replace(self, entities=some(self.entities), relations=some(self.relations), ratio=ratio)

    def described(self) -> str:
        return (
            f"{self.ratio:.0%} of client {self.client}'s pairs of names and rows "
            f"({len(self.entities)} entities, {len(self.relations)} relations)"
        )


@dataclass(frozen=True, slots=True)
class Naming:
    """A guess: for each of n things a name of the vocabulary, by number, or `UNKNOWN`."""

    vocabulary: tuple[str, ...] = field(repr=False)
    chosen: Places = field(repr=False)

    def as_ids(self, names: Sequence[str]) -> Places:
        """The guesses [n] as ids of another vocabulary; `UNKNOWN` where that lacks the name or nothing was guessed."""
        known = {name: number for number, name in enumerate(names)}
        ids = np.array([*(known.get(name, UNKNOWN) for name in self.vocabulary), UNKNOWN], dtype=np.int64)
        translated: npt.NDArray[np.int64] = ids[self.chosen]  # UNKNOWN takes the last one
        return translated

    def knows(self, names: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Which of `names` [m] could be guessed at all."""
        vocabulary = frozenset(self.vocabulary)
        return np.fromiter((name in vocabulary for name in names), dtype=np.bool_, count=len(names))
