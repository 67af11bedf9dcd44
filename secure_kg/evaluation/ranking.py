"""Filtered ranking of a client's triples against all of its entities.

The rank of a triple counts the candidates that score higher, leaving out all other answers that the client knows to be
true (train, valid and test). Nothing is sorted. Ties are shared fairly: the mean of the best and the worst rank they
allow, which is the 'realistic' rank of Berrendorf et al., "On the Ambiguity of Rank-Based Evaluation", 2020.

Queries go in blocks. Distance models on the CPU need no memory beyond the tables; otherwise a block's scores stay
within a budget.
"""

from typing import Final, Literal, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from secure_kg.data.graph import ClientGraph, Side, TripleArray
from secure_kg.evaluation.answers import KnownAnswers
from secure_kg.evaluation.sums import RankingSums
from secure_kg.foundation.errors import TrainingDiverged
from secure_kg.kernels import ranks
from secure_kg.models.base import EmbeddingModel
from secure_kg.models.geometry import Answers, Counts, NotFinite

Sides = Literal["tail", "head", "both"]
"""The papers predict tails; 'both' ranks every triple twice, once per end, as the rest of the field does."""

USUAL_MEGABYTES: Final = 64
"""Of scores per block: large enough for fast products, small beside the tables of a large graph."""
_FEWEST_QUERIES: Final = 16
_MOST_QUERIES: Final = 1024  # of one block: beyond that blocks gain nothing, and their points take memory too


class Scorer(Protocol):
    """Anything that scores all entities as answers to the queries of triples [b, 3]: [b, entities]."""

    def scores(self, triples: Tensor, side: Side) -> Tensor: ...


class FilteredRanking:
    """Ranks against one graph; its filter is built once."""

    def __init__(self, graph: ClientGraph, device: torch.device, megabytes: int = USUAL_MEGABYTES) -> None:
        known = np.concatenate((graph.train, graph.valid, graph.test))
        self._device, self._entities = device, len(graph.entities)
        self._known = {side: KnownAnswers(known, len(graph.relations), side, device) for side in _sides("both")}
        self._block = min(_MOST_QUERIES, max(1, megabytes * 2**20 // (4 * max(1, self._entities))))

    @torch.no_grad()
    def rank(self, scorer: EmbeddingModel | Scorer, triples: TripleArray, sides: Sides = "tail") -> RankingSums:
        """Sums over triples [n, 3], each ranked once for every side asked for."""
        if isinstance(scorer, EmbeddingModel) and not all(
            bool(table.isfinite().all()) for table in scorer.parameters()
        ):
            raise _diverged()  # a NaN is neither above nor below anything, and would look like a good rank
        total = RankingSums()
        for block in torch.split(torch.from_numpy(triples).to(self._device), self._block):
            for side in _sides(sides):
                total += _sums(self._ranks(scorer, block, side))
        return total

    def _ranks(self, scorer: EmbeddingModel | Scorer, triples: Tensor, side: Side) -> Tensor:
        """triples [b, 3] -> ranks [b] in float64."""
        truth = triples[:, 2 if side == "tail" else 0].contiguous()
        answers = Answers(truth, *self._known[side].ranges(triples), self._known[side].all)
        if isinstance(scorer, EmbeddingModel):
            points = scorer.query_points(triples, side)
            if not bool(points.isfinite().all()):
                raise _diverged()
            try:
                counts = scorer.geometry.fused_counts(points, scorer.entity, answers)
            except NotFinite:
                raise _diverged() from None
            if counts is None:
                # Similarities, not scores: an offset would round them, and make ties where there are none. Products
                # of few rows take another route inside the library, on which equal rows need not give equal bits.
                filled = pad(points, (0, 0, 0, max(0, _FEWEST_QUERIES - len(points))))
                similarity = scorer.geometry.pairs(filled, scorer.entity)[: len(points)]
                counts = self._count(similarity, triples, side, answers)
        else:
            counts = self._count(scorer.scores(triples, side), triples, side, answers)
        better, equal = counts
        return 1.0 + better.double() + equal.double() / 2

    def _count(self, scores: Tensor, triples: Tensor, side: Side, answers: Answers) -> Counts:
        """Candidates above and level with the answer, from scores [b, entities]."""
        if scores.device.type == "cpu":
            better, equal = (torch.empty(len(scores), dtype=torch.int64) for _ in range(2))
            if not ranks.count_scores(scores.contiguous().numpy(), *answers.arrays(), better.numpy(), equal.numpy()):
                raise _diverged()
            return better, equal
        if not bool(scores.isfinite().all()):
            raise _diverged()
        return torch_count(scores, answers.truth, *self._known[side].look_up(triples))


def torch_count(scores: Tensor, truth: Tensor, rows: Tensor, known: Tensor) -> Counts:
    """The same on any device: scores [b, n]; the known answers of query rows[k] are known[k]."""
    # The true answer's score is read from the same matrix: another route could differ in the last bit.
    target = scores.gather(1, truth[:, None])
    other = known != truth[rows]
    rows, known = rows[other], known[other]
    found = scores[rows, known], target[rows, 0]
    better = (scores > target).sum(1).index_add_(0, rows, (found[0] > found[1]).long(), alpha=-1)
    equal = (scores == target).sum(1).index_add_(0, rows, (found[0] == found[1]).long(), alpha=-1)
    return better, equal - 1  # the answer has met itself


def _diverged() -> TrainingDiverged:
    return TrainingDiverged("scores are not finite; a smaller --lr may help")


def _sides(sides: Sides) -> tuple[Side, ...]:
    return ("tail", "head") if sides == "both" else (sides,)


def _sums(ranks: Tensor) -> RankingSums:
    hits1, hits3, hits10, hits5 = (int((ranks <= k).sum()) for k in (1, 3, 10, 5))
    doubled = int((2 * ranks).sum())  # exact: halves, far below 2^53
    return RankingSums(len(ranks), float(ranks.reciprocal().sum()), hits1, hits3, hits10, hits5, doubled)
