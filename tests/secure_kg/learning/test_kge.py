"""The local trainer: it learns, repeats itself bit for bit, resumes, and says when it diverges."""

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from secure_kg.data.graph import ClientGraph
from secure_kg.foundation.errors import TrainingDiverged
from secure_kg.learning.config import TrainingConfig
from secure_kg.learning.device import pick_device
from secure_kg.learning.kge import KgeLearner
from secure_kg.learning.kge_steps import CompiledSteps, Steps, TorchSteps
from secure_kg.learning.loss import self_adversarial_loss
from secure_kg.learning.negatives import NegativeSampler
from secure_kg.models.shapes import MODELS, entity_width, relation_width

SMALL = TrainingConfig(dim=8, negatives=6, margin=4.0, lr=0.02, batch_size=16, local_epochs=2)


def ring(entities: int = 12) -> ClientGraph:
    """Two relations, one step and two steps round a ring; DistMult, being symmetric, cannot tell forth from back."""
    steps = [(i, r, (i + r + 1) % entities) for i in range(entities) for r in range(2)]
    triples = np.random.default_rng(0).permutation(np.array(steps, dtype=np.int64))
    names = tuple(f"e{i:02}" for i in range(entities)), ("one", "two")
    return ClientGraph(*names, triples[:-4], triples[-4:-2], triples[-2:])


def trainer(config: TrainingConfig = SMALL, seed: int = 1, client: int = 1) -> KgeLearner:
    return KgeLearner(ring(), config, pick_device(0, "cpu"), seed, client)


def same_rows(a: KgeLearner, b: KgeLearner) -> bool:
    return all(a.export_block(table).tobytes() == b.export_block(table).tobytes() for table in ("entity", "relation"))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("corrupt", ["tail", "both"])
def test_training_lowers_the_loss_and_finds_the_train_triples(model: str, corrupt: str) -> None:
    local = trainer(replace(SMALL, model=model, corrupt=corrupt))  # type: ignore[arg-type]
    before = local.rank("train", "both").metrics()["mrr"]
    losses = [local.train(number).loss for number in range(30)]
    assert losses[-1] < 0.8 * losses[0]
    assert local.rank("train", "both").metrics()["mrr"] > max(before + 0.1, 0.4)


def test_stats_count_triples_and_steps() -> None:
    stats = trainer().train(0)
    assert (stats.triples, stats.steps) == (2 * 20, 2 * 2)


@pytest.mark.parametrize("model", MODELS)
def test_the_same_seed_gives_the_same_bits(model: str) -> None:
    config = replace(SMALL, model=model, corrupt="both")
    first, again = trainer(config), trainer(config)
    others = [trainer(config, seed=2), trainer(config, client=2)]
    for number in range(3):
        for local in (first, again, *others):
            local.train(number)
    assert same_rows(first, again)
    assert not any(same_rows(first, other) for other in others)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("rounds_before", [0, 2])
def test_a_stored_state_continues_to_the_same_bits(model: str, rounds_before: int, tmp_path: Path) -> None:
    config = replace(SMALL, model=model, corrupt="both")
    straight, resumed = trainer(config), trainer(config, seed=1)
    for number in range(rounds_before):
        straight.train(number)
    save_file(straight.state(), tmp_path / "state.safetensors")
    resumed.train(7)  # whatever it was before, the loaded state replaces it
    resumed.load_state(load_file(tmp_path / "state.safetensors"))
    for number in range(rounds_before, rounds_before + 3):
        for local in (straight, resumed):
            local.train(number)
            local.load_block("relation", local.export_block("relation") * np.float32(0.5))
    assert same_rows(straight, resumed)
    expected, found = straight.state(), resumed.state()
    assert set(expected) == set(found)
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_state_is_a_copy() -> None:
    local = trainer()
    local.train(0)
    state, parameters, rows = local.state(), local.parameters_state(), local.export_block("entity")
    kept = {name: tensor.clone() for name, tensor in state.items()}
    local.train(1)
    assert all(torch.equal(state[name], kept[name]) for name in kept)
    assert torch.equal(parameters["entity"], kept["entity"])
    assert np.array_equal(rows, kept["entity"].numpy())


