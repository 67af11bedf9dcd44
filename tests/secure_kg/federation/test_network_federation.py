"""Graph networks in a whole federation: twins, resumption, what is shared, pooled training, and what is refused."""

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

import launch.audit
from secure_kg.audit.audit import audit
from secure_kg.audit.view.read import open_run
from secure_kg.data.pooling import pool
from secure_kg.federation.plan.run_plan import RunPlan
from secure_kg.federation.plan.settings import RunConfig
from secure_kg.federation.plan.strategies import STRATEGIES, learner_of
from secure_kg.federation.pooled import run_pooled
from secure_kg.foundation.errors import UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.query_config import QueryConfig
from secure_kg.models.networks.config import NetworkConfig
from secure_kg.models.networks.kinds import NETWORKS
from secure_kg.models.networks.noge_config import NogeConfig
from secure_kg.privacy.run_config import PrivacyConfig
from secure_kg.runs.run_folder import RunFolder
from secure_kg.runs.summary import comparable, summarise
from tests.support.federation_in_threads import Run, nations, run_federation, small_config

pytestmark = pytest.mark.long

CLIENTS = 3
SMALL = NogeConfig(dim=8, batch_size=128, local_epochs=1)


def network_config(**changes: Any) -> RunConfig:
    network = dataclasses.replace(SMALL, **changes.pop("network", {}))
    defaults: dict[str, Any] = {"training": TrainingConfig(), "clients": CLIENTS, "max_corrupt": 0.0}
    return small_config(**{**defaults, "network": network, **changes})


def run_networks(config: RunConfig, path: Path, *, resume: bool = False) -> Run:
    def learner(graph: Any, own: RunConfig, number: int) -> Any:
        return RunPlan(own, CLIENTS).learner.make(own, graph, number, torch.device("cpu"))

    run = run_federation(config, nations(CLIENTS), path, trainer_of=learner, resume=resume)
    run.done()
    return run


def same(run: Run, other: Run) -> None:
    for number, learner in run.trainers.items():
        assert learner.digest() == other.trainers[number].digest()
        assert learner.evaluate("test") == other.trainers[number].evaluate("test")


@pytest.mark.parametrize("strategy", ["fedr", "fede", "all-rows"])
def test_twins_agree_to_the_last_bit(tmp_path: Path, strategy: str) -> None:
    plain, *others = (
        run_networks(network_config(strategy=strategy, aggregation=sums, alignment=names), tmp_path / sums)
        for sums, names in (("plain", "plain"), ("secagg", "psu"), ("secret", "psu"))
    )
    for other in others:
        same(plain, other)


@pytest.mark.parametrize("means_loaded", ["every-round", "for-evaluation"])
def test_broken_and_resumed_it_ends_alike(tmp_path: Path, means_loaded: str) -> None:
    """Evaluations are due every second round, so the break comes once before one and once after one."""
    loaded, parts = {"means_loaded": means_loaded}, tmp_path / "parts"
    whole = run_networks(network_config(rounds=7, checkpoint_every=1, network=loaded), tmp_path / "whole")
    for rounds in (3, 4):
        cut = network_config(rounds=rounds, checkpoint_every=1, eval_every=2, network=loaded)
        run_networks(cut, parts, resume=parts.exists())
    same(whole, run_networks(network_config(rounds=7, checkpoint_every=1, network=loaded), parts, resume=True))


def test_rows_that_go_in_are_common_and_the_rest_stays_with_each_client(tmp_path: Path) -> None:
    run = run_networks(network_config(rounds=3), tmp_path / "run")
    one, other = run.trainers[1], run.trainers[2]
    mine, theirs = (
        dict(zip(each.graph.relations, each.export_block("relation"), strict=True)) for each in (one, other)
    )
    common = mine.keys() & theirs.keys()
    assert common
    assert all(np.array_equal(mine[name], theirs[name]) for name in common)
    assert not np.array_equal(one.network.weight.detach(), other.network.weight.detach())  # type: ignore[attr-defined]


