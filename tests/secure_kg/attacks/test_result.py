"""When an attack counts as one: the statistics, and results that can be written down."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_kg.attacks.result import AttackResult, Rate, binomial_tail, explains_more, scores_of


@given(st.integers(0, 60), st.integers(0, 60), st.floats(0.001, 0.999))
def test_the_tail_is_that_of_the_binomial_distribution(hits: int, trials: int, chance: float) -> None:
    exact = sum(math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(hits, trials + 1))
    assert binomial_tail(hits, trials, chance) == pytest.approx(min(1.0, exact), rel=1e-9, abs=1e-300)


def test_the_ends_of_the_tail() -> None:
    assert binomial_tail(0, 10, 0.5) == 1.0
    assert binomial_tail(1, 10, 0.0) == 0.0
    assert binomial_tail(3, 10, 1.0) == 1.0
    assert binomial_tail(700, 100_000, 0.005) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("rate", "beats"),
    [
        (Rate(14, 14, 1 / 14), True),
        (Rate(2, 14, 1 / 14), False),  # luck
        (Rate(1, 1, 0.5), False),  # one hit proves nothing
        (Rate(5_500, 1_000_000, 0.005), False),  # certain, and of no consequence
        (Rate(0, 0, 0.0), False),
        (Rate(60, 100, 0.6), False),
        (Rate(300, 1000, 0.1), True),
        (Rate(300, 1000, 0.1, independent=10), False),  # a thousand triples of ten rows
    ],
)
def test_only_what_is_certain_and_large_beats_chance(rate: Rate, beats: bool) -> None:
    assert rate.beats_chance is beats


def test_variance_explained_by_noise_is_not_much() -> None:
    assert explains_more(0.9, 100)
    assert not explains_more(0.06, 20)  # what noise does in so few values
    assert not explains_more(0.9, 100, chance=0.88)


def test_a_result_can_be_written_as_json() -> None:
    scores, chance = scores_of({"ERR": Rate(1, 2, 0.1)})
    result = AttackResult("id", "title", "client 2", "nothing", scores, chance, False, "so it is")
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["scores"] == {"ERR": 0.5}
    with pytest.raises(ValueError, match="chance"):
        AttackResult("id", "title", "client 2", "nothing", scores, {}, False, "so it is")
