"""The grid of central noise: sensitivity after rounding, deviation, and noise from the operating system."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from secure_kg.foundation.errors import UserError
from secure_kg.privacy.draws.noise import Grid, SecretNoise
from secure_kg.privacy.draws.sampling import poisson_sample
from tests.support.fixed_gaussian import InsecureNoNoise, InsecureSeededNoise


@given(
    st.floats(1e-3, 1e3),
    st.lists(st.tuples(st.floats(-100, 100), st.floats(-1, 1)), min_size=1, max_size=30),
)
def test_rounded_sums_of_neighbours_differ_by_no_more_than_the_deviation_is_for(
    sensitivity: float, entries: list[tuple[float, float]]
) -> None:
    """At multiplier 1 the deviation is the sensitivity after rounding."""
    before, change = (torch.tensor(column, dtype=torch.float64) for column in zip(*entries, strict=True))
    change *= sensitivity / max(1.0, float(change.norm()))
    grid = Grid(sensitivity, len(entries))
    rounded = [grid.noised(values, 1.0, InsecureNoNoise()) for values in (before, before + change)]
    assert float((rounded[1] - rounded[0]).norm()) <= grid.sigma(1.0) * grid.unit


@given(st.floats(1e-6, 1e6), st.integers(1, 10**6), st.floats(0.01, 100))
def test_the_deviation_is_what_was_asked_for_and_little_more(sensitivity: float, many: int, multiplier: float) -> None:
    grid = Grid(sensitivity, many)
    deviation = grid.sigma(multiplier) * grid.unit
    assert multiplier * sensitivity <= deviation <= multiplier * sensitivity * (1 + 2**-9) + grid.unit
    assert math.log2(grid.unit).is_integer()


def test_results_lie_on_the_grid() -> None:
    grid = Grid(0.3, 7)
    noised = grid.noised(torch.randn(50, dtype=torch.float64), 2.0, SecretNoise())
    assert torch.equal(noised / grid.unit, (noised / grid.unit).round())


def test_secret_noise_has_the_deviation_and_never_repeats() -> None:
    grid = Grid(1.0, 4)
    first, second = (grid.noised(torch.zeros(20_000), 3.0, SecretNoise()) for _ in range(2))
    assert not torch.equal(first, second)
    for noised in (first, second):
        assert float(noised.std()) == pytest.approx(3.0, rel=0.03)  # six deviations
        assert abs(float(noised.mean())) < 6 * 3.0 / math.sqrt(len(noised))


@pytest.mark.parametrize("multiplier", [0.0, -1.0, math.inf, math.nan])
def test_no_noise_is_not_a_noise(multiplier: float) -> None:
    with pytest.raises(UserError, match="multiplier"):
        Grid(1.0, 1).noised(torch.zeros(3), multiplier, InsecureSeededNoise())


@pytest.mark.parametrize(("sensitivity", "coordinates"), [(0.0, 1), (math.inf, 1), (1.0, 0)])
def test_a_grid_for_nothing_is_refused(sensitivity: float, coordinates: int) -> None:
    with pytest.raises(UserError, match="sensitivity"):
        Grid(sensitivity, coordinates)


# --- samples --------------------------------------------------------------------------------------------------------


def test_a_full_batch_is_everything() -> None:
    assert poisson_sample(5, 1.0).tolist() == [0, 1, 2, 3, 4]


def test_a_sample_is_by_each_triple_alone() -> None:
    """Sizes vary as a binomial does, which batches of a fixed size would not."""
    sizes = [len(poisson_sample(400, 0.25)) for _ in range(400)]
    assert np.mean(sizes) == pytest.approx(100, abs=6 * math.sqrt(75 / 400))
    assert 60 < np.var(sizes, ddof=1) < 95  # 75 ± 5.3
    draws = [0, 2**62 - 1, 2**62, 2**64 - 1]
    given_bytes = np.array(draws, dtype="<u8").tobytes()
    assert poisson_sample(4, 0.25, lambda count: given_bytes[:count]).tolist() == [0, 1]


@pytest.mark.parametrize("rate", [0.0, 1.5, math.nan])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(UserError, match="sampling rate"):
        poisson_sample(3, rate)
