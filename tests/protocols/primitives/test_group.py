"""The groups obey their laws, agree with Python's integers, and nothing else is taken for a vector of theirs."""

import secrets
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.primitives import group as group_module
from protocols.primitives import residues as residues_module
from protocols.primitives.group import MODULUS, FieldArray, Group, GroupVector, PrimeField, Ring
from protocols.primitives.residues import Residues
from tests.support.uniformity import ENTRIES, HIGH, LOW, chi_squares
from tests.support.vectors import vectors

RINGS = [Ring(bits) for bits in (16, 17, 24, 31, 32, 33, 64)]
FIELD = PrimeField()
NEAR_2_32, SMALL = 4294828033, 40961
RESIDUES = [Residues(NEAR_2_32), Residues(SMALL)]
GROUPS: list[Group] = [*RINGS, FIELD, *RESIDUES]
ORDERS = {
    **{ring.name: 2**ring.bits for ring in RINGS},
    "F_2^61-1": 2**61 - 1,
    "Z_4294828033": NEAR_2_32,
    "Z_40961": SMALL,
}
# Where the halves of a multiplication, and the words they are summed in, begin and end.
EDGES = [0, 1, 2, *(2**bits + by for bits in (29, 30, 31, 32, 60) for by in (-1, 0, 1)), MODULUS - 2, MODULUS - 1]

elements = st.integers(0, MODULUS - 1) | st.sampled_from(EDGES)


