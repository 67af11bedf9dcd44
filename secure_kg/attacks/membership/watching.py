"""Learners of clients that keep what they upload and receive: the attacker's, and the victim's for the truth.

A client runs its own code. The attacker's learner trains as every other one and keeps copies; the active one uploads
reversed rows in the rounds of its choice (A_CIA), which no sum can notice.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from secure_kg.attacks.membership.client_attacks import reverse
from secure_kg.attacks.membership.plausibility import Tables
from secure_kg.federation.plan.row_sum import Rows
from secure_kg.learning.kge import KgeLearner

SHARED = "entity"
"""The block that FedE shares."""


@dataclass(slots=True)
class Kept:
    """What one client has uploaded and received, by round."""

    uploaded: dict[int, Tables] = field(default_factory=dict)
    """Its contribution, and its relation rows at that time."""
    means: dict[int, Rows] = field(default_factory=dict)
    """What came back for its own entities [entities, width]; zero where too few hold one."""


class WatchedLearner(KgeLearner):
    """Keeps the uploads and means of some rounds. Every client must be drawn for every round: rounds are counted."""

    def keep(self, rounds: Collection[int], means: Callable[[], Rows] | None = None) -> Kept:
        """Keep these rounds. `means`: where to read what arrived, as it arrived."""
        self._rounds, self._means, self._round, self.kept = frozenset(rounds), means, 0, Kept()
        return self.kept

    def contributed_block(self, block: str) -> Rows:
        rows = self._sent(np.asarray(super().contributed_block(block), dtype=np.float32), self._round + 1)
        if block == SHARED:
            self._round += 1
            if self._round in self._rounds:
                self.kept.uploaded[self._round] = Tables(rows.copy(), self.export_block("relation"))
        return rows

    def load_block(self, block: str, rows: Rows) -> None:
        super().load_block(block, rows)
        if block == SHARED and self._means is not None and self._round in self._rounds:
            self.kept.means[self._round] = self._means()

    def _sent(self, rows: Rows, round: int) -> Rows:
        return rows


class ActiveLearner(WatchedLearner):
    """Reverses rows in some rounds, and repeats its upload in the round after each, while the others train."""

    def plan(self, tails: Mapping[int, npt.NDArray[np.int64]]) -> None:
        """By round: the entities whose rows it reverses."""
        self._tails, self._last = dict(tails), np.zeros((0, 0), dtype=np.float32)

    def _sent(self, rows: Rows, round: int) -> Rows:
        if round in self._tails:
            self._last = reverse(rows, self._tails[round])
            return self._last
        return self._last if round - 1 in self._tails else rows
