"""The check of a secret sum: a total that was changed is noticed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation.errors import PeerMisbehaved
from protocols.primitives.group import GroupVector, PrimeField
from protocols.session.group_key import GroupKey
from protocols.sums.interface import SumLayout
from protocols.sums.secret.aggregation import (
    open_total,
    secret_terms,
)
from protocols.sums.secret.check import CHECKS, LARGEST_CHECKED, possible_entries, with_checks
from protocols.sums.terms import SumTerms, VectorLayout
from protocols.sums.totals import SumTotal
from tests.support.group_keys import a_key
from tests.support.secret_sums import (
    CLIENTS,
    FIRST,
    KEY,
    ONE,
    SECOND,
    THREE,
    TWO,
    added,
    both_rings,
    client_with,
    is_sum_of,
    masked,
)
from tests.support.sum_conversations import (
    PURPOSE,
    layout_for,
    random_inputs,
    task_of,
)

# --- the check ------------------------------------------------------------------------------------------------------


FEW = {bits: layout_for(4, bits, real=3, counts=9) for bits in (32, 64)}


def shifted(total: SumTotal, shift: GroupVector) -> SumTotal:
    return SumTotal(total.purpose, total.of_round, total.contributors, total.vector + shift)


def passes(task: SumTerms[SumLayout], key: GroupKey, total: SumTotal) -> bool:
    try:
        client_with(key).open(task, total)
    except PeerMisbehaved:
        return False
    return True


@both_rings
def test_any_single_bit_of_a_total_that_is_changed_is_noticed(ring_bits: int) -> None:
    task, inputs = task_of(FEW[ring_bits], CLIENTS), random_inputs(FEW[ring_bits], CLIENTS)
    total = masked(KEY, task, inputs)
    assert len(total.vector) == 12 + CHECKS
    assert is_sum_of(client_with(KEY).open(task, total), task, inputs, CLIENTS)
    for entry in range(len(total.vector)):
        for bit in range(ring_bits):
            shift = np.zeros_like(total.vector)
            shift[entry] = 1 << bit
            assert not passes(task, KEY, shifted(total, shift))


@pytest.mark.long
@given(st.data())
@settings(deadline=None, max_examples=200)
def test_any_shift_is_noticed_and_none_is_accepted(data: st.DataObject) -> None:
    """Shifts of all 2-adic valuations, of entries and checks; over any contributors."""
    bits = data.draw(st.sampled_from([32, 64]))
    layout = FEW[bits]
    task, inputs = task_of(layout, CLIENTS), random_inputs(layout, CLIENTS, data.draw(st.integers(0, 99)))
    contributors = data.draw(st.sets(st.sampled_from(CLIENTS), min_size=1))
    total = masked(KEY, task, inputs, sorted(contributors))
    assert is_sum_of(client_with(KEY).open(task, total), task, inputs, sorted(contributors))
    amounts = st.integers(0, bits - 1).flatmap(
        lambda power: st.integers(0, (1 << (bits - power)) - 1).map(lambda odd: odd << power)
    )
    shift = np.zeros_like(total.vector)
    for entry, amount in data.draw(st.dictionaries(st.integers(0, len(shift) - 1), amounts, min_size=1)).items():
        shift[entry] = amount
    assert passes(task, KEY, shifted(total, shift)) == (not shift.any())


@both_rings
def test_half_the_ring_on_one_entry_passes_every_second_check_and_never_all(ring_bits: int) -> None:
    """The change that a single check would miss half of the time: why there are so many."""
    layout = FEW[ring_bits]
    inputs, tries, missed, accepted = random_inputs(layout, CLIENTS), 300, 0, 0
    for number in range(1, tries + 1):
        task = task_of(layout, CLIENTS, number)
        vectors, total = secret_terms(task), masked(KEY, task, inputs)
        shift = np.zeros_like(total.vector)
        shift[number % 12] = 1 << (ring_bits - 1)
        accepted += passes(task, KEY, shifted(total, shift))
        opened = open_total(KEY, vectors, shifted(total, shift))
        missed += int((with_checks(KEY, vectors, opened[:12])[12:] == opened[12:]).sum())
    assert accepted == 0
    assert abs(missed / (tries * CHECKS) - 0.5) < 5 * 0.5 / np.sqrt(tries * CHECKS)


def test_factors_are_the_rounds_the_purposes_and_the_keys_own() -> None:
    numbers = np.ones(12, dtype="<u8")
    task = task_of(FEW[64], CLIENTS)
    others = [
        (KEY, replace(task, round=SECOND)),
        (KEY, replace(task, purpose="valid")),
        (KEY, replace(task, participants=(ONE, TWO, THREE))),
        (a_key(2), task),
    ]
    checks = [with_checks(key, secret_terms(one), numbers)[12:] for key, one in [(KEY, task), *others]]
    assert len({entry for vector in checks for entry in vector.tolist()}) == CHECKS * len(checks)
    # A client that was away reads the sum without knowing what model the participants had, or their states.
    later = replace(task, model=b"another", state=b"and another")
    assert np.array_equal(with_checks(KEY, secret_terms(later), numbers)[12:], checks[0])


def test_checks_are_the_sums_with_the_factors_computed_one_by_one() -> None:
    task, numbers = task_of(FEW[32], CLIENTS), np.arange(2**32 - 12, 2**32, dtype="<u4")
    vectors = secret_terms(task)
    units = [with_checks(KEY, vectors, row)[12:].tolist() for row in np.eye(12, dtype="<u4")]
    expected = [
        sum(int(number) * unit[at] for number, unit in zip(numbers, units, strict=True)) % 2**32 for at in range(CHECKS)
    ]
    assert with_checks(KEY, vectors, numbers)[12:].tolist() == expected


def test_a_field_has_no_such_check() -> None:
    task = SumTerms(FIRST, PURPOSE, tuple(CLIENTS), VectorLayout(PrimeField(), 3))
    with pytest.raises(ValueError, match="for rings"):
        with_checks(KEY, task, np.zeros(2, "<u8"))


@pytest.mark.parametrize(("entries", "length"), [(1, 41), (4096, 4136), (4097, 4097)])
def test_a_sum_has_a_check_up_to_so_many_entries(entries: int, length: int) -> None:
    task = task_of(layout_for(4, 32, real=entries, counts=0), CLIENTS)
    assert secret_terms(task).layout.entries == length
    assert entries in possible_entries(length)


def test_lengths_tell_how_many_entries_there_are() -> None:
    assert [possible_entries(length) for length in (0, 39, 40, 535)] == [(), (), (0,), (495,)]
    assert possible_entries(LARGEST_CHECKED + 1) == (LARGEST_CHECKED + 1 - CHECKS, LARGEST_CHECKED + 1)
    assert possible_entries(50_000) == (50_000,)


def test_in_a_longer_sum_an_amount_is_not_noticed_nor_is_noise_without_counts() -> None:
    """Both are stated as not covered. If one comes to be noticed, the docstring must say so."""
    layout = layout_for(4, real=LARGEST_CHECKED, counts=6)
    task, inputs = task_of(layout, CLIENTS), random_inputs(layout, CLIENTS)
    total = masked(KEY, task, inputs)
    assert len(total.vector) == layout.entries
    total.vector[0] += np.uint64(1 << 40)
    opened, true = client_with(KEY).open(task, total), layout.decode(added(task, inputs, CLIENTS))
    assert opened.real[0] != true.real[0]
    assert np.array_equal(opened.real[1:], true.real[1:])
    bare = task_of(layout_for(4, real=LARGEST_CHECKED + 1, counts=0), CLIENTS)
    noise = masked(a_key(2), bare, random_inputs(bare.layout, CLIENTS))
    assert client_with(KEY).open(bare, noise).real.shape == (LARGEST_CHECKED + 1,)
