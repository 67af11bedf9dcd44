"""Fixed point: what is lost is bounded and reported, and no sum of admitted values can wrap."""

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from protocols.foundation.errors import EncodingOverflow
from protocols.primitives.fixed_point import _BLOCK, FixedPoint
from protocols.primitives.group import Ring

RINGS = [Ring(32), Ring(64)]
bounds = st.floats(2**-30, 2**20, allow_subnormal=False)


@st.composite
def codecs(draw: st.DrawFn, max_parties: int = 1000) -> FixedPoint:
    ring, parties, bound = draw(st.sampled_from(RINGS)), draw(st.integers(1, max_parties)), draw(bounds)
    try:
        widest = FixedPoint.widest(ring, bound, parties)
    except EncodingOverflow:
        assume(False)
        raise
    return FixedPoint(ring, bound, parties, draw(st.integers(0, widest.fraction_bits)))


def exact(values: npt.NDArray[np.float64]) -> list[Fraction]:
    return [Fraction(float(value)) for value in values]


@given(codecs(), st.data())
@settings(deadline=None)
def test_one_value_is_off_by_at_most_half_a_unit(codec: FixedPoint, data: st.DataObject) -> None:
    values = np.array(data.draw(st.lists(st.floats(-codec.bound, codec.bound), max_size=6)), dtype=np.float64)
    encoded = codec.encode(values)
    decoded = codec.decode(encoded.vector)
    errors = [abs(a - b) for a, b in zip(exact(values), exact(decoded), strict=True)]
    assert all(error <= Fraction(codec.unit) / 2 for error in errors)
    assert encoded.clipped == 0
    assert encoded.max_error == pytest.approx(float(max(errors, default=Fraction(0))))
    assert encoded.vector.dtype == codec.ring.dtype


@given(codecs(max_parties=5), st.data())
@settings(deadline=None)
def test_a_sum_over_all_parties_is_the_exact_sum_of_the_rounded_values(codec: FixedPoint, data: st.DataObject) -> None:
    entry = st.floats(-codec.bound, codec.bound) | st.sampled_from([-codec.bound, codec.bound, 0.0])
    inputs = [
        np.array(data.draw(st.lists(entry, min_size=3, max_size=3)), dtype=np.float64) for _ in range(codec.parties)
    ]
    total = codec.ring.zeros(3)
    for values in inputs:
        codec.ring.add_into(total, codec.encode(values).vector)
    # Python's round() is exact on fractions and goes to even at the half, like the encoding.
    scale = 2**codec.fraction_bits
    units = [sum(round(Fraction(float(values[k])) * scale) for values in inputs) for k in range(3)]
    assert codec.decode(total).tolist() == [float(unit) / scale for unit in units]


@given(codecs())
@settings(deadline=None)
def test_the_worst_case_does_not_wrap(codec: FixedPoint) -> None:
    largest = int(codec.encode(np.array([codec.bound])).vector[0])
    worst = codec.encode(np.array([codec.bound, -codec.bound, 10 * codec.bound, -10 * codec.bound])).vector
    total = worst * codec.ring.dtype.type(codec.parties)  # wraps in the ring, as repeated addition does
    expected = float(codec.parties * largest) / 2**codec.fraction_bits
    assert codec.decode(total).tolist() == [expected, -expected, expected, -expected]


@given(st.sampled_from(RINGS), bounds, st.integers(1, 10**6))
@settings(deadline=None)
def test_widest_cannot_be_widened(ring: Ring, bound: float, parties: int) -> None:
    try:
        codec = FixedPoint.widest(ring, bound, parties)
    except EncodingOverflow:
        assert parties * round(bound) >= 2 ** (ring.bits - 1) or round(bound) >= 2**53
        return
    if codec.fraction_bits < min(52, ring.bits - 2):
        with pytest.raises(EncodingOverflow):
            FixedPoint(ring, bound, parties, codec.fraction_bits + 1)


@pytest.mark.parametrize(
    ("bits", "bound", "parties", "fraction_bits"),
    [
        (32, 1.0, 2, 30),  # 2 * 2^30 = 2^31
        (32, 2.0**31, 1, 0),
        (32, 1.0, 2**31, 0),
        (64, 1.0, 2**11, 52),
        (64, 2.0**53, 1, 0),
        (64, 2.0, 1, 52),
        (64, 1e300, 2, 52),
        (32, 1e308, 1, 0),
    ],
)
def test_parameters_that_could_overflow_are_refused(bits: int, bound: float, parties: int, fraction_bits: int) -> None:
    ring = Ring(64 if bits == 64 else 32)
    with pytest.raises(EncodingOverflow):
        FixedPoint(ring, bound, parties, fraction_bits)


@pytest.mark.parametrize(("bits", "parties", "fraction_bits"), [(32, 1, 30), (32, 2, 29), (64, 2**11 - 1, 52)])
def test_the_largest_parameters_that_fit_are_admitted(bits: int, parties: int, fraction_bits: int) -> None:
    ring = Ring(64 if bits == 64 else 32)
    codec = FixedPoint(ring, 1.0, parties, fraction_bits)
    total = codec.encode(np.array([1.0])).vector * ring.dtype.type(parties)
    assert codec.decode(total).tolist() == [float(parties)]


