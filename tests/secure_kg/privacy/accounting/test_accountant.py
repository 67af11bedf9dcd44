"""The accountant against closed forms, published figures and the properties that any accountant has."""

import math
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secure_kg.foundation.errors import UserError
from secure_kg.privacy.accounting.accountant import Budget, Release, epsilon_of, joint, noise_for
from secure_kg.privacy.accounting.gaussian import delta_of_mu, epsilon_of_mu, largest_mu
from secure_kg.privacy.accounting.renyi import divergence, epsilon_at, epsilon_of_orders
from secure_kg.privacy.accounting.sampled import loss_epsilon, renyi_epsilon, sampled_epsilon

DELTA = 1e-5
ONE_GAUSSIAN = {16: 0.344, 8: 0.600, 4: 1.081, 2: 1.994, 1: 3.731}
noises = st.floats(0.3, 50)
deltas = st.floats(1e-12, 1e-2)

# Confidential and all statements, noise, and the epsilon that DPKGE's tables give; B = sqrt(N), 100 epochs, delta 1/N.
DPKGE = [
    *((241_571, 483_142, *row) for row in ((0.7, 8.79), (1.0, 3.92), (1.3, 2.60))),
    *((483_142, 483_142, *row) for row in ((0.7, 6.02), (1.0, 2.70), (1.3, 1.81))),
    *((136_057, 272_115, *row) for row in ((0.7, 10.08), (1.0, 4.49), (1.3, 2.96))),
    (539_520, 1_079_040, 1.0, 3.25),
    (165_917, 289_719, 1.0, 4.11),
    (652_605, 1_482_059, 1.0, 3.23),
]


def dpkge(confidential: int, statements: int, noise: float) -> tuple[list[tuple[Release, int]], float]:
    batch = math.sqrt(statements)
    return [(Release(noise, batch / confidential), round(100 * confidential / batch))], 1 / statements


@pytest.mark.parametrize(("epsilon", "noise"), ONE_GAUSSIAN.items())
def test_one_gaussian_is_the_closed_form(epsilon: float, noise: float) -> None:
    found = noise_for(Budget(epsilon, DELTA), 1)
    assert found == pytest.approx(noise, abs=6e-4)
    assert epsilon * (1 - 1e-6) < epsilon_of([(Release(found), 1)], DELTA) <= epsilon


def test_full_batches_add_up_like_one_gaussian() -> None:
    many = epsilon_of([(Release(10.0), 75), (Release(20.0), 100)], DELTA)
    assert many == pytest.approx(epsilon_of([(Release(1.0), 1)], DELTA), rel=1e-9)
    assert noise_for(Budget(4, DELTA), 400) == pytest.approx(20 * noise_for(Budget(4, DELTA), 1), rel=1e-9)


def test_delta_is_that_of_the_definition() -> None:
    """The largest excess of one Gaussian over another, by integration."""
    mu, epsilon, width = 1.3, 2.0, 1e-3
    density = [math.exp(-((i * width) ** 2) / 2) / math.sqrt(2 * math.pi) for i in range(-12_000, 12_000)]
    shift = round(mu / width)
    excess = sum(max(0.0, p - math.exp(epsilon) * q) for p, q in zip(density, density[shift:], strict=False)) * width
    assert delta_of_mu(mu, epsilon) == pytest.approx(excess, rel=1e-3)


@settings(max_examples=60, deadline=None)
@given(noise=noises, delta=deltas, steps=st.integers(1, 1000))
def test_epsilon_falls_with_noise_and_delta_and_grows_with_steps(noise: float, delta: float, steps: int) -> None:
    here = epsilon_of([(Release(noise), steps)], delta)
    assert epsilon_of([(Release(noise * 1.1), steps)], delta) <= here
    assert epsilon_of([(Release(noise), steps)], delta * 1.5) <= here
    assert epsilon_of([(Release(noise), steps + 1)], delta) >= here
    assert epsilon_of([(Release(noise), steps), (Release(1e9), 1)], delta) >= here * (1 - 1e-9)


@settings(max_examples=60, deadline=None)
@given(epsilon=st.floats(0.01, 50), delta=deltas, steps=st.integers(1, 100_000))
def test_the_noise_of_a_budget_is_enough_and_hardly_more(epsilon: float, delta: float, steps: int) -> None:
    noise = noise_for(Budget(epsilon, delta), steps)
    assert epsilon_of([(Release(noise), steps)], delta) <= epsilon
    assert epsilon_of([(Release(noise * (1 - 1e-6)), steps)], delta) > epsilon


@settings(max_examples=40, deadline=None)
@given(noise=st.floats(0.5, 20), rate=st.floats(1e-4, 0.9), order=st.integers(2, 64))
def test_a_sample_costs_less_than_the_whole_and_more_noise_less(noise: float, rate: float, order: int) -> None:
    here = divergence(Release(noise, rate), order)
    assert 0 <= here <= divergence(Release(noise), order) * (1 + 1e-9)
    assert divergence(Release(noise * 1.2, rate), order) <= here * (1 + 1e-9) + 1e-12
    assert divergence(Release(noise, min(1.0, rate * 1.1)), order) >= here * (1 - 1e-9) - 1e-12


@pytest.mark.parametrize(("noise", "rate"), [(1.7, 0.03), (0.4, 0.5), (50.0, 1e-9)])
def test_divergence_of_order_two_is_the_known_one_and_never_less(noise: float, rate: float) -> None:
    known = math.log1p(rate**2 * math.expm1(noise**-2))
    assert known <= divergence(Release(noise, rate), 2) <= known * (1 + 1e-9)


