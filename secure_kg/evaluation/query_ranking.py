"""Filtered ranking of the hard answers of queries, among all entities of a model."""

from collections.abc import Iterable

import numpy as np
import torch

from secure_kg.evaluation.query_metrics import QueryMetrics, TypeSums
from secure_kg.foundation.errors import TrainingDiverged
from secure_kg.kernels.answer_ranks import Ids, Offsets, Ranks, rank_answers
from secure_kg.models.queries.model import QueryModel
from secure_kg.queries.answers import AnswerSets
from secure_kg.queries.sampling import Evaluation
from secure_kg.queries.structures import STRUCTURES

_MOST_QUERIES = 1024  # of one block: beyond that blocks gain nothing
# Products of few rows take another route inside the library, on which equal rows need not give equal bits.
_FEWEST_QUERIES = 16


def rank_queries(model: QueryModel, evaluations: Iterable[Evaluation], megabytes: int) -> QueryMetrics:
    """Sums over queries, by type. A block of scores has at most so many megabytes."""
    types: dict[str, TypeSums] = {}
    for one in evaluations:
        ranks = answer_ranks(model, one, megabytes)
        types[one.kind] = types.get(one.kind, TypeSums()) + TypeSums.of(one.judged.hard.starts, ranks)
    return QueryMetrics.by_name(types)


@torch.no_grad()
def answer_ranks(model: QueryModel, evaluation: Evaluation, megabytes: int) -> Ranks:
    """The rank of every hard answer, in the order of the sets."""
    easy, hard = evaluation.judged.easy, evaluation.judged.hard
    ranks = np.empty(len(hard.entities), dtype=np.float64)
    block = min(_MOST_QUERIES, max(1, megabytes * 2**20 // (4 * model.size.entities)))
    for first in range(0, len(evaluation.rows), block):
        rows = evaluation.rows[first : first + block].astype(np.int64)
        filled = np.resize(rows, (max(len(rows), _FEWEST_QUERIES), rows.shape[1]))
        scores = model.scores(STRUCTURES[evaluation.kind], torch.from_numpy(filled).to(model.rows.device))
        chosen = slice(first, first + len(rows))
        of_block = ranks[hard.starts[first] : hard.starts[first + len(rows)]]
        if not rank_answers(
            scores[: len(rows)].cpu().contiguous().numpy(), _sets(easy, chosen), _sets(hard, chosen), of_block
        ):
            raise TrainingDiverged("scores are not finite; a smaller --lr may help")
    return ranks


def _sets(sets: AnswerSets, chosen: slice) -> tuple[Offsets, Ids]:
    """The sets of some queries that follow each other."""
    starts = sets.starts[chosen.start : chosen.stop + 1]
    return starts - starts[0], sets.entities[starts[0] : starts[-1]]
