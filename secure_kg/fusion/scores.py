"""Two models as one scorer: s = W x + b with x = [f_single(h, r, t); f_federated(h, r, t)] (FedE, equation 5)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from secure_kg.data.graph import Side, TripleArray
from secure_kg.evaluation.ranking import FilteredRanking, Scorer
from secure_kg.evaluation.sums import RankingSums

_BLOCK_SCORES: Final = 2**20


@dataclass(frozen=True, slots=True)
class Weights:
    """W and b. Candidates are compared with each other only, so b changes no rank; it is the paper's, and is kept."""

    single: float
    federated: float
    bias: float = 0.0


SINGLE_ALONE: Final = Weights(1.0, 0.0)
FEDERATED_ALONE: Final = Weights(0.0, 1.0)


class ScorePair:
    """The scores of both models. The newest block is kept: many weights are tried on the same scores."""

    def __init__(self, single: Scorer, federated: Scorer) -> None:
        self._models = single, federated
        self._newest: tuple[Tensor, Side, tuple[Tensor, Tensor]] | None = None

    def both(self, triples: Tensor, side: Side) -> tuple[Tensor, Tensor]:
        """triples [b, 3] -> twice [b, entities], in double precision."""
        if self._newest is not None:
            known, known_side, scores = self._newest
            if known_side == side and torch.equal(known, triples):
                return scores
        single, federated = (model.scores(triples, side).double() for model in self._models)
        self._newest = triples.clone(), side, (single, federated)
        return single, federated


class FusedScorer:
    """Equation 5. In double precision, so that a weight never makes two different scores of one model equal."""

    def __init__(self, pair: ScorePair, weights: Weights) -> None:
        self._pair, self._weights = pair, weights

    def scores(self, triples: Tensor, side: Side) -> Tensor:
        single, federated = self._pair.both(triples, side)
        return self._weights.single * single + self._weights.federated * federated + self._weights.bias


def rank_each(
    ranking: FilteredRanking,
    pair: ScorePair,
    weights: Sequence[Weights],
    triples: TripleArray,
    side: Side,
    entities: int,
) -> list[RankingSums]:
    """One ranking of `triples` for each of `weights`; the models score every block once."""
    totals = [RankingSums() for _ in weights]
    size = max(1, _BLOCK_SCORES // entities)
    for start in range(0, len(triples), size):
        block = triples[start : start + size]
        for position, one in enumerate(weights):
            totals[position] += ranking.rank(FusedScorer(pair, one), block, side)
    return totals
