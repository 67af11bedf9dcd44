"""The graph of NoGE against its definition, written out over triples and pairs of tokens."""

from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from secure_kg.data.graph import TripleArray
from secure_kg.models.networks.cooccurrence import cooccurrence
from secure_kg.models.networks.sparse import SparseMatrix, torch_times

ENTITIES, RELATIONS = 6, 3


def by_hand(train: TripleArray, entities: int, relations: int) -> npt.NDArray[np.float64]:
    """Counts n(v, u) of ordered pairs of the tokens of each triple, then A, entry by entry."""
    size, counts = entities + relations, Counter[tuple[int, int]]()
    for head, relation, tail in train.tolist():
        tokens = head, entities + relation, tail
        for a, b in permutations(range(3), 2):
            counts[tokens[a], tokens[b]] += 1
    total = sum(counts.values())
    matrix = np.eye(size)
    for (v, u), count in counts.items():
        p, p_v = count / total, sum(n for (w, _), n in counts.items() if w == v) / total
        matrix[v, u] += p / p_v if v < entities and u < entities else p
    normalised: npt.NDArray[np.float64] = matrix / matrix.sum(axis=1, keepdims=True)
    return normalised


def triples(numbers: list[tuple[int, int, int]]) -> TripleArray:
    return np.array(numbers, dtype=np.int64).reshape(-1, 3)


SOME = st.lists(
    st.tuples(st.integers(0, ENTITIES - 1), st.integers(0, RELATIONS - 1), st.integers(0, ENTITIES - 1)), max_size=12
)


@given(SOME)
@settings(max_examples=60, deadline=None)
def test_the_matrix_is_what_its_definition_says(numbers: list[tuple[int, int, int]]) -> None:
    """Triples that are there twice and entities that stand at both ends of one are among the examples."""
    train = triples(numbers)
    found = cooccurrence(train, ENTITIES, RELATIONS).dense()
    np.testing.assert_allclose(found.numpy(), by_hand(train, ENTITIES, RELATIONS), rtol=1e-5, atol=1e-7)


def test_an_entity_without_triples_and_a_client_without_triples_keep_to_themselves() -> None:
    found = cooccurrence(triples([(0, 0, 1)]), ENTITIES, RELATIONS).dense()
    assert found[ENTITIES - 1].tolist() == torch.eye(ENTITIES + RELATIONS)[ENTITIES - 1].tolist()
    assert torch.equal(cooccurrence(triples([]), 2, 1).dense(), torch.eye(3))


def test_two_triples_by_hand() -> None:
    """Of 12 pairs, entity 0 has 4: two with entity 1, two with relations."""
    found = cooccurrence(triples([(0, 0, 1), (0, 1, 1)]), 2, 2).dense()
    row = np.array([1.0, 2 / 4, 1 / 12, 1 / 12])
    np.testing.assert_allclose(found[0].numpy(), row / row.sum(), rtol=1e-6)


def some_matrix() -> SparseMatrix:
    draws = np.random.default_rng(3)
    train = np.column_stack([draws.integers(0, most, 90) for most in (40, 5, 40)])
    return cooccurrence(train, 40, 5)


def test_products_and_gradients_are_those_of_the_dense_matrix() -> None:
    matrix, rows = some_matrix(), torch.randn(45, 7, requires_grad=True)
    upstream = torch.randn(45, 7)
    torch.testing.assert_close(matrix(rows), matrix.dense() @ rows)
    (found,) = torch.autograd.grad(matrix(rows), rows, upstream)
    torch.testing.assert_close(found, matrix.dense().t() @ upstream)


def test_the_twin_on_any_device_is_close_and_rows_that_are_not_contiguous_are_taken() -> None:
    matrix, rows = some_matrix(), torch.randn(7, 45).t()
    entries: Any = matrix.there
    torch.testing.assert_close(torch_times(entries.starts, entries.columns, entries.values, rows), matrix(rows))


def test_the_same_product_has_the_same_bits_wherever_its_rows_lie() -> None:
    matrix, table = some_matrix(), torch.randn(50, 8)
    for shift in range(4):
        rows = torch.empty(45 * 8 + shift)[shift:].view(45, 8).copy_(table[:45])
        assert torch.equal(matrix(rows), matrix(table[:45].clone()))


def test_the_matrix_is_no_part_of_a_saved_state() -> None:
    assert some_matrix().state_dict() == {}


@pytest.mark.parametrize("size", [1000, 4000])
def test_memory_grows_with_triples_and_not_with_the_square_of_nodes(size: int) -> None:
    draws = np.random.default_rng(1)
    matrix = cooccurrence(np.column_stack([draws.integers(0, most, 500) for most in (size, 9, size)]), size, 9)
    entries = sum(buffer.numel() for buffer in matrix.buffers())
    assert entries <= 2 * (2 * (6 * 500 + size + 9) + size + 10)
