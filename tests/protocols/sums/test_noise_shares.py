"""Shares of noise: their texts, their sums with all clients and with dropouts, and the analysis behind them."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import norm

from protocols.foundation.errors import EncodingOverflow, ProtocolError, SumAbandoned, UnknownProtocol
from protocols.foundation.identifiers import RoundId
from protocols.primitives.fixed_point import FixedPoint
from protocols.primitives.group import Ring
from protocols.registry import AGGREGATIONS
from protocols.sums import pipeline
from protocols.sums.interface import Contribution, SumLayout
from protocols.sums.noise import NO_NOISE
from protocols.sums.noise_shares import (
    CUT,
    NARROWEST,
    SMOOTHING,
    NoiseShares,
    cut_error,
    integer_sensitivity,
    sampler_error,
    smoothing_loss,
)
from protocols.sums.noises import noise_of
from protocols.sums.terms import SumTerms, VectorLayout
from tests.support.fixed_noise import FixedNoise, registered
from tests.support.sum_conversations import everyone, random_inputs, task_of
from tests.support.sums_by_name import opened, sum_by

CLIENTS = everyone(5)
SHARES = NoiseShares(0.25, clients=5, corrupt=1, dropouts=1)


def layout_for(noise: NoiseShares, ring_bits: Any = 32, entries: int = 20) -> SumLayout:
    return SumLayout(entries, 5, 4.0, 1000, parties=5, ring_bits=ring_bits, noise_bound=noise.bound)


# --- texts ------------------------------------------------------------------------------------------------------------


@given(
    deviation=st.floats(1e-300, 1e300),
    clients=st.integers(4, 1000),
    corrupt=st.integers(0, 2),
    dropouts=st.integers(0, 1),
    first_round=st.integers(0, 9),
)
def test_a_noise_travels_as_a_text_and_is_the_same_afterwards(deviation: float, **numbers: int) -> None:
    noise = NoiseShares(deviation, **numbers)
    assert noise_of(noise.text) == noise
    assert noise_of(noise.text).bound == noise.bound


def test_the_text_is_pinned() -> None:
    assert SHARES.text == "gaussian-shares deviation=0.25 clients=5 corrupt=1 dropouts=1 first_round=0"


@pytest.mark.parametrize(
    "text",
    [
        "gaussian-shares",
        "gaussian-shares ",
        "Gaussian-shares deviation=0.25 clients=5 corrupt=1 dropouts=1 first_round=0",
        "gaussian-shares deviation=0.250 clients=5 corrupt=1 dropouts=1 first_round=0",
        "gaussian-shares deviation=nan clients=5 corrupt=1 dropouts=1 first_round=0",
        "gaussian-shares deviation=0.25 clients=5 corrupt=1 dropouts=1",
        "gaussian-shares clients=5 deviation=0.25 corrupt=1 dropouts=1 first_round=0",
        "gaussian-shares deviation=0.25 clients=5 corrupt=1 dropouts=1 first_round=0 ",
        "gaussian-shares deviation=0.25 clients=5 corrupt=1 dropouts=1 first_round=0 draw=1",
        "gaussian-shares deviation=0.25 clients=5.0 corrupt=1 dropouts=1 first_round=0",
        "gaussian-shares deviation=0.25 clients=2 corrupt=1 dropouts=1 first_round=0",
        "gaussian-shares deviation=0.25 clients=5 corrupt=-1 dropouts=1 first_round=0",
        "laplace-shares deviation=0.25 clients=5 corrupt=1 dropouts=1 first_round=0",
        "",
    ],
)
def test_any_other_text_raises(text: str) -> None:
    with pytest.raises(UnknownProtocol):
        noise_of(text)


def test_bare_names_are_noises_as_well() -> None:
    assert noise_of("none") is NO_NOISE
    with registered(FixedNoise()) as name:
        assert noise_of(name) == FixedNoise()


# --- in sums ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ring_bits", [32, 64])
@pytest.mark.parametrize("aggregation", list(AGGREGATIONS))
def test_the_secure_sum_and_its_plain_twin_are_equal_given_the_same_draws(aggregation: str, ring_bits: int) -> None:
    layout = layout_for(SHARES, ring_bits)
    inputs, drawn = random_inputs(layout, CLIENTS), {}
    for party in CLIENTS:
        drawn[party] = SHARES.draw(SHARES.share / layout.codec.unit, layout.real_entries)
        given_draws = dataclasses.replace(SHARES, draw=lambda sigma, count, own=drawn[party]: own.copy())
        inputs[party] = dataclasses.replace(inputs[party], noise=given_draws)
    expected = layout.group.zeros(layout.entries)
    for one in inputs.values():
        layout.group.add_into(expected, layout.encode(one).vector)
    clean = layout.decode(expected)
    total = opened(sum_by(aggregation, task_of(layout, CLIENTS), inputs))
    added = sum(drawn.values()) * layout.codec.unit
    assert np.array_equal(total.real, clean.real + added)
    assert np.array_equal(total.counts, clean.counts)
    assert np.count_nonzero(added) == len(added)


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_an_opened_sum_has_the_variance_that_is_said(missing: int) -> None:
    """With all shares more than is needed, without the corrupt and the dropouts exactly as much."""
    entries = 100_000
    layout = layout_for(SHARES, entries=entries)
    zero = Contribution(np.zeros(entries), np.zeros(5, dtype=np.int64), SHARES)
    total = layout.group.zeros(layout.entries)
    for _ in range(len(CLIENTS) - missing):
        layout.group.add_into(total, pipeline.encode(task_of(layout, CLIENTS), zero).vector)
    found = layout.decode(total)
    variance = SHARES.deviation**2 * (5 - missing) / 3
    assert found.real.var() == pytest.approx(variance, rel=6 * math.sqrt(2 / entries))
    assert abs(found.real.mean()) < 6 * math.sqrt(variance / entries)
    assert not found.counts.any()
    honest = SHARES.units(max(3, 5 - missing), layout.codec.unit) * layout.codec.unit
    assert honest**2 == pytest.approx(SHARES.deviation**2 * max(3, 5 - missing) / 3, rel=1e-6)


def test_draws_beyond_the_bound_are_cut_off_and_the_worst_sum_does_not_wrap() -> None:
    for sign, ring_bits in ((1, 32), (-1, 32), (1, 64), (-1, 64)):
        layout = layout_for(SHARES, ring_bits)
        huge = dataclasses.replace(SHARES, draw=lambda sigma, count, sign=sign: np.full(count, sign << 62))
        worst = Contribution(np.full(20, sign * 4.0), np.zeros(5, dtype=np.int64), huge)
        total = layout.group.zeros(layout.entries)
        for _ in CLIENTS:
            layout.group.add_into(total, pipeline.encode(task_of(layout, CLIENTS), worst).vector)
        expected = 5 * sign * (4.0 + math.floor(SHARES.bound / layout.codec.unit) * layout.codec.unit)
        assert np.array_equal(layout.decode(total).real, np.full(20, expected))


def test_contributions_without_data_get_no_noise() -> None:
    later = dataclasses.replace(SHARES, first_round=2)
    layout = layout_for(later)
    plain = random_inputs(layout, CLIENTS)[CLIENTS[0]]
    noisy = dataclasses.replace(plain, noise=later)
    first, second = (pipeline.encode(task_of(layout, CLIENTS, number), noisy).vector for number in (1, 2))
    assert np.array_equal(first, layout.encode(plain).vector)
    assert np.count_nonzero(second[:20] != first[:20]) == 20
    assert (later.bound_in(1), later.bound_in(2)) == (0.0, later.bound)


def test_sums_over_too_few_are_refused() -> None:
    layout = layout_for(SHARES)
    given_one = dataclasses.replace(random_inputs(layout, CLIENTS)[CLIENTS[0]], noise=SHARES)
    with pytest.raises(ProtocolError, match="noise of 5 clients in a sum over 4"):
        pipeline.encode(task_of(layout, CLIENTS[:4]), given_one)
    SHARES.require_enough(5, 1)
    with pytest.raises(SumAbandoned, match="2 clients are missing from a sum whose noise allows for 1"):
        SHARES.require_enough(5, 2)
    with pytest.raises(SumAbandoned, match="2 honest shares"):
        SHARES.units(2, layout.codec.unit)


def test_shares_too_narrow_for_the_ring_are_refused() -> None:
    codec = FixedPoint(Ring(32), 4.0, 5, 3)
    narrow = NoiseShares(1.0, clients=5)
    with pytest.raises(EncodingOverflow, match=r"3\.58 units wide"):
        narrow.require_room(codec)
    with pytest.raises(EncodingOverflow, match="units wide"):
        narrow.units(5, codec.unit)
    SHARES.require_room(layout_for(SHARES).codec)


def test_nothing_that_was_drawn_is_shown() -> None:
    layout = layout_for(SHARES)
    assert "draw" not in repr(SHARES)
    assert repr(Contribution(np.ones(20), np.zeros(5, dtype=np.int64), SHARES)) == "Contribution()"
    assert layout.noise_bound == SHARES.bound == CUT * SHARES.share


# --- analysis ---------------------------------------------------------------------------------------------------------


def excess(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any], epsilon: float) -> float:
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


def of_gaussian(mu: float, epsilon: float) -> float:
    return float(norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


def probabilities(width: float, reach: int) -> np.ndarray[Any, Any]:
    weights = np.exp(-((np.arange(-reach, reach + 1) / width) ** 2) / 2)
    return weights / weights.sum()


@pytest.mark.parametrize("honest", [1, 3])
@pytest.mark.parametrize("shift", [1, 7, 30])
def test_a_sum_of_shares_is_as_private_as_the_gaussian_it_is_said_to_be_worth(honest: int, shift: int) -> None:
    """Shares of the least width that is allowed, in one entry: exact curves, by adding up."""
    shares = NoiseShares(NARROWEST * math.sqrt(honest), clients=honest)
    one = total = probabilities(NARROWEST, 150)
    for _ in range(honest - 1):
        total = np.convolve(total, one)
    worth = shares.units(honest, 1.0)
    assert worth == pytest.approx(math.sqrt(honest * NARROWEST**2 - SMOOTHING**2))
    near, far = np.pad(total, (0, shift)), np.pad(total, (shift, 0))
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0):
        exact, said = excess(near, far, epsilon), of_gaussian(shift / worth, epsilon)
        assert exact <= said * (1 + 1e-9) + 1e-13
        assert exact >= 0.5 * said - 1e-6  # it is no empty promise


def test_the_same_of_two_entries() -> None:
    one = probabilities(NARROWEST, 100)
    both = np.outer(one, one)
    near, far = np.pad(both, ((0, 9), (0, 12))), np.pad(both, ((9, 0), (12, 0)))
    worth = NoiseShares(NARROWEST, clients=1).units(1, 1.0)
    for epsilon in (0.5, 2.0, 5.0):
        exact, said = excess(near, far, epsilon), of_gaussian(15 / worth, epsilon)
        assert 0.7 * said <= exact <= said * (1 + 1e-9) + 1e-13


def test_one_rounded_gaussian_is_the_discrete_one() -> None:
    """Step 2 of the analysis, by integration: probabilities alike to what doubles hold."""
    width, step = 10.0, 1 / 64
    points = np.arange(-100, 100, step)
    density = np.exp(-(points**2) / (2 * (width**2 - SMOOTHING**2)))
    values = np.arange(-20, 21)
    rounding = np.exp(-((values[:, None] - points) ** 2) / (2 * SMOOTHING**2))
    everywhere = np.exp(-((np.arange(-130, 131)[:, None] - points) ** 2) / (2 * SMOOTHING**2)).sum(axis=0)
    found = (rounding / everywhere) @ density / density.sum()
    np.testing.assert_allclose(found, probabilities(width, 200)[180:221], rtol=1e-12)


@settings(max_examples=100, deadline=None)
@given(
    one=arrays.arrays(np.float64, 6, elements=st.floats(-6, 6)),
    other=arrays.arrays(np.float64, 6, elements=st.floats(-6, 6)),
    touched=st.integers(1, 6),
    bits=st.integers(0, 20),
)
def test_the_sensitivity_in_integers_is_never_exceeded(one: Any, other: Any, touched: int, bits: int) -> None:
    """Through the very encoding of sums, clipping included."""
    codec = FixedPoint(Ring(32), 4.0, 5, bits)
    other[touched:] = one[touched:]
    first, second = (codec.encode(values).vector.view(np.int32).astype(np.int64) for values in (one, other))
    moved = float(np.linalg.norm(first - second))
    assert moved <= integer_sensitivity(float(np.linalg.norm(one - other)), codec.unit, touched) * (1 + 1e-12)


def test_rounding_can_add_what_is_said() -> None:
    codec = FixedPoint(Ring(32), 4.0, 5, 0)
    first, second = (codec.encode(np.full(100, value)).vector.astype(np.int64) for value in (0.4999, 0.5001))
    assert np.linalg.norm(first - second) == 10
    assert integer_sensitivity(0.002, 1.0, 100) == pytest.approx(10.002)


def test_errors_are_negligible_and_grow_with_the_draws() -> None:
    million = 10**6
    assert 0 < smoothing_loss(million, 5, NARROWEST) < 1e-26
    assert smoothing_loss(1, 5, 0.5) > 0.01  # shares as narrow as a unit do not add up to a Gaussian
    assert 0 < cut_error(million) < 1e-24
    assert cut_error(2 * million) == 2 * cut_error(million) > norm.sf(CUT) * million
    assert 0 < sampler_error(million) < 1e-15


def test_draws_with_a_key_repeat_for_the_same_contribution_and_for_no_other() -> None:
    codec, keys = SumLayout(40, 0, 1.0, 1, 3, 32, 0.5).codec, dict[tuple[int, str, bytes], bytes]()

    def key_of(round_id: int, purpose: str, content: bytes) -> bytes:
        return keys.setdefault((round_id, purpose, content), bytes([len(keys)]) * 32)

    def noised(noise: NoiseShares, value: int, round_id: int = 1, purpose: str = "rows") -> list[int]:
        vector = np.full(40, value, dtype=np.uint32)
        terms = SumTerms(RoundId(round_id), purpose, everyone(3), VectorLayout(codec.ring, 40))
        noise.keyed(key_of).add_to(vector, codec, terms)
        drawn: list[int] = (vector.astype(np.int64) - value).tolist()
        return drawn

    shares = NoiseShares(0.01, 3)
    first = noised(shares, 7)
    assert noised(shares, 7) == first
    others = [noised(shares, 8), noised(shares, 7, 2), noised(shares, 7, 1, "other")]
    others.append(noised(dataclasses.replace(shares, deviation=0.011), 7))
    assert len(keys) == 5
    assert all(other != first for other in others)
