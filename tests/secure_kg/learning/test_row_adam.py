"""Rows moved when they are read end where moving all rows at every step ends, to the bit, and where torch ends."""

import copy

import numpy as np
import pytest
import torch

from secure_kg.learning.adam import Adam, gradient_of
from secure_kg.learning.row_adam import RowAdam

ROWS = 9


def optimiser(width: int, rate: float = 0.01) -> Adam:
    draws = torch.Generator().manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(rows, width, generator=draws)) for rows in (ROWS, 3)]
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    return Adam(parameters, rate)


def run(adam: Adam, reads: str, rounds: int = 2, steps: int = 12) -> None:
    """Steps with gradients of a few rows each. `reads`: "needed", those rows alone; "all": all rows at every step."""
    rows, rng = RowAdam(adam), np.random.default_rng(1)
    for round in range(rounds):
        adam.rate = 0.01 * 0.5**round
        rows.begin(steps)
        for _ in range(steps):
            ids = [torch.from_numpy(rng.integers(0, len(p) - 1, 2)) for p in adam.parameters]  # the last row: never
            rows.catch_up(list(zip(adam.parameters, ids, strict=True)))
            if reads == "all":
                rows.catch_up([(p, torch.arange(len(p))) for p in adam.parameters])
            for parameter, own in zip(adam.parameters, ids, strict=True):
                # From the row itself, so that a row which is read too early would take another way.
                noise = torch.from_numpy(rng.normal(size=(len(own), parameter.shape[1])).astype(np.float32))
                gradient_of(parameter)[own] += noise + parameter.detach()[own]
            rows.step()
        rows.settle()


@pytest.mark.parametrize("width", [1, 16, 19, 40])
def test_what_is_left_for_later_is_the_same_to_the_bit(width: int) -> None:
    lazy, dense = optimiser(width), optimiser(width)
    run(lazy, "needed")
    run(dense, "all")
    for one, other in zip(lazy.parameters, dense.parameters, strict=True):
        assert torch.equal(one, other)
        assert all(torch.equal(lazy.state[one][key], dense.state[other][key]) for key in lazy.state[one])
        assert lazy.state[one]["step"] == 24
        assert not gradient_of(one).any()


@pytest.mark.parametrize("width", [1, 16, 19])
def test_steps_are_those_of_torch(width: int) -> None:
    ours, theirs = optimiser(width), optimiser(width)
    rows, rng = RowAdam(ours), np.random.default_rng(1)
    rows.begin(30)
    for _ in range(30):
        for one, other in zip(ours.parameters, theirs.parameters, strict=True):
            ids = torch.from_numpy(rng.integers(0, len(one), 2))
            rows.catch_up([(one, ids)])
            torch.testing.assert_close(one.detach()[ids], other.detach()[ids], rtol=1e-5, atol=1e-6)
            drawn = torch.from_numpy(rng.normal(size=(2, width)).astype(np.float32))
            gradient_of(one).index_add_(0, ids, drawn)
            other.grad = torch.zeros_like(other).index_add_(0, ids, drawn)
        rows.step()
        theirs.step()
    rows.settle()
    for one, other in zip(ours.parameters, theirs.parameters, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)
        for key, value in theirs.state[other].items():
            torch.testing.assert_close(ours.state[one][key], value, rtol=1e-5, atol=1e-7)


def test_rows_without_a_gradient_stay_where_they_are() -> None:
    adam = optimiser(20)
    before = copy.deepcopy(adam.parameters)
    run(adam, "needed")
    for parameter, old in zip(adam.parameters, before, strict=True):
        assert torch.equal(parameter[-1], old[-1])
        assert not torch.equal(parameter[0], old[0])
