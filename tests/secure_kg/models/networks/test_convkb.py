"""ConvKB against a convolution, its gradients against plain autograd, and the compiled route against that by torch."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv2d

from secure_kg.data.graph import Side
from secure_kg.models.networks import convkb
from secure_kg.models.networks.base import Nodes, NodeScorer
from secure_kg.models.networks.convkb import ConvKB, torch_scores

ENTITIES, RELATIONS, WIDTH, FILTERS = 9, 3, 7, 4
TRIPLES = torch.tensor([[0, 0, 1], [2, 1, 2], [8, 2, 0], [3, 0, 3]])


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def made() -> tuple[ConvKB, Nodes]:
    entity, relation = (
        torch.randn(n, WIDTH, generator=generator(n), requires_grad=True) for n in (ENTITIES, RELATIONS)
    )
    return ConvKB(WIDTH, FILTERS, generator(0)), Nodes(entity, relation)


def convolved(decoder: ConvKB, nodes: Nodes, triples: Tensor) -> Tensor:
    """As the paper writes it: filters of 1 × 3 over the matrix (h, r, t), a rectifier, and one product."""
    h, r, t = nodes.entity[triples[:, 0]], nodes.relation[triples[:, 1]], nodes.entity[triples[:, 2]]
    image = torch.stack((h, r, t), dim=2)[:, None]  # [b, 1, width, 3]
    found = conv2d(image, decoder.filters[:, None, None], decoder.bias).relu()  # [b, filters, width, 1]
    return found.flatten(1) @ decoder.output.flatten() + decoder.offset


def all_of(side: Side) -> Tensor:
    """Every entity as that side of every triple."""
    each = TRIPLES.repeat_interleave(ENTITIES, 0)
    each[:, 2 if side == "tail" else 0] = torch.arange(ENTITIES).repeat(len(TRIPLES))
    return each


@pytest.mark.parametrize("side", ["tail", "head"])
def test_scores_and_gradients_are_those_of_the_convolution(side: Side) -> None:
    decoder, nodes = made()
    found = decoder.scores(nodes, TRIPLES, side)
    expected = convolved(decoder, nodes, all_of(side)).view(len(TRIPLES), ENTITIES)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    up = torch.randn(found.shape, generator=generator(5))
    sought = (nodes.entity, nodes.relation, *decoder.parameters())
    for one, two in zip(
        torch.autograd.grad((found * up).sum(), sought), torch.autograd.grad((expected * up).sum(), sought), strict=True
    ):
        torch.testing.assert_close(one, two, atol=1e-4, rtol=1e-4)


def test_a_triple_has_one_score() -> None:
    decoder, nodes = made()
    torch.testing.assert_close(decoder.of_triples(nodes, TRIPLES), convolved(decoder, nodes, TRIPLES))


@pytest.mark.parametrize("numbers", [2**24, 2 * FILTERS * WIDTH])
def test_the_route_by_torch_agrees_and_goes_in_blocks(numbers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convkb, "_NUMBERS", numbers)
    random = generator(3)
    fixed, candidates = torch.randn(2, 3, FILTERS, WIDTH, generator=random), torch.randn(2, 5, WIDTH, generator=random)
    mix, output = torch.randn(FILTERS, generator=random), torch.randn(FILTERS, WIDTH, generator=random)
    expected = convkb.scores_of(fixed, mix, candidates, output)
    torch.testing.assert_close(torch_scores(fixed, mix, candidates, output), expected, atol=1e-5, rtol=1e-5)
    double = [part.double() for part in (fixed, mix, candidates, output)]
    torch.testing.assert_close(convkb.scores_of(*double).float(), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("side", ["tail", "head"])
def test_equal_rows_are_exact_ties(side: Side) -> None:
    decoder, nodes = made()
    with torch.no_grad():
        nodes.entity[5] = nodes.entity[1]
    scores = NodeScorer(nodes, decoder).scores(TRIPLES, side)
    assert torch.equal(scores[:, 5], scores[:, 1])
    assert not torch.equal(scores[:, 5], scores[:, 2])


def test_filters_follow_from_the_generator() -> None:
    first, second = (ConvKB(WIDTH, FILTERS, generator(1)) for _ in range(2))
    for one, two in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, two)
    assert not torch.equal(first.filters, ConvKB(WIDTH, FILTERS, generator(2)).filters)
