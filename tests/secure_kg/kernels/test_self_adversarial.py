"""The compiled pass of a batch against autograd on the formula in double precision, for shapes of all kinds."""

from typing import NamedTuple

import numpy as np
import pytest
import torch

from secure_kg.kernels.self_adversarial import Batch, Gradients, Terms, complex_l1_step, l1_step, scratch
from secure_kg.learning.loss import self_adversarial_loss
from secure_kg.models.base import rows_per_group
from secure_kg.models.geometry import BY_NORM, COMPLEX_L1

OFFSET, TEMPERATURE = 9.0, 1.5
STEPS = {"l1": (l1_step, BY_NORM[1], 1), "complex": (complex_l1_step, COMPLEX_L1, 2)}


class Shape(NamedTuple):
    rows: int
    groups: int
    candidates: int
    width: int


SHAPES = [
    Shape(1, 1, 1, 2),
    Shape(5, 1, 3, 8),
    Shape(13, 5, 7, 32),
    Shape(64, 2, 48, 34),
    Shape(30, 4, 33, 200),
    Shape(6, 4, 9, 258),
]


def drawn(shape: Shape, seed: int = 0, entities: int = 60) -> tuple[Batch, Gradients]:
    rng = np.random.default_rng(seed)
    rows, groups, candidates, width = shape
    table, points = (rng.normal(size=(n, width)).astype(np.float32) for n in (entities, rows))
    ids = np.stack([rng.choice(entities, candidates, replace=False) for _ in range(groups)])
    marks = rng.random((rows, candidates)) < 0.2
    truths = rng.integers(0, entities, rows)
    points[0] = table[truths[0]]  # a distance of zero
    scales = rng.uniform(0.5, 1.5, rows).astype(np.float32)
    return Batch(points, table, truths, ids, marks, scales), Gradients(np.ones_like(points), np.zeros_like(table))


def taken(kind: str, batch: Batch, into: Gradients) -> float:
    run, _, parts = STEPS[kind]
    rows = rows_per_group(len(batch.points), len(batch.candidates))
    work = scratch(rows, batch.candidates.shape[1], batch.points.shape[1], parts)
    return run(batch, Terms(np.float32(OFFSET), np.float32(TEMPERATURE)), work, into) / len(batch.points)


def by_autograd(kind: str, batch: Batch) -> tuple[float, torch.Tensor, torch.Tensor]:
    geometry = STEPS[kind][1]
    points, table = (torch.from_numpy(rows).double().requires_grad_() for rows in (batch.points, batch.table))
    scales = torch.from_numpy(batch.scales).double()
    rows = rows_per_group(len(points), len(batch.candidates))
    candidates = torch.from_numpy(batch.candidates).repeat_interleave(rows, 0)[: len(points)]
    positive = OFFSET + scales * geometry.alike(points, table[torch.from_numpy(batch.truths)])
    negative = OFFSET + scales[:, None] * geometry.alike(points[:, None], table[candidates])
    loss = self_adversarial_loss(positive, negative, torch.from_numpy(batch.marks), TEMPERATURE)
    return float(loss.detach()), *torch.autograd.grad(loss, (points, table))


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_loss_and_gradients_are_those_of_autograd(kind: str, shape: Shape) -> None:
    batch, into = drawn(shape)
    loss = taken(kind, batch, into)
    expected, *gradients = by_autograd(kind, batch)
    assert loss == pytest.approx(expected, rel=1e-5)
    for found, exact in zip(into, gradients, strict=True):
        torch.testing.assert_close(torch.from_numpy(found).double(), exact, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", STEPS)
def test_a_row_whose_candidates_are_all_true_counts_by_itself_alone(kind: str) -> None:
    batch, into = drawn(Shape(7, 2, 5, 6))
    batch.marks[:] = True
    loss = taken(kind, batch, into)
    expected, *gradients = by_autograd(kind, batch)
    assert loss == pytest.approx(expected, rel=1e-5)
    torch.testing.assert_close(torch.from_numpy(into.table).double(), gradients[1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", STEPS)
def test_scratch_memory_carries_nothing_over(kind: str) -> None:
    """A batch of fewer rows after a full one, and the same batch twice, to the bit."""
    run, _, parts = STEPS[kind]
    work = scratch(5, 7, 20, parts)
    batch, into = drawn(Shape(13, 3, 7, 20))
    terms = Terms(np.float32(OFFSET), np.float32(TEMPERATURE))
    results = []
    for _ in range(2):
        into.table[:] = 0
        loss = run(batch, terms, work, into)
        results.append((loss, into.points.tobytes(), into.table.tobytes()))
        other, elsewhere = drawn(Shape(5, 1, 7, 20), seed=1)
        run(other, terms, work, elsewhere)
    assert results[0] == results[1]


@pytest.mark.parametrize("kind", STEPS)
def test_large_and_far_rows_stay_finite_and_what_is_no_number_stays_so(kind: str) -> None:
    batch, into = drawn(Shape(5, 1, 3, 8))
    batch.points[:] *= 1e6
    assert np.isfinite(taken(kind, batch, into))
    assert np.isfinite(into.points).all()
    batch.table[batch.candidates[0, 0]] = np.nan
    batch.marks[:] = False
    assert np.isnan(taken(kind, batch, into))
