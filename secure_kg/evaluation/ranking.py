"""Filtered ranking of a client's triples against all of its entities.

The rank of a triple counts the candidates that score higher, leaving out all other answers that the client knows to be
true (train, valid and test). Ties are shared fairly: the mean of the best and the worst rank they allow, which is the
'realistic' rank of Berrendorf et al., "On the Ambiguity of Rank-Based Evaluation", 2020.
"""

from typing import Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from secure_kg.data.graph import ClientGraph, TripleArray
from secure_kg.errors import TrainingDiverged
from secure_kg.evaluation.answers import KnownAnswers, Side
from secure_kg.evaluation.sums import RankingSums

Sides = Literal["tail", "head", "both"]
"""FedR predicts tails; 'both' ranks every triple twice, once per end."""

BLOCK_SCORES = 2**21
"""Scores per block: 8 MB, which stays near the cache and bounds memory for large vocabularies."""


class Scorer(Protocol):
    """Whatever scores every entity as an answer; higher is better. Every `EmbeddingModel` does."""

    def scores(self, triples: Tensor, side: Side) -> Tensor:
        """triples [b, 3] -> [b, entities], with that side of each triple replaced by every entity. Fresh memory."""
        ...


class FilteredRanking:
    """Ranks against one graph; its filter is built once."""

    def __init__(self, graph: ClientGraph, device: torch.device) -> None:
        known = np.concatenate((graph.train, graph.valid, graph.test))
        self._device, self._entities = device, len(graph.entities)
        self._known = {side: KnownAnswers(known, len(graph.relations), side, device) for side in _sides("both")}

    @torch.no_grad()
    def rank(self, scorer: Scorer, triples: TripleArray, sides: Sides = "tail") -> RankingSums:
        """Sums over triples [n, 3], each ranked once for every side asked for."""
        total = RankingSums()
        size = max(1, BLOCK_SCORES // self._entities)
        for block in torch.split(torch.from_numpy(triples).to(self._device), size):
            for side in _sides(sides):
                total += _sums(self._ranks(scorer, block, side))
        return total

    def _ranks(self, scorer: Scorer, triples: Tensor, side: Side) -> Tensor:
        """triples [b, 3] -> ranks [b] in float64."""
        head, _, tail = triples.t()
        scores = scorer.scores(triples, side)
        if not bool(torch.isfinite(scores).all()):
            raise TrainingDiverged("scores are not finite; a smaller --lr may help")
        # The true answer's score is read from the same matrix: another route could differ in the last bit.
        answer = (tail if side == "tail" else head)[:, None]
        target = scores.gather(1, answer)
        scores[self._known[side].look_up(triples)] = -torch.inf
        scores.scatter_(1, answer, -torch.inf)  # it must not count against itself
        higher = (scores > target).sum(1)
        equal = (scores == target).sum(1)
        return 1.0 + higher.double() + equal.double() / 2


def _sides(sides: Sides) -> tuple[Side, ...]:
    return ("tail", "head") if sides == "both" else (sides,)


def _sums(ranks: Tensor) -> RankingSums:
    hits1, hits3, hits10 = (int((ranks <= k).sum()) for k in (1, 3, 10))
    return RankingSums(len(ranks), float(ranks.reciprocal().sum()), hits1, hits3, hits10)
