"""Draws of the discrete Gaussian: their distribution, exactness at the edge, and where they come from."""

import math
import pickle
import secrets
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from protocols.primitives import discrete_gaussian as module
from protocols.primitives.discrete_gaussian import discrete_gaussian, highest, log_weight, sampling_error
from protocols.primitives.prg import KEY_BYTES

SIGMAS = [0.5, 1.0, 1.7, 2.3, 3.4, 10.0]
WIDE = [10.0, 999.5, 2.0**20 + 0.25, 2.0**24, 2.0**34, 2.0**50]
ODDS = 1e-7
"""Of a false alarm, per test."""


def masses(sigma: float) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Integers and their exact probabilities, as far as they matter to doubles."""
    values = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 1)
    weights = np.exp(-((values / sigma) ** 2) / 2)
    return values, weights / weights.sum()


@pytest.mark.parametrize("sigma", SIGMAS)
def test_draws_have_the_probabilities_of_the_definition(sigma: float) -> None:
    count = 300_000
    draws, (values, expected) = discrete_gaussian(sigma, count), masses(sigma)
    seen = np.bincount(draws - values[0], minlength=len(values))
    often = expected * count >= 10
    observed = [*seen[often], seen[~often].sum()]
    predicted = [*expected[often] * count, expected[~often].sum() * count]
    if predicted[-1] < 10:
        observed[-2:], predicted[-2:] = [sum(observed[-2:])], [sum(predicted[-2:])]
    assert stats.chisquare(observed, np.array(predicted) * (count / sum(predicted))).pvalue > ODDS


@pytest.mark.parametrize("sigma", WIDE)
def test_moments_signs_and_low_bits(sigma: float) -> None:
    count = 400_000
    draws = discrete_gaussian(sigma, count)
    assert draws.dtype == np.int64
    scaled, limit = draws / sigma, stats.norm.isf(ODDS / 2)
    assert abs(scaled.mean()) < limit / math.sqrt(count)
    assert abs(scaled.var() - 1) < limit * math.sqrt(2 / count)
    assert abs((scaled**3).mean()) < limit * math.sqrt(15 / count)
    assert abs((scaled**4).mean() - 3) < limit * math.sqrt(96 / count)
    low = np.bincount(draws & 7, minlength=8)  # a Gaussian wide against 8 has no favourite among residues
    assert stats.chisquare(low).pvalue > ODDS
    if sigma > 100:
        assert stats.kstest((draws[:100_000] + 0.0) / sigma, "norm").pvalue > ODDS


@pytest.mark.parametrize("sigma", [10.0, 2.0**20])
def test_tails(sigma: float) -> None:
    count = 1_000_000
    far = int(np.count_nonzero(np.abs(discrete_gaussian(sigma, count)) > 4 * sigma))
    values, expected = masses(sigma) if sigma < 100 else (None, None)
    chance = 2 * stats.norm.sf(4) if values is None else float(expected[np.abs(values) > 4 * sigma].sum())
    low, high = stats.binom.interval(1 - ODDS, count, chance)
    assert low <= far <= high


def test_the_sum_of_shares_is_as_wide_as_it_should_be_and_draws_are_independent() -> None:
    first, second = discrete_gaussian(50.0, 300_000), discrete_gaussian(50.0, 300_000)
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.01
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.01
    assert (first + second).var() == pytest.approx(5000, rel=0.02)


def test_no_two_calls_are_alike_and_each_has_a_key_of_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not np.array_equal(discrete_gaussian(1e6, 64), discrete_gaussian(1e6, 64))
    asked: list[int] = []

    def key(size: int) -> bytes:
        asked.append(size)
        return bytes(size)

    monkeypatch.setattr(secrets, "token_bytes", key)
    same = [discrete_gaussian(1e6, 64) for _ in range(2)]
    assert np.array_equal(*same)  # all randomness is the key's
    assert asked == [KEY_BYTES, KEY_BYTES]


@settings(max_examples=30, deadline=None)
@given(sigma=st.floats(0.5, 2.0**52), count=st.integers(0, 50))
def test_any_width_and_any_number(sigma: float, count: int) -> None:
    draws = discrete_gaussian(sigma, count)
    assert draws.shape == (count,)
    assert not count or np.abs(draws).max() < 20 * sigma + 1


@pytest.mark.parametrize("sigma", [0.0, 0.49, -3.0, math.inf, math.nan, 2.0**53])
def test_widths_without_a_sampler_are_refused(sigma: float) -> None:
    with pytest.raises(ValueError, match="deviation between"):
        discrete_gaussian(sigma, 1)


# --- the edge of doubles ----------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(sigma=st.floats(0.5, 2.0**52), steps=st.integers(0, 30), part=st.floats(0, 1, exclude_max=True))
def test_no_weight_is_above_the_highest(sigma: float, steps: int, part: float) -> None:
    bits = max(0, math.ceil(math.log2(0.6 * sigma)))
    assert log_weight(sigma, steps, int(part * (1 << bits)) + (steps << bits)) <= highest(sigma, bits)


def chance_of(sigma: float, steps: int, magnitude: int) -> Decimal:
    bits = max(0, math.ceil(math.log2(0.6 * sigma)))
    return module._DIGITS.exp(log_weight(sigma, steps, magnitude) - highest(sigma, bits))


def test_what_doubles_cannot_decide_is_decided_exactly() -> None:
    sigma, steps, magnitude = 1000.0, 1, 1300
    chance = chance_of(sigma, steps, magnitude)
    edge = int(chance * (1 << 64))
    sampler = module._Sampler(sigma, bytes(KEY_BYTES))
    assert [sampler.decide(steps, magnitude, edge + move) for move in (-2, -1, 1, 2)] == [True, True, False, False]


def test_every_proposal_near_the_edge_goes_that_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all differences called close, decisions by digits are those by doubles."""
    keyed = module._Sampler(123.4, bytes(KEY_BYTES)).draws(40)
    monkeypatch.setattr(module, "_CLOSE", 2.0)
    monkeypatch.setattr(module._Sampler, "decide", decide_by_first_word)
    assert np.array_equal(keyed, module._Sampler(123.4, bytes(KEY_BYTES)).draws(40))


