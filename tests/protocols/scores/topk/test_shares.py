"""Operations on shares against clear values, with 2 to 6 clients as threads, a dealer and a relay."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from protocols.foundation.identifiers import PartyId
from protocols.scores.terms import ScoreTerms
from protocols.scores.topk.keys import KeyLayout
from tests.support.score_batches import terms_of
from tests.support.shared_arithmetic import added, compute, shared, xored
from tests.support.uniformity import ENTRIES, looks_uniform

EDGES: Sequence[int] = (0, 1, -1, 2, -2, 2**31, -(2**31), 2**62, -(2**62), 2**63 - 1, -(2**63), -(2**63) + 1)
several = pytest.mark.parametrize("clients", [2, 3, 6])


def terms_for(clients: int, positions: int, **more: Any) -> ScoreTerms:
    """Two clients and an asker outside, or more and one of them."""
    return terms_of(clients, positions, **({"asker": PartyId(9)} if clients == 2 else {}), **more)


def some_numbers(count: int, seed: int = 0) -> npt.NDArray[np.int64]:
    """Of all sizes, the edges among them."""
    rng = np.random.default_rng(seed)
    wide = rng.integers(-(2**63), 2**63 - 1, count, dtype=np.int64) >> rng.integers(0, 63, count)
    wide[: len(EDGES)] = EDGES
    return wide


@several
def test_look_up_of_every_count(clients: int) -> None:
    terms = terms_for(clients, 8 * (clients + 1))
    tables = KeyLayout.of_scores(terms).tables()
    counts = np.arange(terms.positions) % (clients + 1)
    held = {party: (counts >= number).astype(np.uint64) for number, party in enumerate(terms.clients, start=1)}
    found = compute(terms, lambda arithmetic, _, me: arithmetic.look_up(held[me], tables))
    for number, table in enumerate(tables):
        shares = {party: looked_up[number] for party, looked_up in found.items()}
        assert added(shares).tolist() == [int(table[count]) for count in counts]


@several
def test_scale_is_the_product_modulo_2_64(clients: int) -> None:
    terms = terms_for(clients, 40, queries=3)
    values, factors = some_numbers(120).reshape(3, 40), some_numbers(40, 1)
    left, right = shared(values, terms.clients), shared(factors, terms.clients, 1)
    found = added(compute(terms, lambda arithmetic, _, me: arithmetic.scale(left[me], right[me])))
    clear = [[(int(value) * int(factor)) % 2**64 for value, factor in zip(row, factors, strict=True)] for row in values]
    assert found.view(np.uint64).tolist() == clear


@several
def test_the_sign_of_every_number(clients: int) -> None:
    numbers = some_numbers(300)
    terms = terms_for(clients, len(numbers))
    shares = shared(numbers, terms.clients)
    found = xored(compute(terms, lambda arithmetic, _, me: arithmetic.negative(shares[me]))) & 1
    assert found.tolist() == (numbers < 0).astype(int).tolist()


def test_the_sign_of_a_single_number() -> None:
    terms = terms_for(3, 1)
    for number in EDGES:
        shares = shared(np.array([number]), terms.clients)
        opened = compute(terms, lambda arithmetic, _, me: arithmetic.open_bits(arithmetic.negative(shares[me])))  # noqa: B023
        assert {party: bits.tolist() for party, bits in opened.items()} == {
            party: [number < 0] for party in terms.clients
        }


@several
def test_the_larger_of_two(clients: int) -> None:
    """Whose difference fits, as that of two means does."""
    one, other = some_numbers(200) // 4, some_numbers(200, 1)[::-1] // 4
    other[:5] = one[:5]
    terms = terms_for(clients, 200)
    ones, others = shared(one, terms.clients), shared(other, terms.clients, 1)
    found = added(compute(terms, lambda arithmetic, _, me: arithmetic.larger(ones[me], others[me])))
    assert found.tolist() == np.maximum(one, other).tolist()


@several
def test_a_shuffle_permutes_each_query_apart(clients: int) -> None:
    terms = terms_for(clients, 50, queries=4)
    values = some_numbers(200).reshape(4, 50)
    shares = shared(values, terms.clients)
    found = added(compute(terms, lambda arithmetic, _, me: arithmetic.shuffle(shares[me])))
    assert np.array_equal(np.sort(found, axis=1), np.sort(values, axis=1))
    moved = [np.argsort(np.argsort(values[0])).tolist(), *(np.argsort(np.argsort(row)).tolist() for row in found)]
    assert len({tuple(order) for order in moved}) == len(moved)


def test_a_shuffle_puts_a_place_anywhere() -> None:
    """300 queries of 4 places in one go: where the first of them went, 3 degrees of freedom."""
    terms = terms_for(3, 4, queries=300)
    shares = shared(np.tile(np.arange(4), (300, 1)), terms.clients)
    found = added(compute(terms, lambda arithmetic, _, me: arithmetic.shuffle(shares[me])))
    counts = np.bincount(np.argmin(found, axis=1), minlength=4)
    assert ((counts - 75) ** 2).sum() / 75 < 28  # once in 300,000


@several
def test_bits_are_opened_to_everybody(clients: int) -> None:
    terms = terms_for(clients, 19)
    rng = np.random.default_rng(0)
    bits = {party: rng.integers(0, 2, 19, dtype=np.uint8) for party in terms.clients}
    opened = compute(terms, lambda arithmetic, _, me: arithmetic.open_bits(bits[me]))
    expected = xored(bits).astype(bool).tolist()
    assert all(found.tolist() == expected for found in opened.values())


def test_shares_of_results_are_uniform_by_themselves() -> None:
    """Of zeros in, no client's share of what comes out shows that it is zero."""
    terms = terms_for(3, ENTRIES)
    zeros = np.zeros((1, ENTRIES), dtype=np.uint64)
    for party, share in compute(terms, lambda arithmetic, _, me: arithmetic.scale(zeros, zeros[0])).items():
        assert looks_uniform(share[0]), party
    for party, share in compute(terms, lambda arithmetic, _, me: arithmetic.shuffle(zeros)).items():
        assert looks_uniform(share[0]), party


def test_a_public_number_has_one_share() -> None:
    terms = terms_for(3, 4)
    number = np.array([5, 6, 7, 8], dtype=np.uint64)
    assert added(compute(terms, lambda arithmetic, _, me: arithmetic.public(number))).tolist() == [5, 6, 7, 8]
