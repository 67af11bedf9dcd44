"""The learner of KB-GAT: its rounds, its decoder as a function of the rows, its state, and what it refuses."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from secure_kg.data.graph import ClientGraph
from secure_kg.data.partition import partition
from secure_kg.data.sources import load_source
from secure_kg.foundation.errors import TrainingDiverged, UserError
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.networks import kbgat
from secure_kg.learning.networks.kbgat import KbgatLearner
from secure_kg.models.networks.kbgat_config import KbgatConfig

CPU = torch.device("cpu")
SMALL = KbgatConfig(
    dim=8, filters=4, batch_size=64, local_epochs=2, decoder_epochs=2, decoder_negatives=4, decoder_batch_size=64
)


@dataclass(frozen=True)
class Told:
    """Settings of a run, as a learner is told them."""

    network: KbgatConfig = SMALL
    seed: int = 0
    training: TrainingConfig = field(default_factory=TrainingConfig)
    queries: None = None


def nations(client: int = 1) -> ClientGraph:
    return partition(load_source("nations"), 3, "relations", 0)[client - 1]


def learner_of(client: int = 1, seed: int = 0, **changes: Any) -> KbgatLearner:
    return KbgatLearner(Told(dataclasses.replace(SMALL, **changes), seed), nations(client), client, CPU)


def test_training_follows_from_seed_client_and_round_alone() -> None:
    one, other = learner_of(), learner_of()
    assert one.train(2) == other.train(2)
    assert one.digest() == other.digest()
    digests = {one.digest()}
    for change in (learner_of(seed=1), learner_of()):
        change.train(3)
        digests.add(change.digest())
    assert len(digests) == 3


def test_a_round_leaves_the_rows_that_come_out_to_be_shared() -> None:
    learner = learner_of()
    before = learner.export_block("entity")
    stats = learner.train(2)
    assert (stats.triples, stats.steps) == (2 * len(learner.graph.train), 2 * -(-len(learner.graph.train) // 64))
    after = learner.export_block("entity")
    assert not np.allclose(before, after)
    np.testing.assert_allclose(np.linalg.norm(after, axis=1), 1, atol=1e-5)


def test_networks_begin_alike_at_all_clients_and_rows_do_not() -> None:
    one, other = learner_of(1).parameters_state(), learner_of(2).parameters_state()
    for name in one:
        if name.startswith(("encoder.", "decoder.")):
            assert torch.equal(one[name], other[name])
    assert not torch.equal(one["entity"][0], other["entity"][0])


def test_the_decoder_is_a_function_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = []
    fitted = kbgat.fit_decoder
    monkeypatch.setattr(kbgat, "fit_decoder", lambda *arguments: (fits.append(1), fitted(*arguments))[1])
    learner = learner_of()
    learner.train(2)
    assert not fits  # nobody has asked yet
    digest, first = learner.digest(), learner.evaluate("valid")
    assert learner.evaluate("test") == learner.evaluate("test")
    assert len(fits) == 1
    assert learner.digest() == digest
    rows = learner.export_block("relation")
    learner.load_block("relation", rows + np.float32(0.5))
    assert learner.evaluate("valid") != first
    learner.load_block("relation", rows)
    assert learner.evaluate("valid") == first
    assert len(fits) == 3


def test_a_saved_state_goes_on_to_the_last_bit_and_is_not_fitted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = learner_of()
    whole.train(1)
    measured, state = whole.evaluate("valid"), whole.state()
    whole.train(2)
    resumed = learner_of()
    resumed.load_state(state)
    with monkeypatch.context() as patch:
        patch.delattr(kbgat, "fit_decoder")
        assert resumed.evaluate("valid") == measured
    resumed.train(2)
    assert resumed.digest() == whole.digest()
    assert resumed.evaluate("test") == whole.evaluate("test")
    best = whole.parameters_state()
    assert best.keys() == learner_of().parameters_state().keys()
    whole.train(3)
    whole.load_parameters(best)
    assert whole.digest() == resumed.digest()


def test_a_state_between_evaluations_is_saved_without_a_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = learner_of()
    learner.train(1)
    monkeypatch.delattr(kbgat, "fit_decoder")
    other = learner_of()
    other.load_state(learner.state())
    assert other.digest() == learner.digest()
    monkeypatch.undo()
    assert other.evaluate("valid") == learner.evaluate("valid")


def test_divergence_is_told() -> None:
    learner = learner_of()
    learner.load_block("relation", np.full_like(learner.export_block("relation"), np.nan))
    with pytest.raises(TrainingDiverged, match="round 4"):
        learner.train(4)
    with pytest.raises(TrainingDiverged, match="decoder"):
        learner.evaluate("valid")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"heads": 0}, "--heads must be at least 1"),
        ({"heads": 17}, "--heads must be at most 16"),
        ({"filters": 2**31}, "--filters must be at most 4096"),
        ({"decoder_epochs": 0}, "--decoder-epochs must be at least 1"),
        ({"negatives": 3}, "--negatives must be even"),
        ({"decoder_negatives": 5}, "--decoder-negatives must be even"),
        ({"two_hop": -1}, "--two-hop must not be negative"),
        ({"attention_dropout": 1.0}, "--attention-dropout must be at least 0 and below 1"),
        ({"weight_decay": -1.0}, "--weight-decay must be at least 0"),
        ({"final_rows": "first-batch"}, "--final-rows must be one of whole, last-batch"),
        ({"margin": 0.0}, "--margin must be a positive number"),
    ],
)
def test_settings_that_have_no_meaning(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        KbgatConfig(**settings)


def test_defaults_are_those_of_the_paper() -> None:
    usual = KbgatConfig()
    assert (usual.dim, usual.local_epochs, usual.decoder_epochs, usual.filters) == (50, 500, 150, 50)
    assert (usual.negatives, usual.decoder_negatives, usual.margin) == (2, 40, 5.0)
