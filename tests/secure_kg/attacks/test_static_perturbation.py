"""The published variant falls to subtraction; against fresh masks the same subtraction gives noise."""

from typing import Any

import numpy as np
import pytest
import torch

from protocols.sums.secagg.messages import MaskedInput
from secure_kg.attacks.static_perturbation import (
    attack_published,
    attack_secret_aggregation,
    explained,
    opened_by_colluder,
    published_upload,
    update_between,
)
from secure_kg.data.graph import ClientGraph
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.learning.kge import KgeLearner
from tests.support.federation_in_threads import nations, run_federation, small_config
from tests.support.transcripts import seen_by_server

VICTIM = 1


@pytest.fixture(scope="module")
def secret_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], list[Any]]:
    """A run under secret aggregation: the rows its victim trained, round by round, and what the server got of them."""
    trained = []

    def remember(graph: ClientGraph, settings: RunConfig, number: int) -> KgeLearner:
        trainer = KgeLearner(graph, settings.training, torch.device("cpu"), settings.seed, number)
        train = trainer.train

        def and_remember(round: int) -> Any:
            stats = train(round)
            if number == VICTIM:
                trained.append(trainer.export_block("relation").astype(np.float64))
            return stats

        trainer.train = and_remember  # type: ignore[method-assign]
        return trainer

    path = tmp_path_factory.mktemp("secret") / "run"
    config = small_config(aggregation="secret", transcript=True, rounds=3)  # nobody trains in the first
    run_federation(config, nations(3), path, trainer_of=remember).done()
    uploads = [
        one.message.vector.astype(np.int32).astype(np.float64)  # type: ignore[attr-defined]
        for one in seen_by_server(path)
        if isinstance(one.message, MaskedInput) and one.message.purpose == "rows" and one.peer == VICTIM
    ]
    return trained, uploads[1:]


def test_the_published_variant_shows_every_update(secret_run: tuple[list[Any], list[Any]]) -> None:
    (first, second), _ = secret_run
    perturbation = np.random.default_rng(0).normal(scale=1000.0, size=first.shape)  # however large it is
    uploads = [published_upload(rows, perturbation) for rows in (first, second)]
    assert explained(first, uploads[0]) < 0.1  # one upload alone does hide the rows
    update = update_between(*uploads)
    np.testing.assert_allclose(update, second - first, atol=1e-9)
    assert explained(second - first, update) > 0.999999


def test_one_client_is_enough_to_open_every_upload_of_the_published_variant(
    secret_run: tuple[list[Any], list[Any]],
) -> None:
    (rows, _), _ = secret_run
    perturbation = np.random.default_rng(0).normal(scale=1000.0, size=rows.shape)
    opened = opened_by_colluder(published_upload(rows, perturbation), perturbation)
    np.testing.assert_allclose(opened, rows, atol=1e-9)


def test_fresh_masks_leave_nothing_to_subtract(secret_run: tuple[list[Any], list[Any]]) -> None:
    (first, second), (earlier, later) = secret_run
    values = first.size
    entries = update_between(earlier, later)
    assert len(entries) >= values
    # Where the rows stand in the vector is not known here: no window of it looks like the update.
    update = (second - first).reshape(-1)
    scores = [explained(update, entries[start : start + values]) for start in range(len(entries) - values + 1)]
    assert max(scores) < 30 / values


def test_a_constant_explains_nothing() -> None:
    assert explained(np.zeros(5), np.arange(5.0)) == 0.0
    assert explained(np.arange(5.0), 2 * np.arange(5.0)) == pytest.approx(1.0)


def test_results_on_the_published_variant_and_on_ours() -> None:
    published, ours = attack_published(), attack_secret_aggregation()
    assert published.succeeded
    assert published.scores["explained"] > 0.999
    assert not ours.succeeded
    assert ours.scores["explained"] < 0.05
