"""What sums with shares of noise cost: like one Gaussian, but for rounding, dropouts and the parts of delta."""

import math

import pytest

from protocols.foundation.errors import SumAbandoned
from protocols.sums.interface import SumLayout
from protocols.sums.noise_shares import NoiseShares
from secure_kg.foundation.errors import UserError
from secure_kg.privacy.accounting.accountant import Budget, Release, epsilon_of, noise_for
from secure_kg.privacy.accounting.shares import SharedSums, deviation_for, settled_deviation, spent_by_sums

DELTA, STEPS, CLIP = 1e-5, 100, 0.1
MULTIPLIER = noise_for(Budget(4.0, DELTA), STEPS)
SHARES = NoiseShares(MULTIPLIER * CLIP, clients=5, corrupt=1, dropouts=1)
SUMS = SharedSums(SHARES, unit=2.0**-24, sensitivity=CLIP, coordinates=64, entries=10_000)


def test_the_least_that_can_be_opened_costs_what_one_gaussian_costs() -> None:
    spent = spent_by_sums(SUMS, [4] * STEPS, DELTA)
    assert spent.epsilon == pytest.approx(4.0, rel=1e-4)
    assert spent.epsilon > 4.0  # rounding is not free
    assert spent.delta <= DELTA
    assert spent.delta == pytest.approx(DELTA)
    assert 0 < spent.delta_of_sampler < 1e-12
    assert 0 < spent.delta_of_tails < 1e-12


def test_more_shares_cost_less_and_one_gaussian_is_what_they_are_worth() -> None:
    everybody = spent_by_sums(SUMS, [5] * STEPS, DELTA).epsilon
    worth = Release(MULTIPLIER * math.sqrt(4 / 3))
    assert everybody == pytest.approx(epsilon_of([(worth, STEPS)], DELTA), rel=1e-4)
    assert everybody < spent_by_sums(SUMS, [5] * 50 + [4] * 50, DELTA).epsilon < 4.0


@pytest.mark.parametrize("contributors", [0, 1, 3])
def test_a_sum_of_fewer_is_refused(contributors: int) -> None:
    with pytest.raises(SumAbandoned, match="honest shares of noise, of which a sum needs 3"):
        spent_by_sums(SUMS, [5, contributors], DELTA)


def test_coarse_units_and_many_entries_cost_more() -> None:
    coarse = SharedSums(SHARES, unit=2.0**-8, sensitivity=CLIP, coordinates=64, entries=10_000)
    assert spent_by_sums(coarse, [4] * STEPS, DELTA).epsilon > 1.1 * spent_by_sums(SUMS, [4] * STEPS, DELTA).epsilon
    dense = SharedSums(SHARES, unit=2.0**-8, sensitivity=CLIP, coordinates=1024, entries=10_000)
    assert dense.release(4).noise < coarse.release(4).noise < SUMS.release(4).noise


def test_samples_cost_less() -> None:
    sampled = SharedSums(SHARES, SUMS.unit, CLIP, 64, 10_000, sampling=0.1)
    assert sampled.release(5).sampling == 0.1
    assert spent_by_sums(sampled, [4] * 10, DELTA).epsilon < spent_by_sums(SUMS, [4] * 10, DELTA).epsilon


def test_a_delta_below_the_cut_tails_is_refused_in_one_line() -> None:
    with pytest.raises(UserError, match="draws of noise cost"):
        spent_by_sums(SUMS, [5] * STEPS, 1e-24)


@pytest.mark.parametrize("unit", [2.0**-8, 2.0**-24])
def test_the_deviation_for_a_multiplier_gives_it(unit: float) -> None:
    sums = SharedSums(SHARES, unit, CLIP, 64, 10_000)
    shares = NoiseShares(deviation_for(MULTIPLIER, sums), clients=5, corrupt=1, dropouts=1)
    found = SharedSums(shares, unit, CLIP, 64, 10_000).release(4)
    assert MULTIPLIER <= found.noise < MULTIPLIER * (1 + 1e-9)


def test_the_deviation_settles_where_the_layout_has_room_for_it() -> None:
    def unit_of(deviation: float) -> float:
        bound = NoiseShares(deviation, clients=5, corrupt=1, dropouts=1).bound
        return SumLayout(10_000, 0, CLIP, 0, parties=5, ring_bits=32, noise_bound=bound).codec.unit

    deviation = settled_deviation(MULTIPLIER, SUMS, unit_of)
    shares = NoiseShares(deviation, clients=5, corrupt=1, dropouts=1)
    found = SharedSums(shares, unit_of(deviation), CLIP, 64, 10_000).release(4)
    assert MULTIPLIER <= found.noise < MULTIPLIER * 1.001


@pytest.mark.parametrize(
    ("unit", "sensitivity", "coordinates", "entries"),
    [(0.0, 1.0, 1, 1), (1.0, 0.0, 1, 1), (1.0, 1.0, 0, 1), (1.0, 1.0, 2, 1), (math.nan, 1.0, 1, 1)],
)
def test_sums_that_make_no_sense_are_refused(unit: float, sensitivity: float, coordinates: int, entries: int) -> None:
    with pytest.raises(UserError):
        SharedSums(SHARES, unit, sensitivity, coordinates, entries)
