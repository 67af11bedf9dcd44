"""Attention against loops over edges that follow the paper's formula, and its gradients against plain autograd."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from secure_kg.models.networks import attention
from secure_kg.models.networks.attention import SLOPE, Kept, attend, softmax_by_node, torch_weighted_sums, weighted_sums
from secure_kg.models.networks.edges import Edges, edges_of

NODES, KINDS, WIDTH = 12, 3, 5


def small_edges() -> Edges:
    random = np.random.default_rng(3)
    train = np.column_stack([random.integers(size, size=25) for size in (NODES - 1, KINDS, NODES - 1)])
    return edges_of(train, NODES, KINDS, 100, random)  # nothing leads to the last node


def rows(count: int, seed: int) -> Tensor:
    return torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(seed), requires_grad=True)


def textbook(edges: Edges, nodes: Tensor, kinds: Tensor, weight: Tensor, scorer: Tensor) -> Tensor:
    """For each edge c = W [h_i, h_j, g_k] on its own, then Σ softmax(LeakyReLU(w · c)) c."""
    out = []
    for i in range(len(nodes)):
        own = range(int(edges.starts[i]), int(edges.starts[i + 1]))
        if not own:
            out.append(torch.zeros(weight.shape[0]))
            continue
        triples = [torch.cat((nodes[i], nodes[edges.sources[e]], kinds[edges.kinds[e]])) for e in own]
        found = torch.stack([weight @ one for one in triples])
        weights = torch.softmax(leaky_relu(found @ scorer, SLOPE), 0)
        out.append((weights[:, None] * found).sum(0))
    return torch.stack(out)


def test_attention_and_its_gradient_are_those_of_the_formula() -> None:
    edges = small_edges()
    nodes, kinds, scorer = rows(NODES, 0), rows(len(edges.relations), 1), rows(1, 2)
    weight = torch.randn(WIDTH, 3 * WIDTH, generator=torch.Generator().manual_seed(4), requires_grad=True)
    own, other, along = (part.t() for part in weight.split(WIDTH, dim=1))
    found = attend(edges, (nodes @ own, nodes @ other, kinds @ along), scorer[0])
    expected = textbook(edges, nodes, kinds, weight, scorer[0])
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    assert not found[-1].any()  # a node without edges
    up = torch.randn(found.shape, generator=torch.Generator().manual_seed(5))
    sought = (nodes, kinds, weight, scorer)
    for one, two in zip(
        torch.autograd.grad((found * up).sum(), sought), torch.autograd.grad((expected * up).sum(), sought), strict=True
    ):
        torch.testing.assert_close(one, two, atol=1e-5, rtol=1e-4)


def test_weights_of_a_node_add_up_to_one_however_large_scores_are() -> None:
    edges = small_edges()
    scores = 500 * torch.randn(len(edges.nodes), generator=torch.Generator().manual_seed(0))
    weights = softmax_by_node(edges, scores)
    total = torch.zeros(NODES).index_add(0, edges.nodes, weights)
    assert torch.equal(total > 0, torch.diff(edges.starts) > 0)
    torch.testing.assert_close(total[total > 0], torch.ones(int((total > 0).sum())))
    for i in range(NODES):
        own = slice(int(edges.starts[i]), int(edges.starts[i + 1]))
        torch.testing.assert_close(weights[own], torch.softmax(scores[own], 0))


def test_the_compiled_sums_and_those_by_torch_agree() -> None:
    edges, other = small_edges(), rows(NODES, 1)
    weights = torch.rand(len(edges.nodes), generator=torch.Generator().manual_seed(0), requires_grad=True)
    up = torch.randn(NODES, WIDTH, generator=torch.Generator().manual_seed(2))
    results = []
    for sums in (weighted_sums, torch_weighted_sums):
        found = sums(edges, edges.sources, weights, other)
        results.append((found, *torch.autograd.grad((found * up).sum(), (weights, other))))
    for one, two in zip(*results, strict=True):
        torch.testing.assert_close(one, two, atol=1e-6, rtol=1e-5)


def test_the_compiled_sums_are_those_that_run_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: object) -> Tensor:
        raise AssertionError("the route by torch")

    monkeypatch.setattr(attention, "torch_weighted_sums", refused)
    edges = small_edges()
    weighted_sums(edges, edges.sources, torch.ones(len(edges.nodes)), rows(NODES, 0))
    with pytest.raises(AssertionError, match="by torch"):
        weighted_sums(edges, edges.sources, torch.ones(len(edges.nodes)).double(), rows(NODES, 0).double())


def test_attention_repeats_to_the_last_bit() -> None:
    edges, parts = small_edges(), (rows(NODES, 0), rows(NODES, 1), rows(20, 2))
    first, second = (attend(edges, parts, rows(1, 3)[0]) for _ in range(2))
    assert torch.equal(first, second)


def test_dropout_keeps_sums_on_average_and_follows_from_its_generator() -> None:
    ones = torch.ones(200_000)
    kept, again = (Kept(0.3, torch.Generator().manual_seed(7))(ones) for _ in range(2))
    assert torch.equal(kept, again)
    assert kept.unique().tolist() == pytest.approx([0.0, 1 / 0.7])
    assert abs(float(kept.mean()) - 1) < 6 * math.sqrt(0.3 / 0.7 / len(ones))
    assert Kept(0.0, torch.Generator())(ones) is ones