@st.composite
def group_and_vectors(draw: st.DrawFn, count: int) -> tuple[Group, list[list[int]]]:
    group = draw(st.sampled_from(GROUPS))
    order = ORDERS[group.name]
    length = draw(st.integers(0, 8))
    edges = [edge for edge in (*EDGES, order // 2, order // 2 + 1, order - 1) if edge < order]
    entry = st.integers(0, order - 1) | st.sampled_from(edges)
    return group, [draw(st.lists(entry, min_size=length, max_size=length)) for _ in range(count)]


def vector(group: Group, entries: list[int]) -> GroupVector:
    return np.array(entries, dtype=group.dtype)


def plus(group: Group, left: GroupVector, right: GroupVector) -> GroupVector:
    total = left.copy()
    group.add_into(total, right)
    return total


def minus(group: Group, left: GroupVector, right: GroupVector) -> GroupVector:
    total = left.copy()
    group.subtract_into(total, right)
    return total


# --- every group ----------------------------------------------------------------------------------------------------


@given(group_and_vectors(2))
@settings(deadline=None)
def test_is_arithmetic_modulo_the_order(drawn: tuple[Group, list[list[int]]]) -> None:
    group, (left, right) = drawn
    order = ORDERS[group.name]
    pairs = list(zip(left, right, strict=True))
    assert plus(group, vector(group, left), vector(group, right)).tolist() == [(a + b) % order for a, b in pairs]
    assert minus(group, vector(group, left), vector(group, right)).tolist() == [(a - b) % order for a, b in pairs]


@given(group_and_vectors(3))
@settings(deadline=None)
def test_group_laws(drawn: tuple[Group, list[list[int]]]) -> None:
    group, entries = drawn
    a, b, c = (vector(group, values) for values in entries)
    zero = group.zeros(len(a))
    assert np.array_equal(plus(group, plus(group, a, b), c), plus(group, a, plus(group, b, c)))
    assert np.array_equal(plus(group, a, b), plus(group, b, a))
    assert np.array_equal(plus(group, a, zero), a)
    assert np.array_equal(plus(group, a, minus(group, zero, a)), zero)
    assert np.array_equal(minus(group, plus(group, a, b), b), a)
    assert plus(group, a, b).dtype == group.dtype
    group.require(plus(group, a, b), len(a))


@given(group_and_vectors(4))
@settings(deadline=None)
def test_masks_that_are_added_once_and_subtracted_once_cancel(drawn: tuple[Group, list[list[int]]]) -> None:
    group, entries = drawn
    first, second, mask, other = (vector(group, values) for values in entries)
    masked = plus(group, plus(group, first, mask), other)
    opposite = minus(group, minus(group, second, mask), other)
    assert np.array_equal(plus(group, masked, opposite), plus(group, first, second))


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("around", [-1, 0, 1, 7])
def test_long_vectors_and_views_are_combined_entry_by_entry(group: Group, around: int) -> None:
    assert residues_module._BLOCK == group_module._BLOCK
    order, length = ORDERS[group.name], 2 * group_module._BLOCK + around
    left = [(number * 0x9E3779B97F4A7C15) % order for number in range(length)]
    right = [(number * 0xD1B54A32D192ED03 + 1) % order for number in range(length)]
    for combine, sign in ((group.add_into, 1), (group.subtract_into, -1)):
        backing = group.zeros(3 * length + 2)
        backing[1:-1:3] = left
        combine(backing[1:-1:3], vector(group, right))
        assert backing[1:-1:3].tolist() == [(a + sign * b) % order for a, b in zip(left, right, strict=True)]
        backing[1:-1:3] = 0
        assert not backing.any()


@pytest.mark.parametrize("group", GROUPS)
def test_what_is_added_stays_as_it_was(group: Group) -> None:
    added = vector(group, [5, 6, 7])
    total = vector(group, [min(ORDERS[group.name], 2**32) - 1] * 3)
    group.add_into(total, added)
    group.subtract_into(total, added)
    assert added.tolist() == [5, 6, 7]
    group.add_into(added, added)
    assert added.tolist() == [10, 12, 14]


def test_groups_have_names_of_their_own() -> None:
    assert [group.name for group in GROUPS] == list(ORDERS)
    assert Ring(32) == Ring(32) != Ring(64)
    assert PrimeField() == PrimeField()
    assert Residues(SMALL) == Residues(SMALL) != Residues(NEAR_2_32)
    assert len({*GROUPS, Ring(32), PrimeField(), Residues(SMALL)}) == len(GROUPS)


@pytest.mark.parametrize("bits", [0, 8, 15, 65, 128, -32])
def test_other_widths_are_refused(bits: int) -> None:
    with pytest.raises(ValueError, match="not available"):
        Ring(bits)


@pytest.mark.parametrize("group", GROUPS)
def test_only_vectors_of_the_group_pass(group: Group) -> None:
    group.require(group.zeros(3), 3)
    group.require(group.zeros(0), 0)
    other = Ring(64 if group.element_bytes == 4 else 32)
    wrong = [
        group.zeros(2),
        group.zeros(3).reshape(1, 3),
        group.zeros(1).reshape(()),
        other.zeros(3),
        np.zeros(3, dtype=f"<i{group.element_bytes}"),
        np.zeros(3, dtype=f"<f{group.element_bytes}"),
        np.zeros(3, dtype=f">u{group.element_bytes}"),
    ]
    for candidate in wrong:
        with pytest.raises(ValueError, match="is not a vector"):
            group.require(candidate, 3)


@pytest.mark.parametrize("value", [MODULUS, MODULUS + 1, 2**63, 2**64 - 1])
def test_only_values_of_the_field_pass(value: int) -> None:
    FIELD.require(vector(FIELD, [0, MODULUS - 1]), 2)
    Ring(64).require(vector(FIELD, [0, value]), 2)
    for entries in ([value, 0], [0, value]):
        with pytest.raises(ValueError, match="is not a vector"):
            FIELD.require(vector(FIELD, entries), 2)


@pytest.mark.parametrize("group", GROUPS)
def test_elements_are_little_endian_and_as_wide_as_the_group(group: Group) -> None:
    assert np.array([1], dtype=group.dtype).tobytes() == (1).to_bytes(group.element_bytes, "little")
    assert group.element_bytes == (2 if ORDERS[group.name] == 2**16 else 4 if ORDERS[group.name] <= 2**32 else 8)
    assert group.zeros(2).dtype == group.dtype


@pytest.mark.parametrize("group", [FIELD, *RESIDUES])
def test_no_group_of_prime_order_broadcasts_a_short_vector(group: Group) -> None:
    for combine in (group.add_into, group.subtract_into):
        total = vector(group, [1, 2, 3])
        for wrong in ([1], [1, 2], [1, 2, 3, 4]):
            with pytest.raises(ValueError, match="vectors of"):
                combine(total, vector(group, wrong))
        assert total.tolist() == [1, 2, 3]


# --- residues -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("group", RESIDUES)
def test_only_residues_pass(group: Residues) -> None:
    group.require(vector(group, [0, group.modulus - 1]), 2)
    for value in (group.modulus, group.modulus + 1, 2**32 - 1):
        for entries in ([value, 0], [0, value]):
            with pytest.raises(ValueError, match="is not a vector"):
                group.require(vector(group, entries), 2)


@pytest.mark.parametrize("modulus", [-5, 0, 1, 2**32, 2**32 + 15])
def test_moduli_that_do_not_fit_are_refused(modulus: int) -> None:
    with pytest.raises(ValueError, match="do not fit 32 bits"):
        Residues(modulus)


@given(st.lists(st.integers(0, 2**32 - 1) | st.sampled_from([SMALL - 1, SMALL, NEAR_2_32 - 1, NEAR_2_32]), max_size=20))
@settings(deadline=None)
def test_words_become_residues_in_order_and_none_twice_as_often(words: list[int]) -> None:
    for group, bits in zip(RESIDUES, (32, 16), strict=True):
        low = [word % 2**bits for word in words]
        assert group.from_words(vector(group, words)).tolist() == [one for one in low if one < group.modulus]


def test_every_residue_has_as_many_words_as_any_other() -> None:
    group = Residues(5)
    counts = np.bincount(group.from_words(np.arange(8 * 1000, dtype="<u4")), minlength=5)
    assert counts.tolist() == [1000] * 5


# --- the field ------------------------------------------------------------------------------------------------------


def array(entries: list[int]) -> FieldArray:
    return np.array(entries, dtype=np.uint64)


def test_own_vector_of_the_field() -> None:
    own = {name: [int(entry) for entry in given] for name, given in vectors("field").items() if isinstance(given, list)}
    left, right = array(own["left"]), array(own["right"])
    assert FIELD.add(left, right).tolist() == own["sum"]
    assert FIELD.subtract(left, right).tolist() == own["difference"]
    assert FIELD.multiply(left, right).tolist() == own["product"]
    assert FIELD.inverse(left).tolist() == own["inverse_of_left"]


def test_all_pairs_of_edges() -> None:
    column, row = array(EDGES)[:, np.newaxis], array(EDGES)[np.newaxis, :]
    assert FIELD.add(column, row).tolist() == [[(a + b) % MODULUS for b in EDGES] for a in EDGES]
    assert FIELD.subtract(column, row).tolist() == [[(a - b) % MODULUS for b in EDGES] for a in EDGES]
    assert FIELD.multiply(column, row).tolist() == [[a * b % MODULUS for b in EDGES] for a in EDGES]


@given(st.lists(st.tuples(elements, elements), max_size=20))
@settings(deadline=None)
def test_is_arithmetic_modulo_a_prime(pairs: list[tuple[int, int]]) -> None:
    left, right = array([a for a, _ in pairs]), array([b for _, b in pairs])
    assert FIELD.add(left, right).tolist() == [(a + b) % MODULUS for a, b in pairs]
    assert FIELD.subtract(left, right).tolist() == [(a - b) % MODULUS for a, b in pairs]
    assert FIELD.multiply(left, right).tolist() == [a * b % MODULUS for a, b in pairs]


@given(st.integers(1, 9), st.integers(1, 3), st.data())
@settings(deadline=None)
def test_sums_and_products_over_the_first_axis(rows: int, columns: int, data: st.DataObject) -> None:
    size = rows * columns
    entries = data.draw(st.lists(elements, min_size=size, max_size=size))
    table = array(entries).reshape(rows, columns)
    sums = [sum(entries[column::columns]) % MODULUS for column in range(columns)]
    products = [1] * columns
    for place, entry in enumerate(entries):
        products[place % columns] = products[place % columns] * entry % MODULUS
    assert FIELD.sum(table).tolist() == sums
    assert FIELD.product(table).tolist() == products


def test_a_sum_of_many_largest_elements_does_not_wrap() -> None:
    assert int(FIELD.sum(np.full(100_003, MODULUS - 1, dtype=np.uint64))) == -100_003 % MODULUS
    assert FIELD.sum(np.zeros((0, 2), dtype=np.uint64)).tolist() == [0, 0]


def test_single_values_wrap_in_silence() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert int(FIELD.sum(array([MODULUS - 1, 2]))) == 1
        assert int(FIELD.product(array([MODULUS - 1, MODULUS - 1]))) == 1
        assert int(FIELD.subtract(array([0])[0], array([1])[0])) == MODULUS - 1
        assert int(FIELD.add(array([0])[0], array([1])[0])) == 1


@given(st.lists(elements.filter(bool), max_size=33))
@settings(deadline=None)
def test_inverses_are_those_of_python(entries: list[int]) -> None:
    inverses = FIELD.inverse(array(entries))
    assert inverses.tolist() == [pow(entry, -1, MODULUS) for entry in entries]
    assert FIELD.multiply(inverses, array(entries)).tolist() == [1] * len(entries)


def test_inverses_keep_the_shape_and_take_one_inversion(monkeypatch: pytest.MonkeyPatch) -> None:
    inversions = []

    def counted(base: int, exponent: int, modulus: int) -> int:
        inversions.append(base)
        return pow(base, exponent, modulus)

    monkeypatch.setattr(group_module, "pow", counted, raising=False)
    table = array(list(range(1, 1001))).reshape(10, 4, 25)
    inverses = FIELD.inverse(table)
    assert inverses.shape == table.shape
    assert (FIELD.multiply(inverses, table) == 1).all()
    assert len(inversions) == 1


@pytest.mark.parametrize("place", [0, 3, 6])
def test_zero_has_no_inverse(place: int) -> None:
    entries = array([1, 2, 3, 4, 5, 6, 7])
    entries[place] = 0
    with pytest.raises(ZeroDivisionError, match="no inverse"):
        FIELD.inverse(entries)


def test_drawn_elements_are_uniform_and_fresh() -> None:
    drawn = FIELD.uniform((8, ENTRIES))
    assert (drawn.shape, drawn.dtype) == ((8, ENTRIES), FIELD.dtype)
    assert drawn.max() < MODULUS
    # The last byte holds only five bits of an element; moved up it is full.
    flat = drawn.reshape(-1)
    statistics = [*chi_squares(flat)[:7], chi_squares(flat << np.uint64(3))[7]]
    assert all(LOW < statistic < HIGH for statistic in statistics)
    assert not np.array_equal(drawn, FIELD.uniform((8, ENTRIES)))
    assert FIELD.uniform((0, 5)).shape == (0, 5)


def test_drawing_replaces_what_it_rejects(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [[MODULUS, 4, 2**64 - 1, 5], [2**61 + 6, MODULUS], [7]]

    def token_bytes(size: int) -> bytes:
        words = batches.pop(0)
        assert size == 8 * len(words)
        return b"".join(word.to_bytes(8, "little") for word in words)

    monkeypatch.setattr(secrets, "token_bytes", token_bytes)
    assert FIELD.uniform((2, 2)).tolist() == [[4, 5], [6, 7]]
    assert batches == []
