"""Attention over the edges of each node (Nathani et al., ACL 2019, section 3.2).

For an edge of node i, from j and of kind k, with W = (A | B | C):

    c = A h_i + B h_j + C g_k,   b = LeakyReLU(w · c),   α = softmax of b over the edges of i,   h'_i = Σ α c

W is applied to nodes and kinds, of which there are few, and never to edges: w · c is the sum of three numbers, and
Σ α c is A h_i times Σ α, plus weighted sums of rows. A node without edges gets zeros.

Memory of one head: one number for an edge, a few times over with the gradient; [nodes, width] and [kinds, width] for
rows. On a device other than the CPU the weighted sums take [edges, width] at a time.
"""

from typing import Any, Final

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu

from secure_kg.kernels.edge_sums import edge_sums, edge_sums_gradient
from secure_kg.models.geometry import on_cpu
from secure_kg.models.networks.edges import Edges

SLOPE: Final = 0.2
"""Of the leaky rectifier where it is negative."""


class Kept:
    """Dropout: what is kept is scaled up so that sums stay as large on average. Draws come from the generator alone."""

    def __init__(self, dropped: float, generator: torch.Generator) -> None:
        """`generator`: on the CPU, so that every device draws alike."""
        self._dropped, self._generator = dropped, generator

    def __call__(self, values: Tensor) -> Tensor:
        if not self._dropped:
            return values
        drawn = torch.empty(values.shape).bernoulli_(1 - self._dropped, generator=self._generator)
        return values * drawn.to(values.device) / (1 - self._dropped)


def attend(edges: Edges, parts: tuple[Tensor, Tensor, Tensor], scorer: Tensor, kept: Kept | None = None) -> Tensor:
    """Σ α c [nodes, width]. `parts`: A h and B h [nodes, width], C g [kinds, width]; `scorer`: w [width]."""
    own, other, along = parts
    scores = leaky_relu(
        (own @ scorer).index_select(0, edges.nodes)
        + (other @ scorer).index_select(0, edges.sources)
        + (along @ scorer).index_select(0, edges.kinds),
        SLOPE,
    )
    weights = softmax_by_node(edges, scores)
    if kept is not None:
        weights = kept(weights)
    whole = own.new_zeros(len(own)).index_add(0, edges.nodes, weights)
    return (
        own * whole[:, None]
        + weighted_sums(edges, edges.sources, weights, other)
        + weighted_sums(edges, edges.kinds, weights, along)
    )


def softmax_by_node(edges: Edges, scores: Tensor) -> Tensor:
    """Scores [edges] to weights [edges] that add up to one at every node with edges."""
    nodes = len(edges.starts) - 1
    with torch.no_grad():  # softmax is the same whatever is taken off
        largest = scores.new_full((nodes,), -torch.inf).scatter_reduce(0, edges.nodes, scores, "amax")
    exponents = (scores - largest.index_select(0, edges.nodes)).exp()
    total = scores.new_zeros(nodes).index_add(0, edges.nodes, exponents)
    return exponents / total.index_select(0, edges.nodes)


def weighted_sums(edges: Edges, sources: Tensor, weights: Tensor, rows: Tensor) -> Tensor:
    """[nodes, width]: at every node the sum of rows[sources] [edges, width] times weights [edges] over its edges."""
    if on_cpu(weights, rows):
        compiled: Any = _WeightedSums
        result: Tensor = compiled.apply(edges.starts, sources, weights, rows)
        return result
    return torch_weighted_sums(edges, sources, weights, rows)


def torch_weighted_sums(edges: Edges, sources: Tensor, weights: Tensor, rows: Tensor) -> Tensor:
    """The same on any device and in any precision."""
    terms = weights[:, None] * rows.index_select(0, sources)
    return rows.new_zeros(len(edges.starts) - 1, rows.shape[1]).index_add(0, edges.nodes, terms)


class _WeightedSums(torch.autograd.Function):
    """The compiled sums and their compiled gradient."""

    @staticmethod
    def forward(ctx: Any, starts: Tensor, sources: Tensor, weights: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(starts, sources, weights, rows)
        out = rows.new_zeros(len(starts) - 1, rows.shape[1])
        edge_sums(_array(starts), _array(sources), _array(weights), _array(rows), out.numpy())
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, Tensor, Tensor]:
        starts, sources, weights, rows = ctx.saved_tensors
        weights_grad, rows_grad = torch.zeros_like(weights), torch.zeros(rows.shape)
        graph, grads = (_array(starts), _array(sources)), (weights_grad.numpy(), rows_grad.numpy())
        edge_sums_gradient(*graph, _array(weights), _array(rows), _array(gradients[0]), grads)
        return None, None, weights_grad, rows_grad


def _array(values: Tensor) -> Any:
    return values.detach().contiguous().numpy()
