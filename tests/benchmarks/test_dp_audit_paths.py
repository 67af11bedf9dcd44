"""The paths of the audit beside training in one place: samples, chosen rows, tests of gaps, and real sessions."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import dp_audit
from benchmarks.canaries import trainings
from benchmarks.canaries.audited import AuditedPath, Observed
from benchmarks.canaries.cases import POISSON
from benchmarks.canaries.corrupt_view import counts, federated, promised
from benchmarks.canaries.findings import auc, correlation
from benchmarks.canaries.games import Game, flames
from benchmarks.canaries.insecure import InsecureQuietTest, public_sample
from benchmarks.canaries.paths import MADE
from benchmarks.canaries.sessions import VICTIM, divided
from benchmarks.canaries.trainings import Plan, adafest
from benchmarks.kge import published_split
from secure_kg.privacy.accounting.accountant import Budget, epsilon_of
from secure_kg.privacy.draws.noise import SecretNoise
from secure_kg.privacy.mechanisms.flames import Flames
from secure_kg.privacy.mechanisms.sgd import Sgd
from secure_kg.privacy.training_config import PrivateTrainingConfig

SMALL = ["--dataset", "nations", "--steps", "4", "--dim", "8"]


def plan(canaries: int = 200, **changes: Any) -> Plan:
    config = PrivateTrainingConfig(**{"dim": 8, "negatives": 8, "clip": 0.03, "steps": 4, "step": 0.02, **changes})
    return Plan(published_split("nations"), config, Budget(4.0, 1e-5), canaries, 0)


def seen(path: AuditedPath, name: str, run: int = 0) -> Observed:
    torch.set_num_threads(1)
    (case,) = (case for case in path.cases if case.name == name)
    return path.observe(case, run)


def told(found: Observed) -> float:
    return auc(found.evidence, found.inside)


def spread(found: Observed) -> list[float]:
    return [float(noise.std()) for noise in found.residuals]


def test_every_path_has_a_name_and_begins_with_the_code_as_it_is() -> None:
    assert set(MADE) == set(dp_audit.PATHS)
    for name in ("adafest", "flames", "federated", "counts"):
        path = MADE[name](plan())
        assert path.cases[0].name == "the code as it is"
        assert 0.7 < path.bound < 0.75
        assert epsilon_of(path.releases, 1e-5) <= 4


def test_samples_hide_whether_a_canary_was_looked_at() -> None:
    """Limits are six standard errors from what is expected."""
    path = trainings._path("poisson", replace(plan(1500), config=plan(sampling=0.25).config), Sgd(0.8, 0.25), POISSON)
    real, full, public = (
        np.mean([told(seen(path, name, run)) for run in range(6)])
        for name in ("the code as it is", "full batches accounted for as samples", "samples by the public seed")
    )
    assert path.bound - 0.07 < real < path.bound
    assert full > path.bound + 0.2
    assert public > path.bound + 0.03


def test_a_public_sample_is_known_for_canaries_that_are_in() -> None:
    """The attacker's word on who is in the sample agrees with the sample itself."""
    from benchmarks.canaries.trainings import _taken

    planted = plan(50).planted(0)
    chosen = public_sample(len(planted.graph.train), 0.25, (3, 1))
    first = len(planted.graph.train) - int(planted.inside.sum())
    really = np.isin(first + np.arange(int(planted.inside.sum())), chosen)
    np.testing.assert_array_equal(_taken(planted, 0.25, (3, 1)).numpy()[planted.inside], really)


def test_a_choice_of_rows_without_noise_tells_every_canary() -> None:
    path = adafest(plan())
    assert told(seen(path, "choice without noise")) == 1
    real = seen(path, "the code as it is")
    assert 0.5 < told(real) < path.bound + 0.2
    assert abs(correlation([(real.residuals[0], real.residuals[1])])[1]) < 5


