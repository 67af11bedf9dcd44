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
from secure_kg.federation.client.private_learner import PrivateLearner
from secure_kg.federation.plan.row_sum import Rows
from secure_kg.learning.kge import KgeLearner
from secure_kg.learning.learner import Contributed


@dataclass(slots=True)
class Kept:
    """What one client has uploaded and received, by round."""

    uploaded: dict[int, Tables] = field(default_factory=dict)
    """Its contribution without noise, and its relation rows at that time."""
    means: dict[int, Rows] = field(default_factory=dict)
    """What came back for its own entities [entities, width]; zero where too few hold one."""
    held: dict[int, Tables] = field(default_factory=dict)
    """Its model once it has applied the means."""


class WatchedLearner(KgeLearner):
    """Keeps the uploads and means of some rounds. Every client must be drawn for every round: rounds are counted."""

    def keep(self, rounds: Collection[int], means: Callable[[str], Rows] | None = None) -> Kept:
        """Keep these rounds. `means`: where to read what arrived of a shared block, as it arrived."""
        self._rounds, self._means, self._round, self.kept = frozenset(rounds), means, 0, Kept()
        return self.kept

    def contributed_block(self, block: str) -> Contributed:
        rows = self._sent(super().contributed_block(block), self._round + 1)
        self._round += 1
        if self._round in self._rounds:
            entities = rows[: len(self.graph.entities)].astype(np.float32)
            self.kept.uploaded[self._round] = Tables(entities, self.export_block("relation"))
        return rows

    def load_block(self, block: str, rows: Rows) -> None:
        super().load_block(block, rows)
        if self._round in self._rounds:
            self.kept.held[self._round] = Tables(self.export_block("entity"), self.export_block("relation"))
            if self._means is not None:
                self.kept.means[self._round] = self._means(block)[: len(self.graph.entities)]

    def _sent(self, rows: Contributed, round: int) -> Contributed:
        return rows


class ActiveLearner(WatchedLearner):
    """Reverses rows in some rounds, and repeats its upload in the round after each, while the others train."""

    def plan(self, tails: Mapping[int, npt.NDArray[np.int64]]) -> None:
        """By round: the entities whose rows it reverses."""
        self._tails = dict(tails)
        self._last: Contributed = np.zeros((0, 0), dtype=np.float32)

    def _sent(self, rows: Contributed, round: int) -> Contributed:
        if round in self._tails:
            self._last = reverse(rows, self._tails[round])
            return self._last
        return self._last if round - 1 in self._tails else rows


class WatchedPrivateLearner(WatchedLearner, PrivateLearner):
    """The same of a client that trains with differential privacy."""


class ActivePrivateLearner(ActiveLearner, PrivateLearner):
    """Likewise."""
