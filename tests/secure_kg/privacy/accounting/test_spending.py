"""The filter: a fixed budget holds whatever noise is chosen on the way, and across resumptions."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secure_kg.foundation.errors import UserError
from secure_kg.privacy.accounting.accountant import Budget, BudgetSpent, PrivacyFilter, Release, epsilon_of, noise_for
from secure_kg.privacy.accounting.renyi import divergence, epsilon_at

BUDGET = Budget(4.0, 1e-5)


def test_full_batches_may_spend_the_whole_budget_and_no_more() -> None:
    for steps in (1, 10, 3000):
        noise, found = noise_for(BUDGET, steps), PrivacyFilter(BUDGET)
        for _ in range(steps):
            found.spend(Release(noise))
        assert not found.may(Release(noise * 30))
        assert found.used == pytest.approx(1.0, abs=1e-6)
        with pytest.raises(BudgetSpent, match=r"no room for another release with noise .* after \d+$"):
            found.spend(Release(noise))
        assert found.releases == steps


@settings(max_examples=50, deadline=None)
@given(noises=st.lists(st.floats(0.3, 100), min_size=1, max_size=60))
def test_whatever_noise_is_chosen_the_sum_stays_within_the_budget(noises: list[float]) -> None:
    found, made = PrivacyFilter(BUDGET), []
    for noise in noises:
        if found.may(Release(noise)):
            found.spend(Release(noise))
            made.append((Release(noise), 1))
        else:
            with pytest.raises(BudgetSpent):
                found.spend(Release(noise))
            assert epsilon_of([*made, (Release(noise), 1)], BUDGET.delta) > BUDGET.epsilon * (1 - 1e-9)
    assert epsilon_of(made, BUDGET.delta) <= BUDGET.epsilon


def test_samples_are_held_to_the_order_that_was_fixed() -> None:
    found = PrivacyFilter(BUDGET, 0.01, 1000)
    order = found.order
    assert order is not None
    total, noise = 0.0, 0.8
    while found.may(Release(noise, 0.01)):
        found.spend(Release(noise, 0.01))
        total += divergence(Release(noise, 0.01), order)
        noise *= 1.01 if found.releases % 2 else 0.985
    assert epsilon_at(order, total, BUDGET.delta) <= BUDGET.epsilon
    assert found.used > 0.9
    # It is the order for the expected steps, not one for all: other expectations, another order.
    assert PrivacyFilter(Budget(0.5, 1e-5), 0.01, 1000).order != order
    assert PrivacyFilter(BUDGET, 0.01, 1000).may(Release(5.0))


def test_a_filter_for_full_batches_refuses_samples() -> None:
    with pytest.raises(UserError, match="full batches"):
        PrivacyFilter(BUDGET).may(Release(10.0, 0.5))


@pytest.mark.parametrize("sampling", [1.0, 0.05])
def test_a_resumed_run_goes_on_from_what_was_spent(sampling: float) -> None:
    release = Release(2.0, sampling)
    found = PrivacyFilter(BUDGET, sampling, 100)
    found.spend(release)
    again = PrivacyFilter.restored(json.loads(json.dumps(found.state())), BUDGET)
    assert (again.used, again.order, again.releases) == (found.used, found.order, 1)
    while again.may(release):
        found.spend(release)
        again.spend(release)
    assert not found.may(release)
    assert found.state() == again.state()
    with pytest.raises(BudgetSpent, match="cannot be resumed"):
        PrivacyFilter.restored(again.state(), BUDGET, release)


def test_a_budget_that_is_spent_at_resumption_is_one_line() -> None:
    found = PrivacyFilter(BUDGET)
    state = found.state() | {"spent": 1e6, "releases": 12}
    with pytest.raises(UserError, match="was spent by the 12 releases before") as caught:
        PrivacyFilter.restored(state, BUDGET)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("budget", [Budget(8.0, 1e-5), Budget(4.0, 1e-6)])
def test_another_budget_is_refused_at_resumption(budget: Budget) -> None:
    with pytest.raises(UserError, match="another privacy budget"):
        PrivacyFilter.restored(PrivacyFilter(BUDGET).state(), budget)


@pytest.mark.parametrize(
    "change",
    [
        {"spent": -1.0},
        {"spent": math.nan},
        {"spent": "0"},
        {"order": 1},
        {"order": 2.0},
        {"releases": -1},
        {"releases": True},
        {"more": 1},
    ],
)
def test_a_damaged_record_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(UserError, match="checkpoint"):
        PrivacyFilter.restored(PrivacyFilter(BUDGET).state() | change, BUDGET)


def test_no_record_is_refused() -> None:
    for state in (None, {}, [1]):
        with pytest.raises(UserError, match="has no record"):
            PrivacyFilter.restored(state, BUDGET)


def test_a_budget_beyond_every_order_is_refused() -> None:
    with pytest.raises(UserError, match="no Rényi order"):
        PrivacyFilter(Budget(1e-4, 1e-12), 0.1, 10)
