"""The arithmetic of counting holders: what is added for a row, and which matrices are regular."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation.identifiers import PartyId
from protocols.holders import secret as holders
from protocols.holders.secret import (
    own_entries,
)
from protocols.primitives.group import MODULUS, FieldArray
from tests.support.holder_conversations import enough, task_of
from tests.support.holder_counts import FIELD, TASK, Count, Union, unions
from tests.support.sum_conversations import everyone


@given(unions())
@settings(deadline=None)
def test_any_sets_give_the_right_answers_to_every_contributor(union: Union) -> None:
    task, held = union
    count = Count(held, task)
    for party in held:
        assert count.read(party) == enough(held, list(held), party, task.least)


def rank_one(left: list[int], right: list[int]) -> list[int]:
    """Row by row, in Python's integers. Of single elements the first is the weight."""
    return left if len(left) == 1 else [one * other % MODULUS for one in left for other in right]


@pytest.mark.long
@given(unions(), st.data())
@settings(deadline=None)
def test_no_row_of_too_few_passes_whatever_vectors_are_drawn(union: Union, data: st.DataObject) -> None:
    """Zeros and equal ones among them, which are too rare to meet otherwise."""
    task, held = union
    elements = st.sampled_from([0, 1, 2, MODULUS - 1]) | st.integers(0, MODULUS - 1)
    vectors = st.lists(elements, min_size=task.least - 1, max_size=task.least - 1)
    own = dict[PartyId, FieldArray]()
    for party, of_party in held.items():
        drawn = [rank_one(data.draw(vectors), data.draw(vectors)) for _ in of_party]
        own[party] = np.array(drawn, dtype="<u8").reshape(len(drawn), task.entries_per_row).T
    count = Count(held, task, own=own)
    for party in held:
        true = enough(held, list(held), party, task.least)
        assert all(right or not found for found, right in zip(count.read(party), true, strict=True))


@pytest.mark.parametrize("least", [2, 3, 4])
def test_a_large_union_gives_the_right_answers(least: int) -> None:
    clients, size = everyone(4), 50_000
    rng = np.random.default_rng(7)
    holds = rng.random((4, size)) < 0.6
    task = task_of(size, clients, least=least)
    count = Count({party: np.flatnonzero(holds[party - 1]).tolist() for party in clients}, task)
    for party in clients:
        true = (holds.sum(axis=0) >= least)[holds[party - 1]]
        assert 0 < true.sum() < len(true)
        assert np.array_equal(count.read(party), true)


def test_what_a_client_adds_for_a_row_is_a_matrix_of_rank_one() -> None:
    task = replace(TASK, least=5)
    entries = own_entries(200, task)
    assert entries.shape == (16, 200)
    matrices = entries.reshape(4, 4, 200)
    first = matrices[0]
    for row in range(1, 4):  # a multiple of the first row
        factor = FIELD.multiply(matrices[row, 0], FIELD.inverse(first[0]))
        assert np.array_equal(matrices[row], FIELD.multiply(first, factor))
    assert len(set(entries.ravel().tolist())) == 16 * 200
    assert not np.any(entries == own_entries(200, task))
    assert own_entries(0, task).shape == (16, 0)


def test_for_a_bound_of_two_a_client_adds_one_weight() -> None:
    entries = own_entries(200, TASK)
    assert entries.shape == (1, 200)
    assert len(set(entries.ravel().tolist())) == 200
    assert own_entries(0, TASK).shape == (1, 0)


# --- regular matrices -----------------------------------------------------------------------------------------------

Matrix = list[list[int]]


def determinant(matrix: Matrix) -> int:
    """By its definition, in Python's integers."""
    size = len(matrix)
    found = 0
    for order in permutations(range(size)):
        inversions = sum(order[i] > order[j] for j in range(size) for i in range(j))
        found += (-1) ** inversions * prod(matrix[row][column] for row, column in enumerate(order))
    return found % MODULUS


def judged(matrices: Iterable[Matrix]) -> list[bool]:
    return holders.regular(np.moveaxis(np.array(matrices, dtype="<u8"), 0, -1)).tolist()


@st.composite
def matrices(draw: st.DrawFn) -> list[Matrix]:
    """Several of one size. Many zeros, so that pivots have to be looked for; many that have no inverse."""
    size = draw(st.integers(1, 4))
    entries = st.sampled_from([0, 0, 0, 1, 1, 2, MODULUS - 1]) | st.integers(0, MODULUS - 1)
    row = st.lists(entries, min_size=size, max_size=size)
    drawn = draw(st.lists(st.lists(row, min_size=size, max_size=size), min_size=1, max_size=5))
    for matrix in drawn:
        if draw(st.booleans()):  # one row becomes a combination of the others
            factors = draw(row)
            target = draw(st.integers(0, size - 1))
            others = [number for number in range(size) if number != target]
            matrix[target] = [sum(factors[n] * matrix[n][column] for n in others) % MODULUS for column in range(size)]
    return drawn


@pytest.mark.long
@given(matrices())
@settings(deadline=None, max_examples=100)
def test_matrices_have_an_inverse_if_their_determinant_is_not_zero(drawn: list[Matrix]) -> None:
    given_them = np.moveaxis(np.array(drawn, dtype="<u8"), 0, -1)
    before = given_them.copy()
    assert holders.regular(given_them).tolist() == [determinant(matrix) != 0 for matrix in drawn]
    assert np.array_equal(given_them, before)


def test_every_matrix_of_zeros_and_ones_is_judged_right() -> None:
    for size, number in ((1, 2), (2, 16), (3, 512)):
        bits = (np.arange(number)[:, None] >> np.arange(size * size)) & 1
        every: list[Matrix] = bits.reshape(number, size, size).tolist()
        expected = [determinant(matrix) != 0 for matrix in every]
        assert judged(every) == expected
        assert 0 < sum(expected) < number


def test_permutations_of_a_diagonal_are_regular_and_no_matrices_at_all_are_no_problem() -> None:
    """Every pivot but those of the diagonal itself has to be looked for."""
    for size in (1, 2, 3, 4):
        every = [
            [[7 * (column == place) for column in range(size)] for place in order]
            for order in permutations(range(size))
        ]
        assert judged(every) == [True] * len(every)
        assert holders.regular(np.zeros((size, size, 0), dtype="<u8")).shape == (0,)


@pytest.mark.parametrize("least", [2, 3, 5])
@pytest.mark.parametrize("rows", [0, 1, 5])
def test_rows_are_judged_alike_in_any_number_of_blocks(monkeypatch: pytest.MonkeyPatch, least: int, rows: int) -> None:
    """Every second row is regular."""
    task, size = replace(TASK, least=least), least - 1
    rest = np.zeros((size, size, rows), dtype="<u8")
    rest[np.arange(size), np.arange(size), ::2] = 7
    expected = [number % 2 == 0 for number in range(rows)]
    for block in (1, 16, 40, 1 << 14):
        monkeypatch.setattr(holders, "_BLOCK", block)
        found = holders.enough_holders(rest.reshape(size * size, rows), task)
        assert found.tolist() == expected
        assert found.dtype == np.bool_
