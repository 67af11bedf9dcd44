"""Who may take how long: the limits follow what was seen, between a shortest and a longest."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation.identifiers import PartyId
from protocols.session.patience import FACTOR, Patience

ONE, TWO = PartyId(1), PartyId(2)
STEP = "masked input/rows"
LONGEST, GRACE = 600.0, 2.0
seconds = st.floats(0.0, 1000.0)


def patience() -> Patience:
    return Patience(LONGEST, GRACE)


@pytest.mark.parametrize(("answered", "asked"), [([], 1), ([], 5), ([3.0], 3), ([3.0, 4.0], 5), ([3.0] * 49, 100)])
def test_while_nothing_is_known_a_party_may_take_the_longest(answered: list[float], asked: int) -> None:
    assert patience().limit(STEP, ONE, answered, asked) == LONGEST


@pytest.mark.parametrize(
    ("answered", "asked", "limit"),
    [
        ([3.0], 2, 15.0),
        ([3.0, 7.0], 4, 25.0),  # the median of an even number lies between the two in the middle
        ([3.0, 4.0], 3, 17.5),
        ([3.0, 4.0, 90.0], 5, 20.0),  # one that was slow does not hold up the others
        ([1.0, 1.0, 50.0, 60.0, 70.0], 5, 250.0),
    ],
)
def test_once_half_have_answered_the_limit_is_a_multiple_of_their_median(
    answered: list[float], asked: int, limit: float
) -> None:
    """`limit` is for a party that has answered this step before, in no time; a first answer may take six times that."""
    for factor in (FACTOR, 2 * FACTOR):
        waiting = Patience(10 * LONGEST, GRACE, factor)
        assert waiting.limit(STEP, ONE, answered, asked) == pytest.approx(6 * limit * factor / FACTOR)
        waiting.note(STEP, ONE, 0.0)
        assert waiting.limit(STEP, ONE, answered, asked) == pytest.approx(limit * factor / FACTOR)
    assert FACTOR == 5.0


def test_a_party_may_take_a_multiple_of_what_it_took_before() -> None:
    waiting = patience()
    waiting.note(STEP, ONE, 10.0)
    assert waiting.limit(STEP, ONE, [], 5) == 50.0
    waiting.note(STEP, ONE, 4.0)
    assert waiting.limit(STEP, ONE, [], 5) == 50.0  # the longest of its last answers, not the last


def test_one_long_answer_is_forgotten_after_a_few_others() -> None:
    waiting = patience()
    waiting.note(STEP, ONE, 100.0)
    for _ in range(3):
        waiting.note(STEP, ONE, 4.0)
        assert waiting.limit(STEP, ONE, [], 5) == 500.0
    waiting.note(STEP, ONE, 4.0)
    assert waiting.limit(STEP, ONE, [], 5) == 20.0


def test_parties_and_steps_are_remembered_apart() -> None:
    waiting = patience()
    waiting.note(STEP, ONE, 10.0)
    assert waiting.limit(STEP, TWO, [], 5) == LONGEST
    assert waiting.limit("share keys/rows", ONE, [], 5) == LONGEST
    waiting.note(STEP, TWO, 1.0)
    assert (waiting.limit(STEP, ONE, [], 5), waiting.limit(STEP, TWO, [], 5)) == (50.0, 5.0)


@pytest.mark.parametrize(("own", "median", "limit"), [(10.0, 4.0, 50.0), (4.0, 10.0, 50.0), (4.0, 4.0, 20.0)])
def test_the_larger_of_own_history_and_the_others_counts(own: float, median: float, limit: float) -> None:
    waiting = patience()
    waiting.note(STEP, ONE, own)
    assert waiting.limit(STEP, ONE, [median] * 3, 4) == limit
    # Fewer than half say nothing about how long the step takes.
    assert waiting.limit(STEP, ONE, [median], 4) == FACTOR * own


def test_what_others_take_is_no_memory() -> None:
    waiting = patience()
    waiting.limit(STEP, ONE, [10.0] * 3, 4)
    assert waiting.limit(STEP, ONE, [], 4) == LONGEST


@pytest.mark.parametrize(("took", "limit"), [(0.0, GRACE), (0.1, GRACE), (0.39, GRACE), (0.5, 2.5), (1e6, LONGEST)])
def test_never_less_than_the_grace_and_never_more_than_the_longest(took: float, limit: float) -> None:
    waiting = patience()
    assert waiting.limit(STEP, ONE, [took / 6], 2) == pytest.approx(limit)  # a first answer
    waiting.note(STEP, ONE, took)
    assert waiting.limit(STEP, ONE, [], 5) == pytest.approx(limit)


@given(seconds, seconds, st.lists(seconds, max_size=8), st.lists(seconds, max_size=6), st.integers(1, 10))
@settings(deadline=None)
def test_every_limit_lies_between_grace_and_longest(
    longest: float, grace: float, noted: list[float], answered: list[float], asked: int
) -> None:
    waiting = Patience(longest, grace)
    for took in noted:
        waiting.note(STEP, ONE, took)
    limit = waiting.limit(STEP, ONE, answered, asked)
    assert min(grace, longest) <= limit <= longest
    assert math.isfinite(limit)


@given(seconds, st.lists(seconds, max_size=8), st.lists(seconds, max_size=6))
@settings(deadline=None)
def test_a_fixed_limit_never_moves(fixed: float, noted: list[float], answered: list[float]) -> None:
    waiting = Patience.fixed(fixed)
    for took in noted:
        waiting.note(STEP, ONE, took)
    assert waiting.limit(STEP, ONE, answered, 4) == fixed


def test_a_grace_beyond_the_longest_is_the_longest() -> None:
    assert Patience(1.0, 5.0).limit(STEP, ONE, [0.1], 1) == 1.0


def test_asking_for_limits_leaves_nothing_behind() -> None:
    waiting = patience()
    for asked in range(1, 5):
        waiting.limit(STEP, ONE, [1.0], asked)
    assert waiting.limit(STEP, ONE, [], 1) == LONGEST


# --- coming back ----------------------------------------------------------------------------------------------------


def test_a_dropout_that_came_back_may_take_as_long_again(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = patience()
    waiting.note(STEP, ONE, 1.0)
    waiting.note_dropout(STEP, ONE, started=1000.0)
    assert waiting.limit(STEP, ONE, [], 5) == 5.0
    monkeypatch.setattr("protocols.session.patience.time.monotonic", lambda: 1030.0)
    waiting.returned(ONE)
    assert waiting.limit(STEP, ONE, [], 5) == 150.0
    assert waiting.limit("share keys/rows", ONE, [], 5) == LONGEST
    assert waiting.limit(STEP, TWO, [], 5) == LONGEST
    monkeypatch.setattr("protocols.session.patience.time.monotonic", lambda: 1100.0)
    waiting.returned(ONE)  # an absence counts once
    assert waiting.limit(STEP, ONE, [], 5) == 150.0


def test_a_party_that_never_dropped_out_returns_without_effect() -> None:
    waiting = patience()
    waiting.returned(ONE)
    assert waiting.limit(STEP, ONE, [], 5) == LONGEST