@settings(max_examples=40, deadline=None)
@given(mu=st.floats(0.01, 5), delta=deltas)
def test_renyi_bounds_lie_above_the_exact_epsilon(mu: float, delta: float) -> None:
    assert epsilon_of_orders([(Release(1 / mu), 1)], delta) >= epsilon_of_mu(mu, delta)


def test_renyi_and_loss_distribution_agree_and_the_smaller_is_taken() -> None:
    releases = [(Release(1.0, 0.01), 1000)]
    by_orders, by_loss = renyi_epsilon(releases, DELTA), loss_epsilon(releases, DELTA, 2e-4)
    assert by_loss == pytest.approx(1.8282, abs=2e-4)
    assert by_orders == pytest.approx(2.1014, abs=2e-4)
    assert epsilon_of(releases, DELTA) == pytest.approx(by_loss, rel=1e-3)
    # A coarser grid never says less.
    assert loss_epsilon(releases, DELTA, 2e-3) >= loss_epsilon(releases, DELTA, 1e-3) >= by_loss


def test_the_loss_distribution_of_full_batches_is_the_closed_form() -> None:
    releases = [(Release(20.0), 400)]
    exact = epsilon_of(releases, DELTA)
    assert exact <= loss_epsilon(releases, DELTA, 1e-3) <= exact * 1.001
    # A rate just below 1 comes close to it.
    assert sampled_epsilon([(Release(20.0, 0.999), 400)], DELTA) == pytest.approx(exact, rel=5e-3)


def test_the_noise_of_samples_is_enough_and_hardly_more() -> None:
    budget = Budget(8.0, DELTA)
    noise = noise_for(budget, 50, 0.2)
    found = epsilon_of([(Release(noise, 0.2), 50)], DELTA)
    assert budget.epsilon * 0.995 < found <= budget.epsilon
    assert noise < noise_for(budget, 50)


def test_dpkges_epsilons_are_reproduced_and_no_more_than_published() -> None:
    """The paper converts as in 2017: D - log(delta) / (a - 1)."""
    from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, rdp

    orders = [*(1 + tenth / 10 for tenth in range(3, 100)), *range(11, 64)]
    for confidential, statements, noise, published in DPKGE:
        ((release, steps),), delta = dpkge(confidential, statements, noise)
        found = math.inf
        for order in orders:
            accountant = rdp.RdpAccountant([order])
            accountant.compose(PoissonSampledDpEvent(release.sampling, GaussianDpEvent(noise)), steps)
            at_order = accountant.get_epsilon(delta)
            total = at_order - math.log1p(-1 / order) + (math.log(delta) + math.log(order)) / (order - 1)
            found = min(found, total - math.log(delta) / (order - 1))
        assert found == pytest.approx(published, rel=0.04), (statements, noise)
        assert renyi_epsilon([(release, steps)], delta) < found


def test_orders_and_epsilons_turn_round() -> None:
    from secure_kg.privacy.accounting.renyi import allowance

    for order in (2, 7, 64):
        assert epsilon_at(order, allowance(order, 9.0, DELTA), DELTA) == pytest.approx(9.0, rel=1e-12)


def test_a_joint_release_is_one_of_both_together() -> None:
    assert joint(4.0) == 4.0
    assert joint(3.0, 4.0) == pytest.approx(2.4)
    both = epsilon_of([(Release(3.0), 10), (Release(4.0), 10)], DELTA)
    assert epsilon_of([(Release(joint(3.0, 4.0)), 10)], DELTA) == pytest.approx(both, rel=1e-9)


def test_nothing_released_costs_nothing() -> None:
    assert epsilon_of([], DELTA) == epsilon_of([(Release(1.0), 0)], DELTA) == 0
    assert epsilon_of_mu(1e-9, DELTA) == 0
    assert largest_mu(Budget(1e-6, 1e-12)) > 0


@pytest.mark.parametrize(
    "wrong",
    [
        *(lambda value=value: Budget(value, DELTA) for value in (0.0, -1.0, math.inf, math.nan)),
        *(lambda value=value: Budget(1.0, value) for value in (0.0, 1.0, -0.1, math.nan)),
        *(lambda value=value: Release(value) for value in (0.0, -1.0, math.inf, math.nan)),
        *(lambda value=value: Release(1.0, value) for value in (0.0, 1.1, math.nan)),
        lambda: noise_for(Budget(1.0, DELTA), 0),
        lambda: epsilon_of([(Release(1.0), -1)], DELTA),
        lambda: epsilon_of([(Release(1.0), 1)], 0.0),
        lambda: joint(),
        lambda: joint(1.0, 0.0),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(wrong: object) -> None:
    assert callable(wrong)
    with pytest.raises(UserError) as caught:
        wrong()
    assert "\n" not in str(caught.value)


def test_full_batches_do_not_import_the_package() -> None:
    code = (
        "import sys; from secure_kg.privacy.accounting.accountant import *\n"
        "noise_for(Budget(1, 1e-5), 10); PrivacyFilter(Budget(1, 1e-5)).spend(Release(100.0))\n"
        "assert 'dp_accounting' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(UserError, match="dp-accounting"):
        epsilon_of([(Release(1.0, 0.5), 1)], DELTA)
