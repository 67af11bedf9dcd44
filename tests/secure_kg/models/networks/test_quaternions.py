"""Quaternions as rows, against the multiplication table of 1, i, j, k."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from secure_kg.models.networks.quaternions import conjugate, product, unit

TABLE = {  # of the unit quaternions 1, i, j, k by number: sign and number of their product
    **{(0, k): (1, k) for k in range(4)},
    **{(k, 0): (1, k) for k in range(4)},
    **{(k, k): (-1, 0) for k in (1, 2, 3)},
    **{(1, 2): (1, 3), (2, 3): (1, 1), (3, 1): (1, 2), (2, 1): (-1, 3), (3, 2): (-1, 1), (1, 3): (-1, 2)},
}


def by_table(x: list[float], y: list[float]) -> list[float]:
    found = [0.0] * 4
    for a in range(4):
        for b in range(4):
            sign, place = TABLE[a, b]
            found[place] += sign * x[a] * y[b]
    return found


def rows(seed: int, count: int = 5, width: int = 12) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32))


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_products_follow_the_table(seed: int) -> None:
    x, y = rows(seed), rows(seed + 1)
    found = product(x, y).view(5, 4, 3)
    for n in range(5):
        for k in range(3):
            one, other = (z.view(5, 4, 3)[n, :, k].double().tolist() for z in (x, y))
            np.testing.assert_allclose(found[n, :, k].numpy(), by_table(one, other), rtol=1e-4, atol=1e-5)


def test_a_product_with_a_unit_keeps_lengths_and_one_with_the_conjugate_takes_it_back() -> None:
    x, turn = rows(1), unit(rows(2))
    torch.testing.assert_close(product(x, turn).norm(dim=1), x.norm(dim=1))
    torch.testing.assert_close(product(product(x, turn), conjugate(turn)), x)


def test_heads_are_ranked_by_the_same_product_as_tails() -> None:
    h, turn, t = rows(1), unit(rows(2)), rows(3)
    torch.testing.assert_close((product(h, turn) * t).sum(1), (h * product(t, conjugate(turn))).sum(1))


def test_a_quaternion_of_zeros_stays_one_and_has_a_gradient() -> None:
    x = torch.zeros(1, 8, requires_grad=True)
    assert torch.equal(unit(x), torch.zeros(1, 8))
    (found,) = torch.autograd.grad(unit(x).sum(), x)
    assert bool(found.isfinite().all())