def decide_by_first_word(self: Any, steps: int, magnitude: int, word: int) -> bool:
    """As `decide`, without taking words that the other run does not take."""
    return Decimal(word) < chance_of(123.4, steps, magnitude) * (1 << 64)


@settings(max_examples=100, deadline=None)
@given(sigma=st.floats(10, 2.0**52), steps=st.integers(0, 30), part=st.floats(0, 1, exclude_max=True))
def test_doubles_are_never_off_by_as_much_as_is_called_close(sigma: float, steps: int, part: float) -> None:
    sampler = module._Sampler(sigma, bytes(KEY_BYTES))
    magnitude = int(part * (1 << sampler._bits)) + (steps << sampler._bits)
    by_double = math.exp(steps * math.log(2) - (magnitude * sampler._scale) ** 2 - sampler._offset)
    assert abs(Decimal(by_double) - chance_of(sigma, steps, magnitude)) < Decimal(module._CLOSE) / 4


# --- what is said of it -----------------------------------------------------------------------------------------------


def test_the_error_grows_with_the_draws_and_is_negligible() -> None:
    assert sampling_error(0) == 0
    assert 0 < sampling_error(1) < sampling_error(10**6) < sampling_error(10**12) < 1e-12
    assert sampling_error(2 * 10**6) >= 2 * sampling_error(10**6)


def test_nothing_secret_is_shown_or_serialised() -> None:
    sampler = module._Sampler(10.0, secrets.token_bytes(KEY_BYTES))
    assert repr(sampler) == "_Sampler()"
    with pytest.raises(TypeError):
        pickle.dumps(sampler)
