"""The self-adversarial loss of RotatE (Sun et al., ICLR 2019, equation 5), as in FedR's appendix B.2.

L = −log σ(f(h, r, t)) − Σ_i p_i log σ(−f(h, r, t'_i)),   p = softmax_i(α f(h, r, t'_i)) held constant,

where f contains the margin and is higher for likelier triples, so that likelier negatives weigh more. (FedR's appendix
writes f for a distance in the loss and for its negative in the table of scoring functions; this reading is that of its
code, which also halves L. Adam does not notice the factor.)
"""

from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid


def self_adversarial_loss(positive: Tensor, negative: Tensor, false_negative: Tensor, temperature: float) -> Tensor:
    """Mean loss of a batch, for autograd: the formula that `loss_and_gradients` is held to.

    positive [b] and negative [b, m] are scores; false_negative [b, m] marks candidates that are true triples and must
    not be pushed away. A row whose candidates are all marked contributes its positive term only.
    """
    with torch.no_grad():
        weights = _weights(negative, false_negative, temperature)
    return -logsigmoid(positive).mean() - (weights * logsigmoid(-negative)).sum(1).mean()


@torch.no_grad()
def loss_and_gradients(
    positive: Tensor, negative: Tensor, false_negative: Tensor, temperature: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The same loss with its gradients by positive [b] and negative [b, m]: σ(f) − 1 and p σ(f), over b.

    A quarter of the passes over [b, m] that autograd makes.
    """
    count = len(positive)
    weights = _weights(negative, false_negative, temperature)
    loss = -(logsigmoid(positive).sum() + torch.vdot(weights.view(-1), logsigmoid(-negative).view(-1))) / count
    return loss, (torch.sigmoid(positive) - 1).div_(count), weights.mul_(torch.sigmoid(negative)).div_(count)


class _Chained(torch.autograd.Function):
    """A scalar with gradients that are known before autograd asks for them."""

    @staticmethod
    def forward(ctx: Any, positive: Tensor, negative: Tensor, by_positive: Tensor, by_negative: Tensor) -> Tensor:
        ctx.known = by_positive, by_negative
        return positive.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        by_positive, by_negative = ctx.known
        return by_positive, by_negative, None, None


def chained(positive: Tensor, negative: Tensor, by_positive: Tensor, by_negative: Tensor) -> Tensor:
    """A scalar to take gradients of, whose gradients by both scores are given; its value means nothing.

    The same as giving them to `torch.autograd.grad` as gradients of its outputs, which would import sympy: a third of
    a second in every client's process.
    """
    known = by_positive, by_negative
    return cast(Tensor, _Chained.apply(positive, negative, *known))  # type: ignore[no-untyped-call]


class _Given(torch.autograd.Function):
    """The same for any tensor."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, gradient: Tensor) -> Tensor:
        ctx.known = gradient
        return value.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.known, None


def given(value: Tensor, gradient: Tensor) -> Tensor:
    """A scalar to take gradients of, whose gradient by `value` is given."""
    return cast(Tensor, _Given.apply(value, gradient))  # type: ignore[no-untyped-call]


def _weights(negative: Tensor, false_negative: Tensor, temperature: float) -> Tensor:
    logits = (temperature * negative).masked_fill_(false_negative, torch.finfo(negative.dtype).min)
    return torch.softmax(logits, dim=1).masked_fill_(false_negative, 0.0)
