"""The compiled loops against torch: similarities, their gradients, and counts with ties, at widths of all kinds."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from secure_kg.evaluation.ranking import torch_count
from secure_kg.models import geometry as geometry_module
from secure_kg.models.geometry import BY_NORM, COMPLEX_L1, DOT, Answers, Geometry, _Distance, _TorchComplexL1

DISTANCES: list[Geometry] = [BY_NORM[1], BY_NORM[2], COMPLEX_L1]
widths = st.sampled_from([2, 4, 30, 32, 34, 64, 66, 128, 130, 200])
seeds = st.integers(0, 2**32 - 1)


def points(seed: int, rows: int, width: int, whole: bool = False) -> torch.Tensor:
    """Random rows; whole numbers make many exact ties, in every order of summation."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(-1, 2, (rows, width)) if whole else rng.normal(size=(rows, width))
    return torch.from_numpy(drawn.astype(np.float32))


@pytest.mark.parametrize("geometry", DISTANCES, ids=["l1", "l2", "complex-l1"])
@given(seeds, widths, st.integers(1, 9), st.integers(1, 11))
@settings(max_examples=60, deadline=None)
def test_pairs_and_gradients_equal_torch(geometry: _Distance, seed: int, width: int, b: int, m: int) -> None:
    x, y, g = points(seed, b, width), points(seed + 1, m, width), points(seed + 2, b, m)
    y[0] = x[0]  # a distance of zero
    routes = []
    for route in (geometry.fused_pairs, geometry.torch_pairs, lambda x, y: -geometry.alike(x[:, None], y)):
        own = x.clone().requires_grad_(), y.clone().requires_grad_()
        distance = route(*own)
        routes.append((distance.detach(), *torch.autograd.grad(distance, own, g)))
    for other in routes[1:]:
        for fused, plain in zip(routes[0], other, strict=True):
            torch.testing.assert_close(fused, plain, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("in_block", [1, 45, 100, 1000])
def test_blocks_of_coordinates_are_the_same_distances(in_block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One coordinate at a time, one and a remainder, some, and all; with groups, too."""
    x, y, g = points(0, 6, 14).view(2, 3, 14), points(1, 18, 14).view(2, 9, 14), points(2, 6, 9).view(2, 3, 9)
    results = []
    for size in (1 << 24, in_block):
        monkeypatch.setattr(geometry_module, "_IN_BLOCK", size)
        own = x.clone().requires_grad_(), y.clone().requires_grad_()
        distance = COMPLEX_L1.torch_pairs(*own)
        results.append((distance.detach(), *torch.autograd.grad(distance, own, g)))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


def test_complex_l1_gradient_by_finite_differences() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, 4, dtype=torch.float64, generator=generator, requires_grad=True)
    y = torch.randn(5, 4, dtype=torch.float64, generator=generator, requires_grad=True)
    assert torch.autograd.gradcheck(_TorchComplexL1.apply, (x, y))


@pytest.mark.parametrize("geometry", DISTANCES, ids=["l1", "l2", "complex-l1"])
@given(seeds, widths, st.integers(1, 6), st.integers(1, 600), st.booleans())
@settings(max_examples=80, deadline=None)
def test_counts_with_early_exit_equal_counts_of_a_whole_matrix(
    geometry: Geometry, seed: int, width: int, b: int, n: int, whole: bool
) -> None:
    """Squares of whole numbers are exact; moduli are not, so complex rows get no imaginary part when ties matter."""
    rng = np.random.default_rng(seed)
    x, y = points(seed, b, width, whole), points(seed + 1, n, width, whole)
    if whole and geometry is COMPLEX_L1:
        x[:, width // 2 :] = y[:, width // 2 :] = 0
    truth = torch.from_numpy(rng.integers(0, n, b))
    counts = torch.from_numpy(rng.integers(0, 4, b))
    starts = torch.cumsum(counts, 0) - counts
    known = torch.from_numpy(np.concatenate([rng.choice(n, min(int(c), n), replace=False) for c in counts] + [[]]))
    counts = torch.minimum(counts, torch.tensor(n))
    starts = torch.cumsum(counts, 0) - counts
    known = known.to(torch.int64)
    found = geometry.fused_counts(x, y, Answers(truth, starts, counts, known))
    assert found is not None
    rows = torch.repeat_interleave(torch.arange(b), counts)
    scores = geometry.alike(x[:, None].double(), y.double())
    expected = torch_count(scores, truth, rows, known)
    assert torch.equal(found[0], expected[0])
    assert torch.equal(found[1], expected[1])


@pytest.mark.parametrize("geometry", DISTANCES, ids=["l1", "l2", "complex-l1"])
@pytest.mark.parametrize("width", [2, 10, 32, 48, 128, 200])
def test_equal_rows_are_exact_ties(geometry: Geometry, width: int) -> None:
    """Values of any kind: the answer's distance is added up in the same order as everybody else's."""
    x, y = points(1, 40, width), points(2, 700, width)
    twins = torch.arange(40)
    y[300:340] = y[0:40]
    none = torch.zeros(40, dtype=torch.int64)
    counts = geometry.fused_counts(x, y, Answers(twins, none, none, none[:1]))
    assert counts is not None
    assert (counts[1] == 1).all()


def test_the_dot_product_has_no_fused_count() -> None:
    x = points(0, 2, 4)
    none = torch.zeros(2, dtype=torch.int64)
    assert DOT.fused_counts(x, x, Answers(none, none, none, none)) is None


@pytest.mark.parametrize("geometry", DISTANCES, ids=["l1", "l2", "complex-l1"])
@pytest.mark.parametrize("gap", [1e-3, 1e-5, 1e-6])
def test_gradients_of_close_rows_keep_their_digits(geometry: _Distance, gap: float) -> None:
    """A gradient by products of matrices would lose them: all of x and y instead of their difference."""
    x = points(3, 1, 64)
    y = torch.cat((x + gap * points(4, 1, 64), points(5, 5, 64)))
    own = [tensor.clone().requires_grad_() for tensor in (x, y)]
    exact = [tensor.double().requires_grad_() for tensor in (x, y)]
    fused = torch.autograd.grad(geometry.fused_pairs(*own).sum(), own)
    expected = torch.autograd.grad(geometry.torch_pairs(*exact).sum(), exact)
    for found, wanted in zip(fused, expected, strict=True):
        torch.testing.assert_close(found.double(), wanted, rtol=1e-3, atol=1e-4)