def test_a_test_without_noise_tells_every_canary() -> None:
    mechanism = Flames.of_total(2.0, (1, 4), 1e-6)
    quiet, real = (Game(mechanism, 0.03, quiet=quiet) for quiet in (True, False))
    sure = [[quiet.played(inside, InsecureQuietTest()) for _ in range(10)] for inside in (False, True)]
    assert max(sure[0]) < min(sure[1])
    evidence = [real.played(inside, SecretNoise()) for inside in (False, True) for _ in range(10)]
    assert len({round(value, 9) for value in evidence}) > 10  # rows that were released have noise of their own
    assert all(abs(value) < 10 for value in evidence)


@pytest.mark.slow
def test_every_game_against_a_quiet_test_is_won() -> None:
    assert told(seen(flames(plan()), "test without noise")) == 1


# --- real sessions ---


def test_the_attacker_is_left_with_the_noise_that_the_statement_promises() -> None:
    """The shares of two honest clients of three, one of them corrupt, are all the noise that there must be."""
    path = federated(plan(100, steps=2))
    noise = path.releases[0][0].noise
    real, small, one = (
        seen(path, name)
        for name in ("the code as it is", "shares as if no client were corrupt", "no noise from one client")
    )
    clients, clip, steps = 3, 0.03, 2
    for number, (deviation, less, half) in enumerate(zip(spread(real), spread(small), spread(one), strict=True)):
        step = 0.02 * (1 - 0.9 * number / (steps - 1))
        assert deviation == pytest.approx(noise * clip * step * clients, rel=0.08)
        assert less == pytest.approx(deviation * math.sqrt(2 / 3), rel=0.08)
        assert half == pytest.approx(deviation * math.sqrt(1 / 2), rel=0.08)
    assert abs(correlation([(real.residuals[0], real.residuals[1])])[1]) < 5
    assert told(real) < path.bound + 0.2


def test_noise_of_the_round_before_and_rows_without_noise_are_seen() -> None:
    path = federated(plan(60, steps=2))
    reused = seen(path, "noise of the round before")
    assert correlation([(reused.residuals[0], reused.residuals[1])])[0] == pytest.approx(1, abs=1e-3)
    assert told(seen(path, "relation rows without noise, fede")) == 1
    assert told(seen(path, "the code as it is, fede")) < 0.95


def test_a_table_of_counts_has_noise_on_every_cell() -> None:
    path = counts(plan(100))
    real, bare = seen(path, "the code as it is"), seen(path, "no noise on empty cells")
    (deviation,) = spread(real)
    assert deviation == pytest.approx(path.releases[0][0].noise, rel=0.08)
    assert told(bare) == 1
    assert 0.5 < told(real) < 0.95


def test_all_canaries_are_the_victims() -> None:
    planted = plan(30).planted(0)
    parts = divided(planted)
    assert sum(len(part.train) for part in parts) == len(planted.graph.train)
    inside = {tuple(row) for row in planted.canaries[planted.inside].tolist()}
    for number, part in enumerate(parts, start=1):
        assert len(inside & {tuple(row) for row in part.train.tolist()}) == (len(inside) if number == VICTIM else 0)


def test_what_is_promised_is_the_statements() -> None:
    from benchmarks.canaries.corrupt_view import _config

    ((release, times),) = promised(_config(plan(), "all-rows", 0))
    assert (release.full, times) == (True, 4)


@pytest.mark.slow
def test_samples_pass_and_their_faults_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--path", "poisson", "--runs", "10", "--canaries", "200", "--json", "-"]
    assert dp_audit.main([*SMALL, *options]) == 0
    (path,) = json.loads(capsys.readouterr().out)["paths"]
    found = {row["code"]: row for row in path["rows"]}
    assert found["the code as it is"]["auc"] > path["auc_bound"] - 0.07
    assert path["releases"][0]["sampling"] == 0.25
    assert path["runs"] == 10


@pytest.mark.slow
def test_sessions_pass_and_their_faults_are_found() -> None:
    assert dp_audit.main([*SMALL, "--path", "federated", "counts", "--runs", "20"]) == 0
