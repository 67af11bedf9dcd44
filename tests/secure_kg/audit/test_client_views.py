"""What a client sees of a count: not told from its simulation, and broken counts are.

The false-alarm rate of each verdict is 5 * 10^-5 at most (`distinguisher.ERROR`).
"""

import numpy as np
import pytest

from benchmarks.insecure_counts import insecure_count
from benchmarks.real_or_ideal import CLIENT_CONTROLS, Comparison
from secure_kg.audit.indistinguishability.client_views import BOUNDS, CLIENT_PROTOCOLS, client_counts
from secure_kg.audit.indistinguishability.distinguisher import (
    TOLD_APART,
    distinguish,
    real_features,
    simulated_features,
)
from secure_kg.audit.indistinguishability.view_features import Features

pytestmark = pytest.mark.long

SAMPLES = 20
MANY_SAMPLES = 40


@pytest.fixture(scope="module")
def simulated() -> list[Features]:
    return simulated_features(client_counts(0), SAMPLES)


def test_a_clients_view_is_not_told_from_its_simulation(simulated: list[Features]) -> None:
    found = distinguish(real_features(client_counts(0), SAMPLES), simulated, seed=0)
    assert found.verdict != TOLD_APART, found


@pytest.mark.slow
def test_many_views_of_a_client_are_not_told_from_their_simulations() -> None:
    real, made_up = (features(client_counts(0), MANY_SAMPLES) for features in (real_features, simulated_features))
    found = distinguish(real, made_up, seed=0)
    assert found.verdict != TOLD_APART, found


@pytest.mark.parametrize("control", CLIENT_CONTROLS, ids=lambda control: control.variant)
def test_every_broken_count_is_told_from_the_simulation(control: Comparison, simulated: list[Features]) -> None:
    assert control.variant is not None
    with insecure_count(control.variant):
        broken = real_features(CLIENT_PROTOCOLS[control.protocol](0), SAMPLES)
    found = distinguish(broken, simulated, seed=0)
    assert found.verdict == TOLD_APART, found


def test_the_counts_have_rows_of_every_number_of_other_holders(simulated: list[Features]) -> None:
    """With more others than the bound asks for, whose number must not show. One client less is in the last count."""
    assert {least - 1 for least in BOUNDS} == {2, 3}
    for number, most in enumerate((4, 4, 3)):
        regular = [simulated[0][f"count {number}, {m} others: regular"] for m in range(most + 1)]
        assert sum(regular) > 0
        assert f"count {number}, {most + 1} others: regular" not in simulated[0]
    real = real_features(client_counts(1), 1)[0]
    assert real.keys() == simulated_features(client_counts(1), 1)[0].keys()
    assert np.isfinite(list(real.values())).all()
