"""KB-GAT in a whole federation: twins, resumption in mid-run, what is shared, pooled training, and a saved model."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from secure_kg.data.pooling import pool
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import learner_of
from secure_kg.federation.pooled import run_pooled
from secure_kg.learning.config import TrainingConfig
from secure_kg.models.networks.kbgat_config import KbgatConfig
from secure_kg.runs.run_folder import RunFolder
from secure_kg.runs.summary import summarise
from secure_kg.trained.loading import load_scorer
from tests.support.federation_in_threads import Run, nations, run_federation, small_config

pytestmark = pytest.mark.long

CLIENTS = 3
SMALL = KbgatConfig(
    dim=8, filters=4, batch_size=64, local_epochs=1, decoder_epochs=1, decoder_negatives=4, decoder_batch_size=64
)


def kbgat_config(**changes: Any) -> RunConfig:
    defaults: dict[str, Any] = {"training": TrainingConfig(), "clients": CLIENTS, "max_corrupt": 0.0, "network": SMALL}
    return small_config(**{**defaults, **changes})


def run_kbgat(config: RunConfig, path: Path, *, resume: bool = False) -> Run:
    def learner(graph: Any, own: RunConfig, number: int) -> Any:
        return RunPlan(own, CLIENTS).learner.make(own, graph, number, torch.device("cpu"))

    run = run_federation(config, nations(CLIENTS), path, trainer_of=learner, resume=resume)
    run.done()
    return run


def same(run: Run, other: Run) -> None:
    for number, learner in run.trainers.items():
        assert learner.digest() == other.trainers[number].digest()
        mine, theirs = learner.parameters_state(), other.trainers[number].parameters_state()
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(value, theirs[name]) for name, value in mine.items())


@pytest.mark.parametrize("strategy", ["fedr", "fede"])
def test_twins_agree_to_the_last_bit(tmp_path: Path, strategy: str) -> None:
    plain, *others = (
        run_kbgat(kbgat_config(strategy=strategy, aggregation=sums, alignment=names, rounds=4), tmp_path / sums)
        for sums, names in (("plain", "plain"), ("secagg", "psu"), ("secret", "psu"))
    )
    for other in others:
        same(plain, other)


def test_broken_and_resumed_it_ends_alike(tmp_path: Path) -> None:
    """With decoders that were fitted in the last round before a break, and the encoders' own networks."""
    parts, whole = tmp_path / "parts", run_kbgat(kbgat_config(rounds=6), tmp_path / "whole")
    for rounds in (2, 4):
        run_kbgat(kbgat_config(rounds=rounds), parts, resume=parts.exists())
    same(whole, run_kbgat(kbgat_config(rounds=6), parts, resume=True))


def test_rows_are_common_and_networks_stay_with_each_client(tmp_path: Path) -> None:
    run = run_kbgat(kbgat_config(rounds=3), tmp_path / "run")
    one, other = run.trainers[1], run.trainers[2]
    tables = (dict(zip(each.graph.relations, each.export_block("relation"), strict=True)) for each in (one, other))
    mine, theirs = tables
    common = mine.keys() & theirs.keys()
    assert common
    assert all(np.array_equal(mine[name], theirs[name]) for name in common)
    for part in ("encoder.entities", "decoder.filters"):
        assert not torch.equal(one.parameters_state()[part], other.parameters_state()[part])


def test_pooled(tmp_path: Path) -> None:
    config = kbgat_config(strategy="entire", aggregation="plain", min_participants=1, rounds=2)
    trainer = learner_of(config).make_pooled(config, pool(nations(CLIENTS)), torch.device("cpu"))
    folder = RunFolder.create(tmp_path / "pool", config)
    summary = summarise(config, run_pooled(config, trainer, folder, lambda line: None), folder)
    assert summary.settings.model == "KBGAT"
    assert len(summary.clients) == CLIENTS


def test_a_saved_model_scores_as_the_learner_ranked(tmp_path: Path) -> None:
    run = run_kbgat(kbgat_config(rounds=3), tmp_path / "run")
    learner, graph = run.trainers[1], nations(CLIENTS)[0]
    triples = torch.from_numpy(graph.test)
    loaded = load_scorer(tmp_path / "run", kbgat_config(rounds=3), 1, graph)
    for side in ("tail", "head"):
        scores = learner.network.decoder.scores(learner.nodes(), triples, side)  # type: ignore[attr-defined]
        assert torch.equal(loaded.scores(triples, side), scores)
    column = triples[:, 2, None]
    torch.testing.assert_close(
        loaded.of_triples(triples, "tail"), loaded.scores(triples, "tail").gather(1, column)[:, 0]
    )
