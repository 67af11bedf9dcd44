"""Measures of membership attacks against their definitions, and their intervals against repetition."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from secure_kg.attacks.membership.measures import (
    auc_and_error,
    best_f1,
    f1_at,
    measure,
    roc_points,
    true_positives_at,
)
from secure_kg.attacks.membership.recorded import beats_guessing


def test_the_auc_is_that_of_a_library_ties_included() -> None:
    draw = np.random.default_rng(0)
    members, others = draw.integers(0, 9, 80).astype(float), draw.integers(0, 7, 50).astype(float)
    labels = np.r_[np.ones(80), np.zeros(50)]
    assert auc_and_error(members, others)[0] == pytest.approx(roc_auc_score(labels, np.r_[members, others]))


def test_the_interval_holds_the_true_auc_about_95_times_in_100() -> None:
    draw, truth = np.random.default_rng(1), 0.7602499  # Φ(1 / √2)
    held = 0
    for _ in range(300):
        told = measure(draw.normal(1, 1, 60), draw.normal(0, 1, 60))
        held += told.low <= truth <= told.high
    assert 270 <= held <= 297


def test_scores_that_say_nothing_are_near_a_half_and_do_not_beat_guessing() -> None:
    draw = np.random.default_rng(2)
    told = measure(draw.normal(size=1000), draw.normal(size=1000), draw.normal(size=500))
    assert abs(told.auc - 0.5) < 0.05
    assert not beats_guessing(told)
    assert told.always_yes == pytest.approx(2 / 3)
    assert told.f1 is not None
    assert told.f1 < 0.3
    assert told.best_f1 >= told.always_yes - 1e-9


def test_scores_that_say_all() -> None:
    told = measure(np.arange(10.0) + 100, np.arange(10.0), np.arange(10.0))
    assert (told.auc, told.tpr, told.best_f1) == (1.0, 1.0, 1.0)
    assert told.low < 1.0  # ten of each do not prove it
    assert beats_guessing(told)


def test_true_positives_are_counted_where_one_other_in_a_hundred_passes() -> None:
    others = np.arange(100.0)
    assert true_positives_at(np.array([98.0, 98.5, 99.5]), others, 0.01) == pytest.approx(2 / 3)
    assert true_positives_at(np.array([98.5, 99.5]), others[:50], 0.01) == 1.0


def test_f1_is_that_of_hits_and_false_positives() -> None:
    members, others = np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.0])
    assert f1_at(members, others, 2.0) == pytest.approx(2 * 2 / (3 + 3))
    assert best_f1(members, others) == pytest.approx(6 / 7)


def test_the_curve_goes_from_corner_to_corner() -> None:
    points = roc_points(np.random.default_rng(0).normal(size=500), np.random.default_rng(1).normal(size=400))
    assert points[0] == (0.0, 0.0)
    assert points[-1] == (1.0, 1.0)
    assert all(a <= c and b <= d for (a, b), (c, d) in itertools.pairwise(points))


def test_a_ratio_without_a_value_speaks_against_membership() -> None:
    assert measure(np.array([np.nan, 1.0]), np.array([0.0, -np.inf])).auc == pytest.approx((0.25 + 1) / 2)


def test_nothing_to_measure_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one of each"):
        measure(np.zeros(0), np.ones(3))
