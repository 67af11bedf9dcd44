"""The encoder of KB-GAT against its formula, node by node, and one step of training against plain autograd."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import elu, leaky_relu

from secure_kg.models.networks.attention import Kept
from secure_kg.models.networks.base import Nodes
from secure_kg.models.networks.edges import Edges, edges_of
from secure_kg.models.networks.kbgat import Kbgat, KbgatEncoder, distances, make_decoder
from secure_kg.models.networks.kbgat_config import KbgatConfig

ENTITIES, RELATIONS, DIM = 10, 3, 6


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small_graph() -> tuple[np.ndarray, Edges]:
    random = np.random.default_rng(2)
    train = np.column_stack([random.integers(size, size=16) for size in (ENTITIES, RELATIONS, ENTITIES)])
    return train, edges_of(train, ENTITIES, RELATIONS, 100, random)


def table(count: int, seed: int) -> Tensor:
    return torch.randn(count, DIM, generator=generator(seed), requires_grad=True)


def layer(edges: Edges, nodes: Tensor, relation: Tensor, parts: tuple[Tensor, Tensor, Tensor, Tensor]) -> Tensor:
    """One head by the paper's formula: every edge by itself, a way of two edges with the sum of its relations."""
    own, other, along, scorer = parts
    out = []
    for i in range(len(nodes)):
        found = []
        for e in range(int(edges.starts[i]), int(edges.starts[i + 1])):
            walked = [r for r in edges.relations[edges.kinds[e]].tolist() if r < RELATIONS]
            vector = torch.stack([relation[r] for r in walked]).sum(0)
            found.append(nodes[i] @ own + nodes[edges.sources[e]] @ other + vector @ along)
        if not found:
            out.append(torch.zeros(own.shape[1]))
            continue
        weights = torch.softmax(leaky_relu(torch.stack([one @ scorer for one in found]), 0.2), 0)
        out.append(sum(weight * one for weight, one in zip(weights, found, strict=True)))
    return torch.stack(out)


def parts_of(head: torch.nn.Module) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    own, other, along, scorer = (getattr(head, name) for name in ("own", "other", "along", "scorer"))
    return own, other, along, scorer


@pytest.mark.parametrize("heads", [1, 2])
def test_rows_that_come_out_are_those_of_the_formula(heads: int) -> None:
    _, edges = small_graph()
    entity, relation, encoder = table(ENTITIES, 0), table(RELATIONS, 1), KbgatEncoder(DIM, heads, generator(2))
    nodes = encoder(edges, entity, relation)
    hidden = torch.cat([elu(layer(edges, entity, relation, parts_of(head))) for head in encoder.first], dim=1)
    mapped = relation @ encoder.relations
    last = torch.stack([layer(edges, hidden, mapped, parts_of(head)) for head in encoder.second]).mean(0)
    expected = entity @ encoder.entities + elu(last)
    expected = expected / expected.norm(dim=1, keepdim=True)
    torch.testing.assert_close(nodes.entity, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(nodes.relation, mapped)
    up = torch.randn(expected.shape, generator=generator(3))
    sought = (entity, relation, *encoder.parameters())
    graded = (torch.autograd.grad((rows * up).sum(), sought) for rows in (nodes.entity, expected))
    for one, two in zip(*graded, strict=True):
        torch.testing.assert_close(one, two, atol=1e-5, rtol=1e-3)


def test_attention_counts_where_it_is_asked_for() -> None:
    _, edges = small_graph()
    entity, relation, encoder = table(ENTITIES, 0), table(RELATIONS, 1), KbgatEncoder(DIM, 1, generator(2))
    mask = torch.zeros(ENTITIES)
    mask[3] = 1
    whole, masked = encoder(edges, entity, relation), encoder(edges, entity, relation, attended=mask)
    bare = torch.nn.functional.normalize(entity @ encoder.entities)
    assert torch.equal(masked.entity[3], whole.entity[3])
    torch.testing.assert_close(masked.entity[mask == 0], bare[mask == 0])
    assert not torch.allclose(whole.entity, bare)


def test_dropout_is_for_training_only() -> None:
    _, edges = small_graph()
    entity, relation, encoder = table(ENTITIES, 0), table(RELATIONS, 1), KbgatEncoder(DIM, 1, generator(2))
    first, second = (encoder(edges, entity, relation, Kept(0.5, generator(seed))).entity for seed in (0, 0))
    assert torch.equal(first, second)
    assert not torch.equal(first, encoder(edges, entity, relation).entity)


def test_distances_are_of_translations() -> None:
    nodes, triples = Nodes(table(ENTITIES, 0), table(RELATIONS, 1)), torch.tensor([[0, 1, 2], [4, 2, 4]])
    expected = [(nodes.entity[h] + nodes.relation[r] - nodes.entity[t]).abs().sum() for h, r, t in triples.tolist()]
    torch.testing.assert_close(distances(nodes, triples), torch.stack(expected))


def test_networks_are_alike_where_their_generator_is_and_rows_are_not() -> None:
    config = KbgatConfig(dim=4, filters=3)
    one, other = (Kbgat((ENTITIES, RELATIONS), config, generator(seed), generator(9)) for seed in (0, 1))
    for name in ("encoder", "decoder"):
        for mine, theirs in zip(getattr(one, name).parameters(), getattr(other, name).parameters(), strict=True):
            assert torch.equal(mine, theirs)
    assert not torch.equal(one.entity, other.entity)
    assert one.nodes().entity.shape == (ENTITIES, 4)


def test_a_decoder_of_the_settings_size() -> None:
    decoder = make_decoder(KbgatConfig(dim=4, filters=3))
    assert decoder.filters.shape == (3, 3)
    assert decoder.output.shape == (3, 4)