@pytest.mark.parametrize(("strategy", "rows"), [("fedr", ["relation"]), ("fede", ["entity"]), ("local", [])])
def test_blocks_are_as_wide_as_the_rows(strategy: str, rows: list[str]) -> None:
    blocks = RunPlan(network_config(strategy=strategy), CLIENTS).blocks
    assert [(block.name, block.width, block.span) for block in blocks] == [(name, 8, SMALL.span) for name in rows]


def test_pooled_it_is_compared_with_the_others(tmp_path: Path) -> None:
    config = network_config(strategy="entire", aggregation="plain", min_participants=1)
    trainer = learner_of(config).make_pooled(config, pool(nations(CLIENTS)), torch.device("cpu"))
    folder = RunFolder.create(tmp_path / "pool", config)
    summary = summarise(config, run_pooled(config, trainer, folder, lambda line: None), folder)
    alone, path = network_config(strategy="local"), tmp_path / "local"
    other = summarise(alone, run_networks(alone, path).done(), RunFolder(path))
    assert comparable(summary, other)
    drier = network_config(network={"dropout": 0.4}).told()["network"]
    assert not comparable(summary, msgspec.structs.replace(other, config=other.config | {"network": drier}))
    assert summary.settings.model == "NoGE"
    members = [one.figures["mrr"] for one in summary.clients]
    assert min(members) < summary.figures["mrr"] < max(members)


def test_an_audit_finds_nothing_and_says_that_attacks_do_not_know_the_rows(tmp_path: Path) -> None:
    run_networks(network_config(transcript=True), tmp_path / "run")
    found = audit(open_run(tmp_path / "run"))
    assert [finding.id for finding in found.findings if finding.severity == "high"] == []
    clients, out = tmp_path / "run" / "clients", tmp_path / "audit"
    assert launch.audit.main([str(tmp_path / "run"), "--truth", str(clients), "--out", str(out)]) == 0
    assert "trained a graph network" in (out / "audit.html").read_text()


def test_settings_of_a_network_are_part_of_a_runs_settings() -> None:
    config = network_config()
    assert RunConfig.from_toml(config.to_toml(), "here") == config
    assert "[network]" in config.to_toml()
    assert "[training]" not in config.to_toml()
    assert config.digest() != network_config(network={"dropout": 0.4}).digest()
    assert config.digest() == network_config(training=TrainingConfig(margin=3.0)).digest()
    assert "network" not in small_config().to_toml()
    assert (config.model, config.dim) == ("NoGE", 8)


@pytest.mark.parametrize(
    ("added", "words"),
    [
        ("margin = 3\n", "unknown setting 'margin'"),
        ("dim = 'wide'\n", "'dim' has the wrong type"),
        ("[training]\nmodel = 'TransE'\n", "'training' has no meaning beside 'network'"),
    ],
)
def test_files_are_read_strictly(added: str, words: str) -> None:
    text = network_config().to_toml().replace("dim = 8\n", "") if "dim" in added else network_config().to_toml()
    with pytest.raises(UserError, match=words):
        RunConfig.from_toml(text + added, "here")


def test_a_file_without_a_known_network_is_refused() -> None:
    with pytest.raises(UserError, match="choose one of NoGE"):
        RunConfig.from_toml("[network]\nmodel = 'GraphSAGE'\n", "here")


def test_combinations_without_a_meaning_are_refused() -> None:
    with pytest.raises(UserError, match="private gradients are those of embedding models"):
        network_config(privacy=PrivacyConfig(dp="sgd", epsilon=2.0, delta=1e-5), ring_bits=64)
    with pytest.raises(UserError, match="has a learner of its own"):
        network_config(strategy="fedcqa", queries=QueryConfig())
    with pytest.raises(ValueError, match="under the name of another"):
        RunConfig(network=NetworkConfig(model="NoGE"))


def test_rows_that_differ_in_width_are_no_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NogeConfig, "widths", property(lambda self: (self.dim, 2 * self.dim)))
    with pytest.raises(UserError, match="rows of NoGE differ in width"):
        network_config(strategy="all-rows")


def test_every_network_has_its_settings_under_its_name() -> None:
    for name, kind in NETWORKS.items():
        assert kind.settings().model == name
        assert set(kind.presets["small"]) <= {entry.name for entry in dataclasses.fields(RunConfig)} | set(kind.options)
    assert all(strategy.learner.pooled for strategy in STRATEGIES.values())
