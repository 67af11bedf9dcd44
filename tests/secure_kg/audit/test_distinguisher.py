"""The two-sample test: nothing for secure protocols, everything for broken ones.

A verdict of "told apart" is wrong with probability 5 * 10^-5 at most in each case (`distinguisher.ERROR`): that is the
false-alarm rate of every statistical test here. The samples are enough to catch whatever is caught on nine views out of
ten; all variants are caught on nearly all.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from benchmarks.real_or_ideal import CONTROLS, Comparison, broken
from protocols.alignment.psu.attempts import UnionPlaces
from protocols.ideal.views import Structure, View
from secure_kg.audit.indistinguishability.cheated_experiments import CHEATED
from secure_kg.audit.indistinguishability.distinguisher import (
    ERROR,
    NOT_TOLD_APART,
    TOLD_APART,
    TOO_FEW,
    Distinction,
    distinguish,
    exact_interval,
    real_features,
    simulated_features,
)
from secure_kg.audit.indistinguishability.experiments import PLAIN_TWINS, PROTOCOLS
from secure_kg.audit.indistinguishability.view_features import Features
from secure_kg.foundation.errors import UserError

pytestmark = pytest.mark.long

SAMPLES = 20
MANY_SAMPLES = 40


SERVER_VIEWS = PROTOCOLS | CHEATED


@cache
def simulated(protocol: str, samples: int = SAMPLES) -> list[Features]:
    return simulated_features(SERVER_VIEWS[protocol](0), samples)


@pytest.mark.parametrize("samples", [SAMPLES, pytest.param(MANY_SAMPLES, marks=pytest.mark.slow)])
@pytest.mark.parametrize("protocol", list(SERVER_VIEWS))
def test_no_protocol_is_told_from_its_simulation(protocol: str, samples: int) -> None:
    found = distinguish(real_features(SERVER_VIEWS[protocol](0), samples), simulated(protocol, samples), seed=0)
    assert found.verdict != TOLD_APART, found


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: f"{control.protocol}-{control.variant}")
def test_every_broken_variant_is_told_from_the_simulation(control: Comparison) -> None:
    assert control.variant is not None
    make = PLAIN_TWINS if control.variant == "plain-twin" else SERVER_VIEWS
    with broken(control.variant):
        views = real_features(make[control.protocol](0), SAMPLES)
    found = distinguish(views, simulated(control.protocol), seed=0)
    assert found.verdict == TOLD_APART, found


@pytest.mark.parametrize("protocol", list(SERVER_VIEWS))
def test_real_and_simulated_views_have_the_same_form(protocol: str) -> None:
    experiment = SERVER_VIEWS[protocol](0)
    assert _form(experiment.simulate) == _form(experiment.session.view)


def _form(draw: Callable[[], View]) -> Structure:
    """Of a view whose union, if it has one, took one attempt: one in 2,000 takes two, simulated or real."""
    while True:
        form = draw().structure()
        answers = [message for message in form if message[:2] == ("sent", 1) and message[4] == UnionPlaces.__name__]
        if len(answers) <= 1:
            return form


@pytest.mark.parametrize("protocol", list(CHEATED))
def test_of_a_cheated_session_the_sum_before_the_lie_opens_and_the_other_does_not(protocol: str) -> None:
    experiment = CHEATED[protocol](0)
    for found in (real_features(experiment, 1)[0], simulated_features(experiment, 1)[0]):
        assert (found["sum 0: opens"], found["sum 0: total as claimed"], found["sum 1: opens"]) == (1.0, 1.0, 0.0)
        said = found.get("Failed: number", 0) + found.get("RefuseShares: number", 0)
        assert said == (5 if protocol == "cheated-survivors" else 1)
        assert any("RefuseShares.reason" in name for name in found)


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "group-key"])
def test_every_sum_of_a_view_is_opened(protocol: str) -> None:
    """Else the features of the opened sums would be missing, and the test weaker than it looks."""
    experiment = PROTOCOLS[protocol](0)
    for found in (real_features(experiment, 1)[0], simulated_features(experiment, 1)[0]):
        opens = [value for name, value in found.items() if name.endswith(": opens")]
        assert opens
        assert set(opens) == {1.0}
        assert {value for name, value in found.items() if name.endswith("total as claimed")} <= {1.0}
        assert any("residue: least rest" in name for name in found)


def test_the_interval_is_that_of_clopper_and_pearson() -> None:
    # Published values for 95 %.
    assert exact_interval(0, 10, 0.05) == (0.0, pytest.approx(0.3085, abs=1e-4))
    assert exact_interval(5, 10, 0.05) == (pytest.approx(0.1871, abs=1e-4), pytest.approx(0.8129, abs=1e-4))
    assert exact_interval(10, 10, 0.05) == (pytest.approx(0.6915, abs=1e-4), 1.0)


def distinction(right: int, judged: int) -> Distinction:
    return Distinction(judged, right, judged, *exact_interval(right, judged, ERROR), ())


def test_verdicts() -> None:
    assert distinction(100, 200).verdict == NOT_TOLD_APART
    assert distinction(200, 200).verdict == TOLD_APART
    assert distinction(0, 200).verdict == TOLD_APART  # whoever is always wrong need only say the opposite
    assert distinction(10, 20).verdict == TOO_FEW
    # With as many samples as the command takes there always is a verdict.
    assert {distinction(right, 200).verdict for right in range(201)} == {TOLD_APART, NOT_TOLD_APART}
    assert distinction(500, 1000).advantage_at_most < 0.14


def test_equal_distributions_are_not_told_apart_and_others_are() -> None:
    rng = np.random.default_rng(0)

    def sample(shift: float) -> list[Features]:
        return [{f"{place}": float(value) for place, value in enumerate(rng.normal(shift, 1, 20))} for _ in range(60)]

    assert distinguish(sample(0.0), sample(0.0), seed=1).verdict != TOLD_APART
    assert distinguish(sample(0.0), sample(1.5), seed=1).verdict == TOLD_APART


def test_a_feature_that_only_one_kind_of_view_has_tells_them_apart() -> None:
    real: list[Features] = [{"size": 1.0, "more": 0.0}] * 20
    simulated: list[Features] = [{"size": 1.0}] * 20
    assert distinguish(real, simulated, seed=0).verdict == TOLD_APART


def test_too_few_views_are_refused() -> None:
    with pytest.raises(UserError, match="too few"):
        distinguish([{}] * 5, [{}] * 5, seed=0)
    with pytest.raises(ValueError, match="real"):
        distinguish([{}] * 20, [{}] * 21, seed=0)


def test_a_missing_feature_is_not_taken_for_a_correlation_of_minus_one() -> None:
    there, missing = [{"correlation": -1.0}] * SAMPLES, [Features()] * SAMPLES
    assert distinguish(there, missing, seed=0).verdict == TOLD_APART
