"""Functions of sixteen floats against double precision, over the whole range they are asked for."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from secure_kg.kernels.compiling import compiled_as_written
from secure_kg.kernels.elementary import exponential, inverse_root, log_of_one_plus
from secure_kg.kernels.lanes import COUNT, largest, load, signed, store, total

Floats = npt.NDArray[np.float32]


@compiled_as_written
def exponentials(x: Floats, out: Floats) -> None:
    for k in range(0, len(x), COUNT):
        store(out, (k,), exponential(load(x, (k,))))


@compiled_as_written
def logarithms(x: Floats, out: Floats) -> None:
    for k in range(0, len(x), COUNT):
        store(out, (k,), log_of_one_plus(load(x, (k,))))


@compiled_as_written
def inverse_roots(x: Floats, out: Floats) -> None:
    for k in range(0, len(x), COUNT):
        store(out, (k,), inverse_root(load(x, (k,))))


@compiled_as_written
def folded(x: Floats) -> tuple[float, float]:
    return total(load(x, (0,))), largest(load(x, (0,)))


@compiled_as_written
def with_signs(x: Floats, y: Floats, out: Floats) -> None:
    store(out, (0,), signed(load(x, (0,)), load(y, (0,))))


@pytest.mark.parametrize(
    ("function", "exact", "values"),
    [
        (exponentials, np.exp, -np.geomspace(1e-9, 87, 1 << 16)),
        (logarithms, np.log1p, np.geomspace(1e-30, 1, 1 << 16)),
        (inverse_roots, lambda x: x**-0.5, np.geomspace(1.2e-38, 3e38, 1 << 16)),
        (inverse_roots, lambda x: x**-0.5, np.linspace(1, 4, 1 << 16)),
    ],
    ids=["exponential", "logarithm", "inverse root", "inverse root in two octaves"],
)
def test_functions_are_right_to_a_few_units_in_the_last_place(
    function: Callable[[Floats, Floats], None],
    exact: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]],
    values: npt.NDArray[np.float64],
) -> None:
    x = values.astype(np.float32)
    out = np.empty_like(x)
    function(x, out)
    expected = exact(x.astype(np.float64))
    assert np.abs(out / expected - 1).max() < 3e-7


def test_ends_of_the_range() -> None:
    x = np.full(COUNT, -np.inf, dtype=np.float32)
    x[:3] = 0, np.nan, -1e30
    out = np.empty_like(x)
    exponentials(x, out)
    assert out[0] == 1
    assert np.isnan(out[1])
    assert (out[2:] <= np.exp(-86.9)).all()
    logarithms(np.array([0, 1] * 8, dtype=np.float32), out)
    assert out[0] == 0
    assert out[1] == pytest.approx(np.log(2), rel=1e-7)


def test_lanes_are_folded_in_the_order_that_is_written_down() -> None:
    x = np.random.default_rng(0).normal(size=COUNT).astype(np.float32) * np.float32(10) ** np.arange(COUNT)
    x = x.astype(np.float32)
    rest = x
    while len(rest) > 1:
        rest = rest[: len(rest) // 2] + rest[len(rest) // 2 :]
    assert folded(x) == (rest[0], x.max())


def test_a_sign_of_zero_gives_zero() -> None:
    x, out = np.full(COUNT, -2.5, dtype=np.float32), np.empty(COUNT, dtype=np.float32)
    y = np.array([3, -3, 0.0, -0.0] * 4, dtype=np.float32)
    with_signs(x, y, out)
    assert out.tolist() == [-2.5, 2.5, 0, 0] * 4
