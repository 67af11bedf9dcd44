"""Ranking sums add up, and divide only at the end."""

import pytest

from secure_kg.evaluation.sums import RankingSums
from secure_kg.foundation.errors import DataError


def test_sums_weight_triples_not_clients() -> None:
    small, large = RankingSums(1, 1.0, 1, 1, 1, 1, 2), RankingSums(3, 0.5, 0, 1, 2, 1, 25)
    hits = {"hits@1": 0.25, "hits@3": 0.5, "hits@5": 0.5, "hits@10": 0.75}
    assert (small + large).metrics() == {"mrr": 1.5 / 4, **hits, "mean_rank": 27 / 2 / 4}
    assert small + RankingSums() == small


def test_nothing_ranked_is_an_error() -> None:
    with pytest.raises(DataError, match="nothing to rank"):
        RankingSums().metrics()
