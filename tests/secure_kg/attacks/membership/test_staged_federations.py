"""Attacks on real federations in one process: what each party really sees, and that a planted leak is found."""

import functools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from secure_kg.attacks.membership.client_attacks import holders_by_first_means, others_mean
from secure_kg.attacks.membership.experiment import Findings, Plan, run_experiment
from secure_kg.attacks.membership.staged import Staged, stage
from secure_kg.attacks.membership.targets import Names
from secure_kg.attacks.membership.views import Views
from secure_kg.data.graph import ClientGraph
from secure_kg.data.partition import partition
from secure_kg.data.sources import load_source
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.models.shapes import initial_range

NATIONS = partition(load_source("nations"), 3, "triples", 0)
SMALL = TrainingConfig(dim=32, negatives=14, batch_size=64, local_epochs=1, lr=0.02)


def config(aggregation: str, rounds: int, **more: Any) -> RunConfig:
    changes: dict[str, Any] = {"clients": 3, "training": SMALL, **more}
    return RunConfig(
        dataset="nations", strategy="fede", aggregation=aggregation, rounds=rounds, eval_every=rounds,
        checkpoint_every=0, **changes,
    )  # fmt: skip


@functools.cache
def staged(aggregation: str) -> Staged:
    with tempfile.TemporaryDirectory() as folder:
        reversals = {3: np.array([2, 5])}
        return stage(config(aggregation, 4), NATIONS, frozenset((1, 2, 3, 4)), reversals, Path(folder) / "run")


@pytest.mark.parametrize("aggregation", ["plain", "secagg", "secret"])
def test_the_attacker_computes_the_mean_of_the_others_under_every_kind_of_sum(aggregation: str) -> None:
    seen = staged(aggregation)
    kept = seen.kept[1]
    holders = holders_by_first_means(
        kept.uploaded[1].entities, kept.means[1], initial_range(SMALL.margin, SMALL.dim), 3
    )
    true = np.ones(len(NATIONS[0].entities), dtype=np.int64)
    sums = np.zeros_like(kept.means[2])
    for number in (2, 3):
        places = Names.of(NATIONS[number - 1], NATIONS[0]).entities
        held = places >= 0
        true[places[held]] += 1
        sums[places[held]] += seen.kept[number].uploaded[2].entities[held]
    assert np.array_equal(holders, true)
    rest = others_mean(kept.uploaded[2].entities, kept.means[2], holders)
    assert rest[true > 1] == pytest.approx((sums / np.maximum(true - 1, 1)[:, None])[true > 1], abs=1e-3)


def test_the_server_reads_uploads_in_clear_noise_under_masks_and_no_means_of_secret_sums() -> None:
    victim = Names.of(NATIONS[1], NATIONS[0]).entities
    true = staged("plain").kept[2].uploaded[2].entities[victim >= 0]
    for aggregation, reads_upload, reads_means in (
        ("plain", True, True), ("secagg", False, True), ("secret", False, False)
    ):  # fmt: skip
        seen = staged(aggregation)
        upload = seen.server.upload_of(2, 2, seen.places)
        assert upload is not None
        assert bool(np.allclose(upload[victim[victim >= 0]], true, atol=1e-3)) == reads_upload
        assert seen.server.is_masked(2) == (not reads_upload)
        assert (2 in seen.server.means) == reads_means
        if reads_means:
            assert seen.server.means[2][seen.places] == pytest.approx(seen.kept[1].means[2])


def test_reversed_rows_go_up_and_are_repeated_while_the_others_train() -> None:
    kept = staged("secagg").kept[1]
    flipped, repeated = kept.uploaded[3].entities, kept.uploaded[4].entities
    assert np.array_equal(flipped, repeated)
    before = kept.means[2][[2, 5]]
    assert (np.sign(flipped[[2, 5]]) == -np.sign(before)).mean() > 0.8  # a round of training moves rows a little


def test_draws_of_clients_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="client-fraction"):
        stage(config("plain", 4, client_fraction=0.5, min_holders=1), NATIONS, frozenset(), {}, tmp_path / "run")


def ring(seed: int) -> ClientGraph:
    """400 entities on a ring, three relations that are steps along it; each client knows some of the triples."""
    draw = np.random.default_rng(seed)
    heads = np.concatenate((np.arange(400), draw.integers(0, 400, 400)))
    relations = draw.integers(0, 3, len(heads))
    triples = np.unique(np.column_stack((heads, relations, (heads + 37 * (relations + 1)) % 400)), axis=0)
    train, valid, test = np.split(triples[draw.permutation(len(triples))], [-100, -50])
    return ClientGraph(tuple(f"e{number:03d}" for number in range(400)), ("r1", "r2", "r3"), train, valid, test)


def learned_by_heart(aggregation: str) -> Findings:
    plan = Plan(rounds=8, every=8, canaries=100, targets=40, groups=1, active=("canaries",))
    training = TrainingConfig(dim=64, negatives=32, batch_size=128, local_epochs=5, lr=0.02)
    chosen = config(aggregation, plan.all_rounds, training=training)
    with tempfile.TemporaryDirectory() as folder:
        return run_experiment(chosen, [ring(seed) for seed in range(3)], plan, Path(folder) / "run")


def auc_of(found: Findings, attack: str, variant: str, view: str, kind: str) -> float:
    (one,) = [
        one.measures.auc
        for one in found.outcomes
        if (one.attack, one.variant, one.view, one.kind) == (attack, variant, view, kind)
    ]
    return one


def test_a_planted_leak_is_found_under_secure_sums_and_not_attributed() -> None:
    found = learned_by_heart("secagg")
    assert auc_of(found, "white box", "", "the victim's model", "canaries") > 0.95
    assert auc_of(found, "A_SI", "mended", "means", "canaries") > 0.9
    assert auc_of(found, "A_CIP", "mended", "means", "canaries") > 0.85
    assert auc_of(found, "A_CIA", "mended", "means", "canaries") > 0.7
    assert auc_of(found, "A_CIP", "as printed", "means", "canaries") < 0.4
    nothing = [
        auc_of(found, "attacker alone", "", "its own triples", "canaries"),
        auc_of(found, "A_SI", "mended", "masked upload", "canaries"),  # masks differ from run to run
        auc_of(found, "A_SI", "mended", "masked uploads", "attribution"),
        auc_of(found, "A_SI", "mended", "means", "attribution"),
        auc_of(found, "A_CIP", "mended", "means", "attribution"),
    ]
    assert all(abs(auc - 0.5) < 0.2 for auc in nothing), nothing


@pytest.mark.slow
def test_uploads_in_clear_are_attributed() -> None:
    found = learned_by_heart("plain")
    assert auc_of(found, "A_SI", "mended", "upload", "canaries") > 0.95
    assert auc_of(found, "A_SI", "mended", "uploads", "attribution") > 0.95


def test_a_client_without_a_row_of_an_entity_is_not_taken_for_one_that_trains_on_it() -> None:
    views = Views(config("plain", 4), NATIONS, staged("plain"))
    upload = views.upload(3, 2)
    assert upload is not None
    fewer = upload.copy()
    fewer[3] = 0
    asked = np.array([[1, 0, 2], [3, 0, 2], [1, 0, 3]])
    scores = views.by_upload(fewer, asked, 2)
    assert np.isfinite(scores).tolist() == [True, False, False]
    assert scores[0] == pytest.approx(views.by_server(fewer, asked, 2)[0])
    assert (views.by_upload(upload, asked, 2) > scores)[1:].all()
