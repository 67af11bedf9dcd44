"""Extraction of trained rows: opened means give them, a budget's worth does not, and positions give an estimate."""

import numpy as np
import pytest

from protocols.foundation.errors import SumAbandoned
from secure_kg.attacks.asked_scores import Asking, means_of
from secure_kg.attacks.extraction import (
    MORE_QUERIES,
    Extraction,
    Similarity,
    chosen_queries,
    estimate_result,
    extraction_result,
    rows_from_means,
    rows_from_positions,
    scores_of,
)
from secure_kg.attacks.extraction_attempts import (
    WIDTH,
    from_best_positions,
    from_opened_means,
    made_up_table,
    within_budget,
)

SIMILARITIES: tuple[Similarity, ...] = ("inner product", "squared distance")


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("backend", ["plain", "masked"])
def test_opened_means_give_every_row(backend: str, similarity: Similarity) -> None:
    result = from_opened_means(backend, similarity)
    assert result.succeeded
    assert result.scores["rows"] == 1.0
    assert result.scores["explained"] > 0.999999
    assert result.chance["rows"] == 0.0


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_within_the_budget_no_row_comes_out_and_half_of_the_dimensions_stay_open(similarity: Similarity) -> None:
    result = within_budget("masked", similarity)
    assert not result.succeeded
    assert result.scores["rows"] == 0.0
    # The span of the queries does come out: a budget bounds dimensions. One set of scorers allows a third of them here.
    assert 0.2 < result.scores["explained"] < 0.5


def test_the_budget_refuses_the_batch_that_would_give_the_rows() -> None:
    rows = made_up_table(0, positions=20, width=4)
    queries = chosen_queries(4, 4, np.random.default_rng(0))
    Asking("masked", rows, queries, "inner product", 20, limit=4).answered()
    with pytest.raises(SumAbandoned, match="--allow-extraction"):
        Asking("masked", rows, queries, "inner product", 20, limit=3).answered()


@pytest.mark.long
@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_best_positions_give_no_row_but_an_estimate(similarity: Similarity) -> None:
    """No row exactly. On a small table the directions of rows show all the same, and the result says so."""
    exact, estimate = from_best_positions(similarity)
    assert not exact.succeeded
    assert exact.scores["rows"] == 0.0
    assert estimate.succeeded
    assert 0.15 < estimate.scores["explained"] < 0.5


def _estimate(positions: int, width: int, top: int, queries: int) -> Extraction:
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(positions, width)) / np.sqrt(width)
    asked = chosen_queries(width, queries, draw)
    best = np.argsort(-scores_of(rows, asked, "inner product"), axis=1)[:, :top]
    return Extraction.score(rows_from_positions(asked, list(best), positions), rows)


def test_ten_answers_of_a_large_table_are_no_better_than_guessing_and_a_thousand_are() -> None:
    few, many = _estimate(15_000, 64, 10, 80), _estimate(15_000, 64, 1000, 80)
    assert few.rms_error > 0.98 * few.rms_of_mean_row
    assert not estimate_result(few, 80, "positions", "x").succeeded
    assert many.recovered == 0
    assert estimate_result(many, 80, "positions", "x").succeeded


def test_more_queries_make_the_estimate_better() -> None:
    shares = [_estimate(500, 16, 10, queries).explained for queries in (16, 64, 256)]
    assert shares == sorted(shares)
    assert shares[-1] > 2 * shares[0]


@pytest.mark.parametrize(("similarity", "enough"), [("inner product", WIDTH), ("squared distance", WIDTH + 1)])
def test_how_many_queries_it_takes(similarity: Similarity, enough: int) -> None:
    rows, draw = made_up_table(3), np.random.default_rng(3)
    for queries, succeeds in ((enough - 1, False), (enough, True), (WIDTH + MORE_QUERIES, True)):
        asked = chosen_queries(WIDTH, queries, draw)
        found = Extraction.score(rows_from_means(asked, scores_of(rows, asked, similarity), similarity), rows)
        assert (found.share == 1.0) is succeeds, queries


def test_a_guess_of_noise_and_the_mean_row_do_not_count() -> None:
    rows, draw = made_up_table(4), np.random.default_rng(4)
    for guess in (draw.normal(size=rows.shape), np.broadcast_to(rows.mean(axis=0), rows.shape)):
        found = Extraction.score(guess, rows)
        assert not extraction_result(found, 1, "nothing", "x").succeeded
        assert not estimate_result(found, 1, "nothing", "x").succeeded
    assert Extraction.score(-rows, rows).explained == 0.0


def test_means_must_be_there_for_every_position() -> None:
    rows = made_up_table(0, positions=20, width=4)
    queries = chosen_queries(4, 2, np.random.default_rng(0))
    with pytest.raises(ValueError, match="not opened"):
        means_of(Asking("plain", rows, queries, "inner product", 5).answered(), 20)
    with pytest.raises(ValueError, match="opens no means"):
        means_of(Asking("topk", rows, queries, "inner product", 5).answered(), 20)
