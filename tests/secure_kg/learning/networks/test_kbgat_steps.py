"""Losses of KB-GAT against their formulas, single steps against a textbook optimiser, and what training is to do."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from secure_kg.learning.networks.corrupting import Corruption
from secure_kg.learning.networks.kbgat_steps import Stage, fit_decoder, margin_loss, soft_loss, train_encoder
from secure_kg.models.networks.base import Nodes
from secure_kg.models.networks.convkb import ConvKB
from secure_kg.models.networks.edges import edges_of
from secure_kg.models.networks.kbgat import Kbgat, distances
from secure_kg.models.networks.kbgat_config import KbgatConfig

ENTITIES, RELATIONS = 12, 3
SMALL = KbgatConfig(dim=6, filters=4, batch_size=40, local_epochs=1, decoder_epochs=1, decoder_batch_size=40)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def staged(**changes: Any) -> tuple[Stage, Kbgat]:
    config = dataclasses.replace(SMALL, **changes)
    random = np.random.default_rng(1)
    train = np.column_stack([random.integers(size, size=30) for size in (ENTITIES, RELATIONS, ENTITIES)])
    edges = edges_of(train, ENTITIES, RELATIONS, config.two_hop, random)
    network = Kbgat((ENTITIES, RELATIONS), config, generator(0), generator(1))
    return Stage(train, edges, Corruption(train, ENTITIES, RELATIONS), config, torch.device("cpu")), network


def rows() -> Nodes:
    return Nodes(*(torch.randn(n, 6, generator=generator(n), requires_grad=True) for n in (ENTITIES, RELATIONS)))


def test_the_margin_loss_is_that_of_the_paper() -> None:
    nodes, true = rows(), torch.tensor([[0, 0, 1], [2, 1, 3]])
    false = torch.tensor([[0, 0, 5], [2, 1, 6], [7, 0, 1], [8, 1, 3]])
    expected = []
    for i, one in enumerate(false):
        (good,), (bad,) = distances(nodes, true[i % 2][None]), distances(nodes, one[None])
        expected.append(torch.clamp(good - bad + 2.0, min=0))
    torch.testing.assert_close(margin_loss(nodes, true, false, 2.0), torch.stack(expected).mean())


def test_the_soft_loss_is_that_of_the_paper() -> None:
    nodes, decoder = rows(), ConvKB(6, 4, generator(0))
    true, tails, heads = torch.tensor([[0, 0, 1], [2, 1, 3]]), torch.tensor([[4, 5], [6, 7]]), torch.tensor([[8], [9]])
    expected = []
    for i, (h, r, t) in enumerate(true.tolist()):
        triples = [
            (h, r, t, 1),
            *((h, r, e, -1) for e in tails[i].tolist()),
            *((e, r, t, -1) for e in heads[i].tolist()),
        ]
        for *triple, y in triples:
            expected.append(torch.log(1 + torch.exp(-y * decoder.of_triples(nodes, torch.tensor([triple]))[0])))
    torch.testing.assert_close(soft_loss(decoder, nodes, true, tails, heads), torch.stack(expected).mean())


def test_a_step_of_the_encoder_is_adams_on_the_gradient_of_the_loss() -> None:
    stage, network = staged(attention_dropout=0.0, weight_decay=0.1)
    _, other = staged()
    draws = np.random.default_rng(3)
    train_encoder(stage, network, 0.01, np.random.default_rng(3), generator(0))
    order = draws.permutation(30)
    positive = stage.train[order]
    tails, heads = (stage.corruption.draw(positive, side, 1, draws) for side in ("tail", "head"))
    false = np.concatenate((positive, positive))
    false[:30, 2:], false[30:, :1] = tails, heads
    with torch.no_grad():
        other.entity.div_(other.entity.norm(dim=1, keepdim=True))
    trained = [other.entity, other.relation, *other.encoder.parameters()]
    optimiser = torch.optim.Adam(trained, 0.01, weight_decay=0.1)
    nodes = other.encoder(stage.edges, other.entity, other.relation)
    margin_loss(nodes, torch.from_numpy(positive), torch.from_numpy(false), stage.config.margin).backward()
    optimiser.step()
    with torch.no_grad():  # as it is left behind for the next step
        other.entity.div_(other.entity.norm(dim=1, keepdim=True))
    for mine, theirs in zip(network.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-4)


def test_a_step_of_the_decoder_is_adams_and_moves_rows_too() -> None:
    stage, _ = staged(decoder_weight_decay=0.1, decoder_negatives=4)
    nodes, other = rows(), ConvKB(6, 4, generator(0))
    decoder = ConvKB(6, 4, generator(0))
    _, fitted = fit_decoder(stage, decoder, nodes, np.random.default_rng(3))
    draws = np.random.default_rng(3)
    positive = stage.train[draws.permutation(30)]
    drawn = [torch.from_numpy(stage.corruption.draw(positive, side, 2, draws)) for side in ("tail", "head")]
    optimiser = torch.optim.Adam([nodes.entity, nodes.relation, *other.parameters()], stage.config.lr, weight_decay=0.1)
    soft_loss(other, nodes, torch.from_numpy(positive), *drawn).backward()
    optimiser.step()
    pairs: list[tuple[Tensor, Tensor]] = [(fitted.entity, nodes.entity), (fitted.relation, nodes.relation)]
    for mine, theirs in [*pairs, *zip(decoder.parameters(), other.parameters(), strict=True)]:
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-4)


def test_training_lowers_both_losses() -> None:
    stage, network = staged(local_epochs=60, decoder_epochs=60, lr=0.01, decoder_halving=60)
    fit, nodes = train_encoder(stage, network, 0.01, np.random.default_rng(0), generator(0))
    assert len(fit.losses) == 60
    assert (fit.triples, fit.steps) == (1800, 60)
    assert fit.losses[-1] < 0.9 * fit.losses[0]
    fit, _ = fit_decoder(stage, network.decoder, nodes, np.random.default_rng(0))
    assert fit.losses[-1] < 0.8 * fit.losses[0]


def test_the_decoders_rate_is_halved() -> None:
    def moved(epochs: int) -> float:
        stage, network = staged(decoder_epochs=epochs, decoder_halving=1)
        before = network.decoder.offset.item()
        fit_decoder(stage, network.decoder, rows(), np.random.default_rng(0))
        return network.decoder.offset.item() - before

    # Adam's first steps are as long as its rate: 1, 1/2, 1/4 ... of it add up to less than twice the first.
    first, all_of_them = moved(1), moved(12)
    assert abs(all_of_them) < 2.01 * abs(first)
    assert abs(all_of_them) > 1.5 * abs(first)


@pytest.mark.parametrize("final_rows", ["whole", "last-batch"])
def test_rows_that_come_out(final_rows: str) -> None:
    stage, network = staged(final_rows=final_rows, batch_size=8)
    _, nodes = train_encoder(stage, network, 0.01, np.random.default_rng(0), generator(0))
    assert not nodes.entity.requires_grad
    torch.testing.assert_close(nodes.entity.norm(dim=1), torch.ones(ENTITIES))
    whole = network.encoder(stage.edges, network.entity, network.relation)
    assert torch.equal(nodes.entity, whole.entity) == (final_rows == "whole")
    assert torch.equal(nodes.relation, whole.relation) == (final_rows == "whole")  # a step lies in between
