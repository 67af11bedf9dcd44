"""The learner that counts: one table of tails by relation, released once, and nothing trained.

Parties:     one client among n that share the table.
Adversary:   whoever sees the sum of the tables, and knows all settings and the seed.
Reveals:     (ε, δ) by the settings; `secure_kg.federation.plan.count_plan` has the table and its sensitivity.
Assumes:     the names of the client's entities and relations are public. Noise comes with the sum
             (`protocols.sums.noise_shares`).
Not covered: a client's own test results, which stay with it. Relations whose names fall into one bucket are
             counted together; how many of a client's own do is for that client alone.

Tails are ranked by the noised counts of their relation, cells below a threshold as empty. Heads are not ranked: all of
them are level, and their ranks are those of a blind guess.
"""

import hashlib
import math
from collections import Counter
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from protocols.foundation import wire
from secure_kg.data.graph import ClientGraph, Part, Side
from secure_kg.data.soundness import about_graph
from secure_kg.evaluation.metrics import Metrics
from secure_kg.evaluation.ranking import FilteredRanking
from secure_kg.evaluation.ranking_metrics import RankingMetrics
from secure_kg.federation.plan.count_plan import CountPlan, bucket
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES
from secure_kg.foundation.errors import SettingsError, UserError
from secure_kg.learning.device import to_device
from secure_kg.learning.learner import Contributed, Learner, Rows, TrainStats

_TABLE: Final = "counts"


class CountLearner(Learner):
    """Exact counts leave it through `contributed_block` only, and noise is added to them there."""

    def __init__(self, settings: RunConfig, graph: ClientGraph, client: int, device: torch.device) -> None:
        if settings.privacy is None or not settings.privacy.counts:
            raise ValueError("a learner for --dp counts")
        self.graph, self._device = graph, device
        self._plan = CountPlan.of(settings, STRATEGIES[settings.strategy])
        self._threshold, self._width = settings.privacy.dp_count_threshold, settings.privacy.dp_count_width
        self._columns = np.array([bucket(name, self._width) for name in graph.relations], dtype=np.int64)
        if len(graph.entities) > self._plan.union_rows:
            raise SettingsError(f"--union-bound: this client alone has more names than {self._plan.union_rows}")
        if len(graph.entities) * (self._width + 1) * settings.ring_bits // 8 > wire.MAX_FRAME_BYTES:
            raise UserError(f"--dp-count-width {self._width}: {len(graph.entities)} such rows fit no message")
        self._table: Rows = np.zeros((len(graph.entities), self._width), dtype=np.float32)
        """The mean of the clients' noised tables [entities, width]; zero before the release."""
        none, megabytes = np.empty((0, 3), dtype=np.int64), settings.training.eval_megabytes
        known = ClientGraph(graph.entities, graph.relations, none, graph.valid, graph.test)
        self._ranking = FilteredRanking(graph, device, megabytes)
        self._public_ranking = FilteredRanking(known, device, megabytes)

    def train(self, round: int) -> TrainStats:
        """Nothing is trained, and nothing is told of numbers."""
        return TrainStats(0.0, 0, 1)

    def block_names(self, block: str) -> tuple[str, ...]:
        return self.graph.entities

    def export_block(self, block: str) -> Rows:
        return self._table.copy()

    def contributed_block(self, block: str) -> Contributed:
        """Exact counts [entities, width], in double precision."""
        _, relations, tails = self.graph.train.T
        places = tails * self._width + self._columns[relations]
        counts: npt.NDArray[np.float64] = np.bincount(places, minlength=self._table.size).astype(np.float64)
        return counts.reshape(self._table.shape)

    def load_block(self, block: str, rows: Rows) -> None:
        if rows.shape != self._table.shape:
            raise ValueError(f"{block} rows must have shape {self._table.shape}, not {rows.shape}")
        self._table = np.ascontiguousarray(rows, dtype=np.float32)

    def evaluate(self, part: Part, trained: TrainStats | None = None) -> RankingMetrics:
        return self._ranked_by(self._ranking if part == "test" else self._public_ranking, part)

    def told_results(self, part: Part, own: Metrics) -> RankingMetrics:
        """Ranks that leave out evaluation triples alone: those are public where results are told, train triples not."""
        return self._ranked_by(self._public_ranking, part)

    def _ranked_by(self, ranking: FilteredRanking, part: Part) -> RankingMetrics:
        triples, counts = self.graph.part(part), self._ranked()
        tail = ranking.rank(counts, triples, "tail")
        return RankingMetrics(tail, tail + ranking.rank(counts, triples, "head"))

    def _ranked(self) -> "RankedCounts":
        """Counts of this client's relations, less those that may be noise alone. A mean has 1/n of a sum's noise."""
        shares, clients = self._plan.shares(), self._plan.clients
        level = self._threshold * shares.share * math.sqrt(clients) / clients
        own = self._table[:, self._columns].T
        return RankedCounts(to_device(np.where(own < level, np.float32(0.0), own), self._device))

    def about(self) -> dict[str, Any]:
        """With how many of this client's relations share a bucket with another one of its own."""
        met = Counter(self._columns.tolist())
        return about_graph(self.graph) | {"colliding_relations": sum(times for times in met.values() if times > 1)}

    def digest(self) -> bytes:
        return hashlib.sha256(f"{_TABLE}/{self._table.shape}/".encode() + self._table.astype("<f4").tobytes()).digest()

    def parameters_state(self) -> dict[str, Tensor]:
        return {_TABLE: torch.from_numpy(self._table.copy())}

    def load_parameters(self, state: dict[str, Tensor]) -> None:
        self.load_block(_TABLE, state[_TABLE].numpy())

    def state(self) -> dict[str, Tensor]:
        return self.parameters_state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.load_parameters(state)


class RankedCounts:
    """Counts as scores of tails. All heads are level."""

    def __init__(self, table: Tensor) -> None:
        """`table` [relations, entities]."""
        self._table = table

    def scores(self, triples: Tensor, side: Side) -> Tensor:
        """triples [b, 3] -> [b, entities]."""
        found = self._table[triples[:, 1]]
        return found if side == "tail" else torch.zeros_like(found)


def make_learner(settings: RunConfig, graph: ClientGraph, client: int, device: torch.device) -> CountLearner:
    """A client's learner, by the settings of its run."""
    return CountLearner(settings, graph, client, device)
