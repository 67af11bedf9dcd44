"""The self-adversarial loss against a loop over its formula."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from secure_kg.learning.loss import chained, loss_and_gradients, self_adversarial_loss


def log_sigmoid(x: float) -> float:
    return -math.log1p(math.exp(-x))


def slow_loss(positive: Tensor, negative: Tensor, false_negative: Tensor, temperature: float) -> float:
    total = 0.0
    for own, others, masked in zip(positive.tolist(), negative.tolist(), false_negative.tolist(), strict=True):
        kept = [score for score, out in zip(others, masked, strict=True) if not out]
        norm = sum(math.exp(temperature * score) for score in kept)
        total -= log_sigmoid(own)
        total -= sum(math.exp(temperature * score) / norm * log_sigmoid(-score) for score in kept)
    return total / len(positive)


@given(st.integers(1, 5), st.integers(1, 6), st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_equals_the_formula(batch: int, candidates: int, temperature: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    positive = 3 * torch.randn(batch, dtype=torch.float64, generator=generator)
    negative = 3 * torch.randn(batch, candidates, dtype=torch.float64, generator=generator)
    mask = torch.rand(batch, candidates, generator=generator) < 0.3
    fast = self_adversarial_loss(positive, negative, mask, temperature)
    assert float(fast) == pytest.approx(slow_loss(positive, negative, mask, temperature))


def test_weights_are_constants_and_masked_candidates_get_no_gradient() -> None:
    positive = torch.tensor([0.3, -0.2], requires_grad=True)
    negative = torch.tensor([[1.0, 2.0, -1.0], [0.5, 0.1, 0.2]], requires_grad=True)
    mask = torch.tensor([[False, True, False], [True, True, True]])
    self_adversarial_loss(positive, negative, mask, 1.0).backward()  # type: ignore[no-untyped-call]
    values = negative.detach()
    weight = torch.softmax(values[0, [0, 2]], dim=0)
    expected = torch.zeros(2, 3)
    expected[0, [0, 2]] = weight * torch.sigmoid(values[0, [0, 2]]) / 2
    assert negative.grad is not None
    torch.testing.assert_close(negative.grad, expected)


def test_large_scores_stay_finite() -> None:
    scores = torch.tensor([[1e4, -1e4]])
    loss = self_adversarial_loss(torch.tensor([-1e4]), scores, torch.tensor([[False, True]]), 2.0)
    assert float(loss) == pytest.approx(2e4)


@given(st.integers(1, 5), st.integers(1, 6), st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_gradients_by_hand_are_those_of_autograd(batch: int, candidates: int, temperature: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    positive = (3 * torch.randn(batch, dtype=torch.float64, generator=generator)).requires_grad_()
    negative = (3 * torch.randn(batch, candidates, dtype=torch.float64, generator=generator)).requires_grad_()
    mask = torch.rand(batch, candidates, generator=generator) < 0.3
    loss = self_adversarial_loss(positive, negative, mask, temperature)
    expected = torch.autograd.grad(loss, (positive, negative))
    found, *gradients = loss_and_gradients(positive, negative, mask, temperature)
    torch.testing.assert_close(found, loss.detach())
    torch.testing.assert_close(tuple(gradients), expected)
    twice = chained(2 * positive, 2 * negative, *gradients)
    for one, same in zip(torch.autograd.grad(twice, (positive, negative)), gradients, strict=True):
        assert torch.equal(one, 2 * same)


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_pykeen_has_the_same_loss_but_for_a_factor(temperature: float) -> None:
    """PyKEEN halves it and takes the margin apart from the scores; with margin 0 it takes scores as ours do."""
    from pykeen.losses import NSSALoss

    generator = torch.Generator().manual_seed(0)
    positive, negative = torch.randn(7, 1, generator=generator), torch.randn(7, 5, generator=generator)
    theirs = NSSALoss(margin=0.0, adversarial_temperature=temperature).process_slcwa_scores(positive, negative)
    ours = self_adversarial_loss(positive[:, 0], negative, torch.zeros(7, 5, dtype=torch.bool), temperature)
    torch.testing.assert_close(ours, 2 * theirs)
