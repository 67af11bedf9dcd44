"""Pooled training on the round loop: each client's own evaluation, files as in every run, resumption, failures."""

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from secure_kg.data.pooling import pool
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.pooled import run_pooled
from secure_kg.foundation.errors import TrainingDiverged, UserError
from secure_kg.learning.kge import KgeLearner
from secure_kg.learning.learner import TrainStats
from secure_kg.learning.pooled import PooledTrainer
from secure_kg.report.page import run_report
from secure_kg.runs.outcome import ServerOutcome
from secure_kg.runs.run_folder import RunFolder
from secure_kg.runs.summary import comparable, summarise
from tests.support.federation_in_threads import nations, small_config

CPU = torch.device("cpu")


def entire(clients: int, **changes: Any) -> RunConfig:
    return small_config(strategy="entire", aggregation="plain", min_participants=1, clients=clients, **changes)


def trainer_of(config: RunConfig) -> PooledTrainer:
    torch.set_num_threads(1)
    return PooledTrainer(pool(nations(config.clients or 1)), config.training, CPU, config.seed)


def run(config: RunConfig, path: Path, trainer: PooledTrainer, *, resume: bool = False) -> ServerOutcome:
    folder = RunFolder.reopen(path, config) if resume else RunFolder.create(path, config)
    return run_pooled(config, trainer, folder, lambda line: None)


@pytest.mark.parametrize("model", ["TransE", "RotatE", "ComplEx"])
def test_a_client_is_evaluated_as_if_it_had_the_pools_rows_itself(model: str) -> None:
    config = entire(3)
    training = type(config.training)(model=model, dim=8, negatives=14, lr=0.01)
    trainer = PooledTrainer(pool(nations(3)), training, CPU, 0)
    trainer.train(1)
    rows = {table: trainer.export_block(table) for table in ("entity", "relation")}
    for side in ("tail", "head"):
        total = trainer.rank("valid", side)
        for position, member in enumerate(trainer.pool.members):
            alone = KgeLearner(member.graph, training, CPU, 0, 7)
            for table, names, known in (
                ("entity", member.graph.entities, trainer.graph.entities),
                ("relation", member.graph.relations, trainer.graph.relations),
            ):
                alone.load_block(table, rows[table][[known.index(name) for name in names]])
            assert alone.rank("valid", side) == trainer.last("valid", side)[position]
        assert total.count == sum(len(member.graph.valid) for member in trainer.pool.members)


def test_the_run_has_the_files_and_figures_of_every_run(tmp_path: Path) -> None:
    config = entire(3)
    trainer = trainer_of(config)
    outcome = run(config, tmp_path / "run", trainer)
    folder = RunFolder(tmp_path / "run")
    summary = summarise(config, outcome, folder)
    assert [client.client for client in summary.clients] == [1, 2, 3]
    assert summary.number_of_clients == summary.test_clients == 3
    total = sum(client.figures["mrr"] * client.test_triples for client in summary.clients)
    assert total / (summary.test_triples or 0) == pytest.approx(summary.figures["mrr"])
    assert summary.bytes_up == 0
    json.dumps(summary.to_json(), allow_nan=False)
    page = run_report(summary, folder.all_metrics(), folder.settings())
    assert "whoever ran this learned" in page
    assert "the server learned" not in page
    for number, member in enumerate(trainer.pool.members, start=1):
        saved = load_file(folder.client(number) / "model.safetensors")
        assert np.array_equal(saved["entity"], trainer.export_block("entity")[member.entities])
    sizes = json.loads((folder.pool / "pool.json").read_text())
    assert sizes["train_triples"] == sum(client.about["train_triples"] for client in summary.clients)
    assert sizes["repeated_train_triples"] == sizes["test_triples_trained_elsewhere"] == 0
    beside = msgspec.structs.replace(summary, config={**summary.config, "strategy": "local"})
    assert comparable(summary, beside)


class Interrupted(UserError):
    pass


def test_interrupted_and_resumed_gives_the_same_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = entire(2, rounds=6)
    whole = run(config, tmp_path / "whole", trainer_of(config))
    broken = trainer_of(config)
    train = broken.train

    def until_round_5(number: int) -> TrainStats:
        if number == 5:
            raise Interrupted("enough")
        return train(number)

    monkeypatch.setattr(broken, "train", until_round_5)
    with pytest.raises(Interrupted, match="enough"):
        run(config, tmp_path / "broken", broken)
    resumed = run(config, tmp_path / "broken", trainer_of(config), resume=True)
    assert (resumed.test, resumed.best_round, resumed.valid_mrr) == (whole.test, whole.best_round, whole.valid_mrr)
    for name in ("pool", "clients/1", "clients/2"):
        models = [(tmp_path / run_name / name / "model.safetensors").read_bytes() for run_name in ("whole", "broken")]
        assert models[0] == models[1]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("problem", [TrainingDiverged("not finite"), RuntimeError("a fault")])
def test_what_fails_in_the_clients_thread_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    config = entire(2)
    trainer = trainer_of(config)

    def fail(*_: object) -> None:
        raise problem

    monkeypatch.setattr(trainer, "evaluate", fail)
    with pytest.raises(type(problem), match=str(problem)):
        run(config, tmp_path / "run", trainer)


@pytest.mark.timeout(60)
def test_what_fails_in_the_server_ends_the_run(tmp_path: Path) -> None:
    config = entire(2, clip=1e12)
    with pytest.raises(UserError, match="--clip"):
        run(config, tmp_path / "run", trainer_of(config))