def test_parameters_bring_back_the_best_round() -> None:
    local = trainer()
    local.train(0)
    best, sums = local.parameters_state(), local.rank("valid", "both")
    assert set(best) == {"entity", "relation"}
    local.train(1)
    local.load_parameters(best)
    assert local.rank("valid", "both") == sums


@pytest.mark.parametrize("model", MODELS)
def test_rows_go_out_and_come_in(model: str) -> None:
    local = trainer(replace(SMALL, model=model))
    assert local.export_block("entity").shape == (12, entity_width(model, 8))
    rows = np.arange(2 * relation_width(model, 8), dtype=np.float32).reshape(2, -1)
    local.load_block("relation", rows)
    assert local.export_block("relation").dtype == np.float32
    assert np.array_equal(local.export_block("relation"), rows)
    with pytest.raises(ValueError, match="shape"):
        local.load_block("relation", rows[:1])


def test_a_table_that_is_not_finite_ends_the_round() -> None:
    local = trainer()
    local.load_block("relation", np.full_like(local.export_block("relation"), np.nan))
    with pytest.raises(TrainingDiverged, match=r"not finite in round 4; a smaller --lr may help"):
        local.train(4)


def test_a_huge_learning_rate_ends_the_round() -> None:
    local = trainer(replace(SMALL, model="DistMult", lr=1e30))
    with pytest.raises(TrainingDiverged, match="round 0"):
        local.train(0)


def one_step_by_autograd(
    local: KgeLearner, batch: torch.Tensor, draws: np.random.Generator
) -> dict[str, torch.Tensor]:
    """The same step the slow way, in double precision: dense gradients, torch's routes, an optimiser of its own."""
    config = local.config
    model = copy.deepcopy(local.model).double()
    negatives = NegativeSampler(local.graph, config.negatives, config.share_negatives, torch.device("cpu")).draw(
        batch, "tail", draws
    )
    h, r, t = batch.t()
    relation = model.relation_rows(r, model.relation[r])
    rows = -(-len(batch) // len(negatives.entities))
    candidates = negatives.entities.repeat_interleave(rows, 0)[: len(batch)]
    positive = model.score(model.entity[h], relation, model.entity[t])
    negative = model.score(model.entity[h][:, None], relation[:, None], model.entity[candidates])
    loss = self_adversarial_loss(positive, negative, negatives.false_negative, config.temperature)
    optimiser = torch.optim.Adam(model.parameters(), lr=config.lr)
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimiser.step()
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("share", [3, 16])
@pytest.mark.parametrize("kind", [TorchSteps, CompiledSteps])
def test_a_fused_step_is_the_step_of_autograd(model: str, share: int, kind: type[Steps]) -> None:
    local = trainer(replace(SMALL, model=model, share_negatives=share))
    batch = torch.from_numpy(local.graph.train[:13])
    expected = one_step_by_autograd(local, batch, np.random.default_rng(5))
    steps = kind(local.model, local._optimiser, local.config)
    steps.begin(1)
    steps.step(batch, "tail", local._negatives.draw(batch, "tail", np.random.default_rng(5)))
    steps.settle()
    for name, parameter in local.model.named_parameters():
        torch.testing.assert_close(parameter.detach().double(), expected[name], rtol=1e-3, atol=1e-5)
        assert parameter.grad is not None
        assert not parameter.grad.any()  # left clean for the next step


def test_the_learning_rate_falls_with_the_round() -> None:
    """At a rate of nearly nothing a round changes nearly nothing; the rate follows the round, not the past."""
    local = trainer(replace(SMALL, lr_decay=0.01))
    before = local.export_block("entity")
    local.train(6)
    assert np.abs(local.export_block("entity") - before).max() < 1e-9
    local.train(1)
    assert np.abs(local.export_block("entity") - before).max() > 1e-3