@pytest.mark.parametrize("bound", [0.0, -1.0, float("inf"), float("nan")])
def test_a_bound_that_is_none_is_refused(bound: float) -> None:
    with pytest.raises(EncodingOverflow):
        FixedPoint(Ring(64), bound, 2, 8)
    with pytest.raises(EncodingOverflow):
        FixedPoint.widest(Ring(64), bound, 2)


@pytest.mark.parametrize("bound", [1e20, 1e300, 1.7e308])
@pytest.mark.parametrize("ring", RINGS)
def test_no_encoding_is_found_for_an_absurd_bound(ring: Ring, bound: float) -> None:
    with pytest.raises(EncodingOverflow, match="do not fit"):
        FixedPoint.widest(ring, bound, 2)


@pytest.mark.parametrize(("parties", "fraction_bits"), [(0, 8), (-1, 8), (2, -1), (2, 53)])
def test_senseless_parameters_are_refused(parties: int, fraction_bits: int) -> None:
    with pytest.raises(EncodingOverflow):
        FixedPoint(Ring(64), 1.0, parties, fraction_bits)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_that_are_not_finite_are_refused(bad: float, dtype: type[np.floating]) -> None:
    codec = FixedPoint.widest(Ring(32), 1.0, 2)
    with pytest.raises(EncodingOverflow, match="not finite"):
        codec.encode(np.array([0.5, bad, 0.25], dtype=dtype))


@given(st.sampled_from(RINGS), st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
@settings(deadline=None)
def test_clipped_values_are_counted_and_end_at_the_bound(ring: Ring, drawn: list[float]) -> None:
    codec = FixedPoint.widest(ring, 4.0, 3)
    values = np.array(drawn, dtype=np.float64)
    # Up to half a unit beyond the bound a value still rounds to it: nothing is lost that rounding would not lose.
    outside = [abs(Fraction(float(value))) > 4 + Fraction(codec.unit) / 2 for value in values]
    encoded = codec.encode(values)
    assert encoded.clipped == sum(outside)
    decoded = codec.decode(encoded.vector)
    assert decoded[outside].tolist() == (4.0 * np.sign(values[outside])).tolist()
    assert encoded.max_error <= codec.unit / 2


def test_encoding_leaves_its_input_alone_and_hides_its_output() -> None:
    values = np.array([0.5, 9.0])
    encoded = FixedPoint.widest(Ring(64), 1.0, 2).encode(values)
    assert values.tolist() == [0.5, 9.0]
    assert encoded.clipped == 1
    assert "vector" not in repr(encoded)


def test_an_empty_vector_has_an_encoding() -> None:
    codec = FixedPoint.widest(Ring(32), 1.0, 2)
    encoded = codec.encode(np.empty(0))
    assert (encoded.clipped, encoded.max_error, codec.decode(encoded.vector).size) == (0, 0.0, 0)


@pytest.mark.parametrize("ring", RINGS, ids=lambda ring: f"{ring.bits} bits")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("bound", [4.0, 3.3])
@pytest.mark.parametrize("spread", [0.5, 5.0], ids=["all inside", "some clipped"])
def test_long_vectors_of_every_precision_equal_the_definition(
    ring: Ring, dtype: type[np.floating], bound: float, spread: float
) -> None:
    """Across the blocks in which it is done, and in the precision the values have, which must not matter."""
    codec = FixedPoint.widest(ring, bound, parties=5)
    values = np.random.default_rng(0).uniform(-spread, spread, 2 * _BLOCK + 3).astype(dtype)
    values[[0, 7, _BLOCK, -1]] = [bound, -bound, np.finfo(dtype).tiny, 0.0]
    scaled = values.astype(np.float64) * 2.0**codec.fraction_bits
    rounded, limit = np.rint(scaled), np.rint(bound * 2.0**codec.fraction_bits)
    inside = np.abs(rounded) <= limit
    encoded = codec.encode(values)
    assert np.array_equal(encoded.vector.view(f"i{ring.bits // 8}"), np.clip(rounded, -limit, limit).astype(np.int64))
    assert encoded.clipped == np.count_nonzero(~inside)
    assert (encoded.clipped > 0) == (spread > bound or float(dtype(bound)) > bound)
    assert encoded.max_error == np.abs(rounded - scaled)[inside].max() * codec.unit


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, _BLOCK - 1, _BLOCK, 2 * _BLOCK + 2])
def test_one_value_that_is_not_finite_is_found_anywhere(dtype: type[np.floating], value: float, place: int) -> None:
    values = np.zeros(2 * _BLOCK + 3, dtype=dtype)
    values[place] = value
    with pytest.raises(EncodingOverflow, match="not finite"):
        FixedPoint.widest(Ring(32), 4.0, parties=5).encode(values)


def test_a_given_vector_must_fit() -> None:
    codec = FixedPoint.widest(Ring(32), 4.0, parties=5)
    for wrong in (np.zeros(2, dtype="<u4"), np.zeros(3, dtype="<u8"), np.zeros(3, dtype="<f4")):
        with pytest.raises(ValueError, match="is not a vector"):
            codec.encode_into(np.zeros(3), wrong)
    vector = np.full(3, 7, dtype="<u4")
    assert codec.encode_into(np.zeros(3), vector).vector is vector
    assert not vector.any()
