"""Batches of queries: views are not told from their simulations, and those of broken ones are.

The false-alarm rate of each verdict is 5 * 10^-5 at most (`distinguisher.ERROR`).
"""

from typing import Any

import numpy as np
import pytest

from benchmarks.insecure_scores import SCORE_VARIANTS, insecure_scores
from benchmarks.real_or_ideal import EXPERIMENTS, SCORE_CONTROLS, Comparison, available, compare
from secure_kg.audit.indistinguishability.crypten_experiments import CRYPTEN_PROTOCOLS
from secure_kg.audit.indistinguishability.distinguisher import (
    NOT_TOLD_APART,
    TOLD_APART,
    real_features,
    simulated_features,
)
from secure_kg.audit.indistinguishability.encrypted_experiments import ENCRYPTED_PROTOCOLS
from secure_kg.audit.indistinguishability.hidden_experiments import HIDDEN_CLIENT_PROTOCOLS, HIDDEN_PROTOCOLS
from secure_kg.audit.indistinguishability.score_experiments import SCORE_CLIENT_PROTOCOLS, SCORE_PROTOCOLS
from secure_kg.foundation.progress import Lines

pytestmark = pytest.mark.long

SAMPLES = 20
ENOUGH = dict.fromkeys(CRYPTEN_PROTOCOLS, 16)
"""Samples where a client is a process: of one session."""
NAMES = [
    *SCORE_PROTOCOLS,
    *SCORE_CLIENT_PROTOCOLS,
    *ENCRYPTED_PROTOCOLS,
    *HIDDEN_PROTOCOLS,
    *HIDDEN_CLIENT_PROTOCOLS,
    *CRYPTEN_PROTOCOLS,
]
QUIET = Lines(quiet=True)


IN_EVERY_RUN = {"scores-masked", "scores-topk-client"}
"""A view of the server and one of clients. The others take minutes: `make test-all` has them."""


def if_installed(name: str, *given: Any) -> Any:
    """A case, left out where its packages are missing. Where a client is a process, it takes its time."""
    marks = [] if name in available() else [pytest.mark.skip(reason="packages of an extra are not installed")]
    marks += [] if name in IN_EVERY_RUN else [pytest.mark.slow]
    return pytest.param(*(given or (name,)), marks=marks)


def named(control: Any) -> str:
    return f"{control.protocol}, {control.variant}"


every_view = pytest.mark.parametrize("name", [if_installed(name) for name in NAMES])
every_control = pytest.mark.parametrize(
    "control", [if_installed(control.protocol, control) for control in SCORE_CONTROLS], ids=named
)


@every_view
def test_views_are_not_told_from_their_simulations(name: str) -> None:
    found = compare(Comparison(name), ENOUGH.get(name, SAMPLES), 0, QUIET)
    assert found.verdict != TOLD_APART, found


@pytest.mark.slow
@pytest.mark.parametrize("name", [if_installed(name) for name in NAMES if name not in CRYPTEN_PROTOCOLS])
def test_many_views_are_not_told_from_their_simulations(name: str) -> None:
    found = compare(Comparison(name), 200, 1, QUIET)
    assert found.verdict == NOT_TOLD_APART, found


@every_control
def test_every_broken_batch_is_told_from_the_simulation(control: Comparison) -> None:
    found = compare(control, ENOUGH.get(control.protocol, SAMPLES), 0, QUIET)
    assert found.verdict == TOLD_APART, found


def test_every_variant_is_a_control() -> None:
    assert {control.variant for control in SCORE_CONTROLS} == {*SCORE_VARIANTS, "plain-twin", "no-masks"}
    assert {control.protocol for control in SCORE_CONTROLS} == {*NAMES}


@every_view
def test_real_and_simulated_views_have_the_same_features(name: str) -> None:
    experiment: Any = EXPERIMENTS[name](3)
    (real,), (simulated,) = real_features(experiment, 1), simulated_features(experiment, 1)
    assert real.keys() == simulated.keys()
    assert np.isfinite(list(real.values())).all()


@pytest.mark.parametrize("variant", SCORE_VARIANTS)
def test_what_is_substituted_is_put_back(variant: str) -> None:
    pieces = SCORE_VARIANTS[variant]
    sound = [getattr(place, name) for place, name, _ in pieces]
    with insecure_scores(variant):
        assert all(getattr(place, name) is piece for place, name, piece in pieces)
    assert [getattr(place, name) for place, name, _ in pieces] == sound
