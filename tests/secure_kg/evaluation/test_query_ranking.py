"""Ranks of hard answers equal those counted one by one; figures are means over answers, queries and types."""

import numpy as np
import pytest
import torch

from protocols.sums.interface import Total
from secure_kg.evaluation.query_metrics import FIGURES, KINDS, QueryMetrics, TypeSums
from secure_kg.evaluation.query_ranking import answer_ranks, rank_queries
from secure_kg.foundation.errors import DataError, TrainingDiverged
from secure_kg.foundation.seeds import seed_sequence
from secure_kg.models.queries.model import QueryModel, QueryModelSize
from secure_kg.models.queries.shapes import EncoderShape
from secure_kg.queries.edges import Stages
from secure_kg.queries.sampling import Evaluation, Sampler, hard_queries
from secure_kg.queries.structures import STRUCTURES

ENTITIES, RELATIONS = 60, 3


def stages() -> Stages:
    draws = np.random.default_rng(0)
    parts = [
        np.column_stack([draws.integers(0, size, number) for size in (ENTITIES, RELATIONS, ENTITIES)])
        for number in (200, 80, 300)
    ]
    return Stages.of(parts, ENTITIES, RELATIONS)


def model() -> QueryModel:
    size = QueryModelSize(ENTITIES, RELATIONS, "gqe", EncoderShape(4))
    made = QueryModel(size, torch.Generator().manual_seed(0), torch.Generator().manual_seed(1))
    with torch.no_grad():
        made.rows[1:ENTITIES:3] = made.rows[0]  # ties
    return made


def evaluation(kind: str, number: int = 20) -> Evaluation:
    graphs = stages()
    return hard_queries(Sampler(graphs.test, seed_sequence(0, kind)), kind, number, graphs.valid, graphs.test)


@pytest.mark.parametrize("kind", ["1p", "2p", "2u"])
def test_ranks_are_those_counted_one_by_one(kind: str) -> None:
    ranker, asked = model(), evaluation(kind)
    found = answer_ranks(ranker, asked, 64)
    with torch.no_grad():
        scores = ranker.scores(STRUCTURES[kind], torch.from_numpy(asked.rows.astype(np.int64))).numpy()
    place = 0
    for line, easy, hard in zip(scores, asked.judged.easy, asked.judged.hard, strict=True):
        others = np.setdiff1d(np.arange(ENTITIES), np.concatenate((easy, hard)))
        for answer in hard:
            above, level = (line[others] > line[answer]).sum(), (line[others] == line[answer]).sum()
            assert found[place] == 1 + above + level / 2
            place += 1
    assert place == len(found)
    if kind == "2p":  # both ways of counting were taken
        assert asked.judged.hard.counts.max() > 12 > asked.judged.hard.counts.min()


def test_blocks_change_nothing() -> None:
    ranker, asked = model(), evaluation("2i", 10)
    whole = answer_ranks(ranker, asked, 64)
    parts = [answer_ranks(ranker, Evaluation("2i", asked.rows[k : k + 1], _one(asked, k)), 64) for k in range(10)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))


def _one(asked: Evaluation, number: int):  # type: ignore[no-untyped-def]
    kept = np.arange(len(asked.rows)) == number
    return type(asked.judged)(asked.judged.easy.chosen(kept), asked.judged.hard.chosen(kept))


def test_scores_that_are_not_finite_are_no_ranks() -> None:
    ranker = model()
    with torch.no_grad():
        ranker.rows[5] = float("nan")
    with pytest.raises(TrainingDiverged):
        rank_queries(ranker, [evaluation("1p")], 64)


def test_figures_are_means_over_answers_then_queries_then_types() -> None:
    one = TypeSums.of(np.array([0, 2, 3]), np.array([1.0, 4.0, 20.0]))
    two = TypeSums.of(np.array([0, 1]), np.array([2.0]))
    assert one.means() == pytest.approx({"mrr": (0.625 + 0.05) / 2, "hits@1": 0.25, "hits@3": 0.25, "hits@10": 0.5})
    figures = QueryMetrics.by_name({"2p": one, "up": two}).figures()
    assert figures["mrr"] == pytest.approx(((0.625 + 0.05) / 2 + 0.5) / 2)
    assert figures["queries"] == {"2p": 2, "up": 1}
    assert list(figures["types"]) == ["2p", "up"]
    with pytest.raises(DataError, match="nothing to rank"):
        QueryMetrics.by_name({}).figures()


def test_sums_over_clients_weight_every_query_of_a_type_alike() -> None:
    parts = [
        QueryMetrics.by_name({"1p": TypeSums.of(np.array([0, 1]), np.array([2.0]))}, 3.0, 2),
        QueryMetrics.by_name({"1p": TypeSums.of(np.array([0, 1, 2]), np.array([1.0, 4.0]))}, 1.0, 2),
    ]
    given = [one.contribution() for one in parts]
    layout = QueryMetrics.layout(2)
    assert layout.real_entries == len(KINDS) * len(FIGURES) + 1
    assert layout.entries - layout.real_entries == len(KINDS) + 1
    total = QueryMetrics.of(Total(given[0].real + given[1].real, given[0].counts + given[1].counts))
    assert total == parts[0] + parts[1]
    assert total.headline == pytest.approx((0.5 + 1 + 0.25) / 3)
    assert (total.examples, total.loss) == (3, 1.0)
