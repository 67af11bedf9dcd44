"""NoGE's encoder and decoder against their formulas in numpy, and what evaluation leaves alone."""

import math

import numpy as np
import pytest
import torch

from secure_kg.models.networks.base import Nodes, NodeScorer
from secure_kg.models.networks.cooccurrence import cooccurrence
from secure_kg.models.networks.noge import Noge, dropped, make_decoder
from secure_kg.models.networks.noge_config import NogeConfig
from secure_kg.models.networks.quaternions import product

ENTITIES, RELATIONS, DIM = 20, 3, 8
CONFIG = NogeConfig(dim=DIM, dropout=0.0)


def network(config: NogeConfig = CONFIG) -> Noge:
    draws = np.random.default_rng(5)
    train = np.column_stack([draws.integers(0, most, 40) for most in (ENTITIES, RELATIONS, ENTITIES)])
    return Noge(cooccurrence(train, ENTITIES, RELATIONS), ENTITIES, config, torch.Generator().manual_seed(1))


def test_training_normalises_by_the_statistics_of_all_nodes_and_remembers_them() -> None:
    one = network()
    with torch.no_grad():
        for parameter in (one.scale, one.shift):
            parameter.uniform_(0.5, 1.5)
    rows = torch.cat((one.entity, one.relation)).detach().double().numpy()
    mixed = one._matrix.dense().double().numpy() @ rows @ one.weight.detach().double().numpy()
    mean, variance = mixed.mean(0), mixed.var(0)
    normal = (mixed - mean) / np.sqrt(variance + 1e-5)
    encoded = np.tanh(normal * one.scale.detach().numpy() + one.shift.detach().numpy())

    heads, relations = torch.tensor([0, 4, 4]), torch.tensor([2, 0, 1])
    found, tails = one.compared(heads, relations, torch.Generator())
    turns = encoded[ENTITIES + relations.numpy()].reshape(3, 4, -1)
    turns = (turns / np.sqrt(np.square(turns).sum(1, keepdims=True))).reshape(3, -1)
    points = product(torch.from_numpy(encoded[heads.numpy()]), torch.from_numpy(turns)).numpy()
    np.testing.assert_allclose(
        (found @ tails.t()).detach().numpy(), points @ encoded[:ENTITIES].T, rtol=1e-3, atol=1e-4
    )

    size = ENTITIES + RELATIONS
    np.testing.assert_allclose(one.running_mean.numpy(), 0.1 * mean, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(one.running_var.numpy(), 0.9 + 0.1 * variance * size / (size - 1), rtol=1e-4)


def test_evaluation_changes_nothing_and_takes_the_remembered_statistics() -> None:
    one = network()
    one.compared(torch.tensor([1]), torch.tensor([1]), torch.Generator())
    before = {name: value.clone() for name, value in one.state_dict().items()}
    first, second = one.nodes(), one.nodes()
    assert all(torch.equal(before[name], value) for name, value in one.state_dict().items())
    assert torch.equal(first.entity, second.entity)
    assert torch.equal(first.relation, second.relation)
    with torch.no_grad():
        one.running_mean += 1
    assert not torch.equal(one.nodes().entity, first.entity)


def test_both_sides_and_single_triples_have_one_score() -> None:
    one = network()
    nodes = one.nodes()
    triples = torch.tensor([[0, 0, 1], [4, 2, 9], [7, 1, 7]])
    scorer, single = NodeScorer(nodes, one.decoder), one.decoder.of_triples(nodes, triples)
    for side, column in (("tail", 2), ("head", 0)):
        scores = scorer.scores(triples, side)  # type: ignore[arg-type]
        assert scores.shape == (3, ENTITIES)
        torch.testing.assert_close(scores.gather(1, triples[:, column : column + 1])[:, 0], single)


def test_entities_with_equal_rows_tie_exactly() -> None:
    """However few queries there are: a ranking shares ties, and must see them."""
    rows = torch.randn(50, 128)
    nodes = Nodes(torch.cat((rows, rows)), torch.randn(3, 128))
    scores = NodeScorer(nodes, make_decoder(CONFIG)).scores(torch.tensor([[3, 1, 0]]), "tail")
    assert torch.equal(scores[:, :50], scores[:, 50:])


def test_first_values_follow_from_the_seed_and_lie_in_their_ranges() -> None:
    one, again = network(), network()
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), again.parameters(), strict=True))
    for table, bound in ((one.entity, CONFIG.span), (one.relation, CONFIG.span), (one.weight, 1 / math.sqrt(DIM))):
        assert 0 < float(table.detach().abs().max()) <= bound


def test_what_is_dropped_is_made_up_for() -> None:
    points = torch.ones(200, 500)
    found = dropped(points, 0.25, torch.Generator().manual_seed(2))
    assert {round(value, 6) for value in found.unique().tolist()} == {0.0, round(1 / 0.75, 6)}
    assert float((found == 0).float().mean()) == pytest.approx(0.25, abs=0.01)
    assert torch.equal(dropped(points, 0.0, torch.Generator()), points)
