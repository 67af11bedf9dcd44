"""The audit of private training: it passes the code, finds every planted fault, and fails where it should."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks import dp_audit
from benchmarks.canaries import trainings
from benchmarks.canaries.bounds import area_below, auc_bound, auc_of_losses, gaussian_auc
from benchmarks.canaries.cases import CENTRAL
from benchmarks.canaries.findings import auc, correlation, excess, power, runs_needed
from benchmarks.canaries.insecure import InsecureLessNoise, InsecureSeparateClips
from benchmarks.canaries.planting import plant
from benchmarks.kge import published_split
from secure_kg.privacy.accounting.accountant import Budget, Release, noise_for
from secure_kg.privacy.gradients.clipped_sums import PrivateGradients
from secure_kg.privacy.training import private_model
from secure_kg.privacy.training_config import PrivateTrainingConfig

SMALL = ["--path", "central", "--dataset", "nations", "--steps", "4", "--dim", "8"]


def test_the_code_passes_and_every_fault_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert dp_audit.main([*SMALL, "--runs", "14", "--canaries", "700", "--json", "-"]) == 0
    report = json.loads(capsys.readouterr().out)
    (path,) = report["paths"]
    found = {row["code"]: row for row in path["rows"]}
    assert path["auc_bound"] == pytest.approx(0.7435, abs=1e-4)
    assert path["epsilon_by_the_accountant"] <= 4
    real = found.pop("the code as it is")
    assert real["found_by"] == []
    assert real["auc"] > path["auc_bound"] - 0.05  # the attack is worth its name
    probes = [found.pop(f"{part} of the noise") for part in (0.8, 0.9)]
    assert all(row["probe"] and 0 <= row["power"] <= 1 for row in probes)
    assert probes[0]["auc"] > path["auc_bound"]
    assert all(row["must_be_found_by"] in row["found_by"] for row in found.values())
    assert len(found) == 6
    assert found["noise on touched rows only"]["auc"] == 1
    assert found["half the noise"]["auc"] == pytest.approx(0.905, abs=0.04)  # μ doubled
    assert found["reused noise"]["correlation_of_steps"] == pytest.approx(1, abs=1e-3)
    assert found["seeded noise"]["correlation_of_runs"] == pytest.approx(1, abs=1e-3)


def test_an_audit_that_does_not_find_a_fault_is_not_passed(capsys: pytest.CaptureFixture[str]) -> None:
    assert dp_audit.main([*SMALL, "--runs", "2", "--canaries", "20", "--threshold", "1e9"]) == 1
    assert "NOT PASSED" in capsys.readouterr().out


def test_a_fault_in_the_code_itself_is_not_passed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = CENTRAL[0]
    monkeypatch.setattr(trainings, "CENTRAL", (replace(real, mechanism=InsecureLessNoise),))
    assert dp_audit.main([*SMALL, "--runs", "10", "--canaries", "200"]) == 1
    assert "canaries" in capsys.readouterr().out


def test_the_bound_is_that_of_the_accountant() -> None:
    noise = noise_for(Budget(4.0, 1e-5), 20)
    bound = auc_bound([(Release(noise), 20)])
    assert bound == pytest.approx(auc_bound([(Release(noise / math.sqrt(20)), 1)]))
    draws = np.random.default_rng(1).normal(size=(2, 200_000))
    told = float((draws[0] + math.sqrt(20) / noise > draws[1]).mean())
    assert told == pytest.approx(bound, abs=0.005)


def test_the_bound_of_losses_is_the_closed_form_at_sampling_one_and_less_for_samples() -> None:
    noise = noise_for(Budget(4.0, 1e-5), 20)
    closed = auc_bound([(Release(noise), 20)])
    assert closed <= auc_of_losses([(Release(noise), 20)]) <= closed + 1e-4
    sampled = auc_bound([(Release(noise, 0.25), 20)])
    assert sampled < auc_bound([(Release(noise, 0.5), 20)]) < closed
    random, tries = np.random.default_rng(2), 100_000
    scores = []
    for inside in (True, False):  # the best attack on samples
        seen = random.normal(0.0, noise, (20, tries)) + (inside & (random.random((20, tries)) < 0.25))
        scores.append(np.log(0.75 + 0.25 * np.exp((seen - 0.5) / noise**2)).sum(axis=0))
    told = float((scores[0] > scores[1]).mean())
    assert told - 0.005 < sampled < told + 0.02


def test_the_bound_of_pairs_of_epsilon_and_delta() -> None:
    assert area_below([0.0], [0.3]) == pytest.approx(1 - 0.7**2 / 2, abs=1e-6)  # y ≤ x + 0.3
    odds = math.exp(2.0)  # randomised response: two pieces that meet at x = 1 / (1 + e^2)
    assert area_below([2.0], [0.0]) == pytest.approx(odds / (1 + odds), abs=1e-6)


def test_the_power_is_how_often_there_is_a_finding() -> None:
    random, bound, runs = np.random.default_rng(4), gaussian_auc(1.0), 20
    values = (bound + 0.03 + 0.025 * random.normal(size=2000)).tolist()
    found = [excess((bound + 0.03 + 0.025 * random.normal(size=runs)).tolist(), bound) > 5 for _ in range(2000)]
    expected = power(values, bound, runs, 5.0)
    assert expected == pytest.approx(float(np.mean(found)), abs=0.06)
    needed = runs_needed(values, bound, 5.0)
    assert needed is not None
    assert power(values, bound, needed, 5.0) >= 0.9 > power(values, bound, needed - 1, 5.0)
    assert runs_needed([bound - 0.01, bound - 0.02], bound, 5.0) is None


def test_figures_of_the_tests() -> None:
    inside = np.array([True, True, False, False])
    assert auc(np.array([3.0, 2.0, 1.0, 0.0]), inside) == 1
    assert auc(np.array([1.0, -np.inf, -np.inf, 0.0]), inside) == pytest.approx((1 + 1 + 0.5 + 0) / 4)
    with pytest.raises(ValueError, match="both sides"):
        auc(np.zeros(2), np.array([True, True]))
    assert excess([0.7, 0.8], 0.65) == pytest.approx(0.1 / 0.05)
    one = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    assert correlation([(one, one), (one, -one)])[0] == pytest.approx(0, abs=1e-6)
    assert correlation([(one, one)])[1] == pytest.approx(math.sqrt(1000), rel=1e-3)


def test_canaries_have_rows_of_their_own() -> None:
    graph = published_split("nations")
    planted = plant(graph, 40, np.random.default_rng(3))
    ends = planted.canaries[:, [0, 2]].reshape(-1)
    assert len(set(ends)) == 80
    assert ends.min() == len(graph.entities)
    assert len(planted.graph.entities) == len(set(planted.graph.entities)) == len(graph.entities) + 80
    assert len(planted.graph.relations) == len(graph.relations) + 40
    added = planted.graph.train[len(graph.train) :]
    assert np.array_equal(added, planted.canaries[planted.inside])
    assert 5 < planted.inside.sum() < 35


def test_separate_clips_that_are_not_reached_change_nothing() -> None:
    """Without clipping, positive and negative parts together are the real gradient."""
    graph = published_split("nations")
    model = private_model(PrivateTrainingConfig(dim=8), (len(graph.entities), len(graph.relations)), 1)
    triples, candidates = torch.from_numpy(graph.train[:50]), torch.arange(0, 14, 2)
    apart = InsecureSeparateClips(model, 1e6)(triples, candidates)
    real = PrivateGradients(model).sums(triples, candidates, 1e6)
    assert torch.allclose(apart.entity, real.entity, atol=1e-4)
    assert torch.allclose(apart.relation, real.relation, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["4", "8"])
def test_the_whole_audit(epsilon: str) -> None:
    assert dp_audit.main(["--epsilon", epsilon, "--path", "all"]) == 0


@pytest.mark.parametrize(
    "options",
    [
        ["--path", "none"],
        ["--sampling", "1"],
        ["--runs", "1"],
        ["--canaries", "1"],
        ["--epsilon", "-1"],
        ["--clip", "0"],
        ["--dataset", "nowhere"],
        ["--x"],
    ],
)
def test_a_mistake_gets_one_line(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert dp_audit.main(options) == 2
    assert capsys.readouterr().err.count("\n") == 1
