"""ConvKB (Nguyen et al., NAACL 2018): filters over the three rows of a triple.

    f(h, r, t) = Σ_mk output_mk · max(0, filters_m0 h_k + filters_m1 r_k + filters_m2 t_k + bias_m) + offset

A filter is 1 × 3: it sees one coordinate of head, relation and tail at a time. With one place of the triple left open,
what the other two add up to is computed once for all candidates.

Memory of scores: [b, filters, width] for b triples, and [n, width] for n candidates; no candidate has filters of its
own. On a device other than the CPU, candidates go in blocks of [b, block, filters, width].
"""

import math
from typing import Any, Final

import torch
from torch import Tensor, nn

from secure_kg.data.graph import Side
from secure_kg.kernels.conv_scores import conv_gradient, conv_scores
from secure_kg.models.geometry import on_cpu
from secure_kg.models.networks.base import Decoder, Nodes

_PLACES: Final = {"tail": (0, 1, 2), "head": (1, 2, 0)}
"""Which filter columns meet the two rows that are given, and the one that is open."""
_GAIN: Final = 1.414
_NUMBERS: Final = 2**24
"""In one intermediate of the route by torch."""


class ConvKB(Decoder):
    """Filters, and the weights of what they give."""

    described = "sum of output[m, k] * max(0, filters[m] . (h[k], r[k], t[k]) + bias[m]), and offset"

    def __init__(self, width: int, filters: int, generator: torch.Generator) -> None:
        """`generator`: on the CPU, so that the same seed gives the same filters on every device."""
        super().__init__()

        def drawn(bound: float, *shape: int) -> nn.Parameter:
            return nn.Parameter(torch.empty(*shape).uniform_(-bound, bound, generator=generator))

        self.filters = drawn(_GAIN * math.sqrt(6 / (3 + 3 * filters)), filters, 3)
        self.bias = drawn(1 / math.sqrt(3), filters)
        self.output = drawn(_GAIN * math.sqrt(6 / (filters * width + 1)), filters, width)
        self.offset = drawn(1 / math.sqrt(filters * width), 1)

    def against(self, given: tuple[Tensor, Tensor], candidates: Tensor, side: Side) -> Tensor:
        """Scores [groups, b, n] of candidates [groups, n, width] for the open side.

        `given` [groups, b, width]: heads and relations, if the tail is open; relations and tails, if the head is.
        """
        first, second, open_place = _PLACES[side]
        columns = self.filters.t()
        fixed = (
            given[0][..., None, :] * columns[first, :, None]
            + given[1][..., None, :] * columns[second, :, None]
            + self.bias[:, None]
        )
        return scores_of(fixed, columns[open_place], candidates, self.output) + self.offset

    def scores(self, nodes: Nodes, triples: Tensor, side: Side) -> Tensor:
        head, relation, tail = triples.t()
        along = nodes.relation[relation][None]
        known = nodes.entity[head if side == "tail" else tail][None]
        given = (known, along) if side == "tail" else (along, known)
        return self.against(given, nodes.entity[None], side)[0]

    def of_triples(self, nodes: Nodes, triples: Tensor) -> Tensor:
        head, relation, tail = triples.t()
        given = nodes.entity[head][:, None], nodes.relation[relation][:, None]
        return self.against(given, nodes.entity[tail][:, None], "tail")[:, 0, 0]


def scores_of(fixed: Tensor, mix: Tensor, candidates: Tensor, output: Tensor) -> Tensor:
    """Σ_mk output_mk · max(0, fixed + mix_m · candidate_k) [groups, b, n], of fixed [groups, b, filters, width]."""
    if on_cpu(fixed, candidates):
        compiled: Any = _Scores
        result: Tensor = compiled.apply(fixed, mix, candidates, output)
        return result
    return torch_scores(fixed, mix, candidates, output)


def torch_scores(fixed: Tensor, mix: Tensor, candidates: Tensor, output: Tensor) -> Tensor:
    """The same on any device and in any precision."""
    numbers = fixed.numel()  # of one candidate for each
    blocks = []
    for block in torch.split(candidates, max(1, _NUMBERS // max(1, numbers)), dim=1):
        met = (fixed[:, :, None] + mix[:, None] * block[:, None, :, None]).relu()
        blocks.append((met * output).sum((-2, -1)))
    return torch.cat(blocks, dim=2)


class _Scores(torch.autograd.Function):
    """The compiled scores and their compiled gradient."""

    @staticmethod
    def forward(ctx: Any, fixed: Tensor, mix: Tensor, candidates: Tensor, output: Tensor) -> Tensor:
        ctx.save_for_backward(fixed, mix, candidates, output)
        out = fixed.new_empty(*fixed.shape[:2], candidates.shape[1])
        conv_scores(_array(fixed), _array(mix), _array(candidates), _array(output), out.numpy())
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        fixed, mix, candidates, output = ctx.saved_tensors
        active, met, candidates_grad = (torch.zeros(one.shape) for one in (fixed, output, candidates))
        sums = active.numpy(), met.numpy(), candidates_grad.numpy()
        conv_gradient(_array(fixed), _array(mix), _array(candidates), _array(output), _array(gradients[0]), sums)
        # Where it is on, a value under the maximum is fixed + mix · candidate.
        output_grad = (active * fixed).sum((0, 1)) + mix[:, None] * met
        return active * output, (met * output).sum(1), candidates_grad, output_grad


def _array(values: Tensor) -> Any:
    return values.detach().contiguous().numpy()
