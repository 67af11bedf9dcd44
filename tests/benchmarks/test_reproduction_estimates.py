"""Means, intervals and paired differences against what can be worked out by other means."""

import math

import numpy as np
import pytest

from benchmarks.reproduction.estimates import T_975, estimate, paired, t_975


def test_the_t_table_against_the_integral_of_the_density() -> None:
    # t = sqrt(ν) tan θ turns Student's density into cos^(ν-1) θ on (-π/2, π/2), which is smooth and bounded.
    angles = np.linspace(-math.pi / 2, math.pi / 2, 20_001)
    for freedom, quantile in enumerate(T_975, start=1):
        density = np.cos(angles) ** (freedom - 1)
        below = angles <= math.atan(quantile / math.sqrt(freedom))
        assert density[below].sum() / density.sum() == pytest.approx(0.975, abs=2e-4)
    assert t_975(500) == T_975[-1]


def test_three_values_by_hand() -> None:
    found = estimate([1.0, 2.0, 3.0])
    assert found is not None
    assert (found.mean, found.deviation) == (2.0, 1.0)
    assert found.half_width == pytest.approx(4.303 / math.sqrt(3))
    assert found.sign == 0
    assert found.to_json()["interval_95"] == [pytest.approx(-0.4844, abs=1e-4), pytest.approx(4.4844, abs=1e-4)]


def test_one_value_has_no_interval_and_none_no_mean() -> None:
    single = estimate([0.25])
    assert single is not None
    assert (single.mean, single.deviation, single.half_width, single.sign) == (0.25, None, None, 0)
    assert estimate([]) is None


def test_differences_are_taken_seed_by_seed() -> None:
    found = paired({0: 0.5, 1: 0.25, 2: 9.0}, {1: 0.125, 0: 0.375, 3: 9.0})
    assert found is not None
    assert found.values == (0.125, 0.125)
    assert found.half_width == 0  # luck of the split cancels
    assert found.sign == 1
    assert paired({0: 1.0}, {1: 1.0}) is None
