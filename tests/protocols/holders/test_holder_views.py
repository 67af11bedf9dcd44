"""What a count of holders shows: to a client how many others hold a row up to the bound, to the server nothing."""

from itertools import combinations
from math import log, prod, sqrt
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from protocols.foundation import wire
from protocols.foundation.identifiers import SERVER, RoundId
from protocols.holders import secret as holders
from protocols.holders.interface import Holders
from protocols.primitives.group import FieldArray, PrimeField
from protocols.session.conversation import Conversation
from protocols.sums.secagg.messages import (
    MaskedInput,
)
from protocols.sums.totals import SumTotal
from protocols.transport.tap import Tap, read_transcript
from tests.support.holder_conversations import Counting, task_of
from tests.support.holder_counts import CLIENTS, FIELD, FOUR, ONE, THREE, TWO, Count, both, serving
from tests.support.in_threads import SESSION, at_once, converse
from tests.support.sum_conversations import everyone
from tests.support.uniformity import ENTRIES, HIGH, LOW, chi_squares


def looks_uniform(vector: FieldArray) -> bool:
    """All bytes but the highest, in which an element of the field has five bits."""
    return all(LOW < statistic < HIGH for statistic in chi_squares(vector)[:7])


def differ(first: FieldArray, second: FieldArray) -> bool:
    """Whether two samples are of different distributions (Kolmogorov and Smirnov): wrong once in 10^12 times."""
    both_sorted = np.sort(np.concatenate((first, second)))
    shares = [np.searchsorted(np.sort(sample), both_sorted, side="right") / len(sample) for sample in (first, second)]
    distance = float(np.abs(shares[0] - shares[1]).max())
    return distance > 3.77 * sqrt(1 / len(first) + 1 / len(second))


def left_with_others(number: int, least: int = 2) -> FieldArray:
    """[k, k, rows]: what client 1 sees of rows that so many others hold."""
    every, parties, size = set(range(ENTRIES)), everyone(6), least - 1
    held = {party: every if party <= 1 + number else set[int]() for party in parties}
    return Count(held, task_of(ENTRIES, parties, least=least)).left(ONE).reshape(size, size, ENTRIES)


def test_a_lone_holder_sees_exactly_zeros() -> None:
    assert not left_with_others(0).any()


def test_what_a_holder_sees_is_uniform_and_the_same_for_one_other_and_for_many() -> None:
    one, two, five = (left_with_others(number)[0, 0] for number in (1, 2, 5))
    for seen in (one, two, five):
        assert looks_uniform(seen)
    assert not differ(one, five)
    assert not differ(one, two)
    assert not differ(two, five)


def test_without_random_weights_one_other_and_four_would_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """That the last test passes is due to the weights."""
    monkeypatch.setattr(PrimeField, "uniform", lambda field, shape: np.ones(shape, dtype="<u8"))
    one, four = left_with_others(1)[0, 0], left_with_others(4)[0, 0]
    assert set(one.tolist()) == {1}
    assert differ(one, four)
    assert not looks_uniform(one)


def test_small_weights_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    monkeypatch.setattr(PrimeField, "uniform", lambda field, shape: rng.integers(0, 1 << 60, shape, dtype="<u8"))
    one, four = left_with_others(1)[0, 0], left_with_others(4)[0, 0]
    assert differ(one, four)


def test_what_a_client_sees_of_rows_that_it_does_not_hold_is_uniform_however_many_do() -> None:
    size = 4 * ENTRIES
    quarters = [set(range(number * ENTRIES, (number + 1) * ENTRIES)) for number in range(4)]
    held = {
        ONE: set[int](),
        TWO: quarters[1] | quarters[2] | quarters[3],
        THREE: quarters[2] | quarters[3],
        FOUR: quarters[3],
    }
    (seen,) = Count(held, task_of(size, CLIENTS)).opened()
    nobody, *others = seen.reshape(4, ENTRIES)
    assert not nobody.any()  # stated: whether anybody holds a row shows
    for one in others:
        assert looks_uniform(one)
        assert not any(differ(one, other) for other in others)


def test_a_row_shows_nothing_of_what_its_holders_have_added_to_another_row() -> None:
    """The differences between rows of the same two holders are uniform too."""
    (left,) = Count({ONE: range(2 * ENTRIES), TWO: range(2 * ENTRIES)}, task_of(2 * ENTRIES, CLIENTS)).left(ONE)[
        None, 0
    ]
    assert looks_uniform(FIELD.subtract(left[:ENTRIES], left[ENTRIES:]))


def test_answers_over_different_clients_tell_one_that_holds_nothing_who_holds_a_row() -> None:
    """Stated as not covered. Client 1 takes part with two others at a time; whoever is there when nobody holds a row
    does not hold it."""
    others = everyone(6)[1:]
    held = {party: set(np.flatnonzero(np.arange(20) % len(others) == party - 2).tolist()) for party in others}
    held[others[0]] |= set(range(10))
    suspects = {row: set(others) for row in range(20)}
    for sampled in combinations(others, 2):
        task = task_of(20, (ONE, *sampled))
        (seen,) = Count({ONE: set[int]()} | {party: held[party] for party in sampled}, task).opened()
        for row in np.flatnonzero(seen == 0).tolist():
            suspects[row] -= set(sampled)
    assert suspects == {row: {party for party in others if row in held[party]} for row in range(20)}


def determinants(matrices: FieldArray) -> FieldArray:
    """[n]: of matrices [2, 2, n] or [3, 3, n]."""
    if len(matrices) == 2:
        return minor(matrices, (0, 1), (0, 1))
    signed = [
        FIELD.multiply(matrices[0, column], minor(matrices, (1, 2), tuple({0, 1, 2} - {column}))) for column in range(3)
    ]
    return FIELD.subtract(FIELD.add(signed[0], signed[2]), signed[1])


def minor(matrices: FieldArray, rows: tuple[int, ...], columns: tuple[int, ...]) -> FieldArray:
    (top, bottom), (left, right) = rows, columns
    return FIELD.subtract(
        FIELD.multiply(matrices[top, left], matrices[bottom, right]),
        FIELD.multiply(matrices[top, right], matrices[bottom, left]),
    )


def statistics(matrices: FieldArray) -> list[FieldArray]:
    """Of regular matrices: every entry, the ratio of two entries, and the determinant, each uniform."""
    size = len(matrices)
    entries = list(matrices.reshape(size * size, -1))
    return [*entries, FIELD.multiply(entries[1], FIELD.inverse(entries[0])), determinants(matrices)]


@pytest.mark.parametrize("least", [3, 4])
def test_enough_others_show_a_uniform_matrix_however_many_they_are(least: int) -> None:
    fewest, most = (statistics(left_with_others(number, least)) for number in (least - 1, 5))
    for one, other in zip(fewest, most, strict=True):
        assert looks_uniform(one)
        assert looks_uniform(other)
        assert not differ(one, other)


@pytest.mark.parametrize("least", [3, 4])
def test_vectors_of_small_entries_would_show_how_many_others_there_are(
    monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    """That the last test passes is due to uniform vectors."""
    rng = np.random.default_rng(0)
    monkeypatch.setattr(PrimeField, "uniform", lambda field, shape: rng.integers(0, 1 << 28, shape, dtype="<u8"))
    fewest, most = (statistics(left_with_others(number, least)) for number in (least - 1, 5))
    assert differ(fewest[0], most[0])


@pytest.mark.parametrize(("least", "others"), [(3, 1), (4, 1), (4, 2)])
def test_too_few_others_show_a_uniform_matrix_of_as_high_a_rank(least: int, others: int) -> None:
    """Its entries are uniform, and so is the one combination of rows that is zero."""
    matrices = left_with_others(others, least)
    assert not determinants(matrices).any()
    for entry in matrices.reshape((least - 1) ** 2, ENTRIES):
        assert looks_uniform(entry)
    if others == 1:
        factor = FIELD.multiply(matrices[1, 0], FIELD.inverse(matrices[0, 0]))
        assert np.array_equal(FIELD.multiply(matrices[0], factor), matrices[1])
    else:
        factor = FIELD.multiply(minor(matrices, (1, 2), (0, 1)), FIELD.inverse(minor(matrices, (0, 1), (0, 1))))
    assert looks_uniform(factor)


@pytest.mark.parametrize("least", [3, 4, 5])
def test_for_a_larger_bound_the_number_of_others_shows_where_they_are_too_few(least: int) -> None:
    """Stated: the rank of what is left, to a holder and to one that holds nothing of the row."""
    parties, size = everyone(6), least - 1
    for others in range(least - 1):
        held = {party: set(range(20)) if party <= 1 + others else set[int]() for party in parties}
        count = Count(held, task_of(20, parties, least=least))
        for seen, number in ((count.left(ONE), others), (count.opened(), 1 + others)):
            for rank in range(1, least):
                upper_left = seen.reshape(size, size, 20)[:rank, :rank]
                assert set(holders.regular(upper_left).tolist()) == {rank <= number}


def test_several_clients_together_see_what_one_of_them_would_see_of_the_others() -> None:
    """Stated: clients 1 and 2 subtract what both have added."""
    parties = everyone(5)
    for others in range(4):
        held = {party: set(range(20)) if party <= 2 + others else set[int]() for party in parties}
        count = Count(held, task_of(20, parties, least=3))
        left = FIELD.subtract(count.left(ONE), count.own[TWO]).reshape(2, 2, 20)
        assert set(holders.regular(left).tolist()) == {others >= 2}
        assert set((left[0, 0] != 0).tolist()) == {others >= 1}


# --- the proof, in fields small enough to list everything ---------------------------------------------------------


def all_of(prime: int, *shape: int) -> npt.NDArray[np.int64]:
    """[n, ...]: every array of this shape over the field of `prime` elements."""
    size = prod(shape)
    digits = np.arange(prime**size)[:, None] // prime ** np.arange(size) % prime
    return digits.reshape(len(digits), *shape)


def rest_distribution(prime: int, size: int, others: int) -> npt.NDArray[np.float64]:
    """The probability of every k x k matrix, in the order of `all_of`, if so many others have added theirs."""
    counts = np.zeros(prime ** (size * size))
    powers = prime ** np.arange(size * size).reshape(size, size)
    right = all_of(prime, size, others)
    for left in all_of(prime, size, others):
        rest = np.einsum("im,njm->nij", left, right) % prime
        counts += np.bincount((rest * powers).sum(axis=(1, 2)), minlength=len(counts))
    return counts / counts.sum()


def rank(matrix: npt.NDArray[np.int64], prime: int) -> int:
    """The rows span prime^rank different vectors."""
    spanned = all_of(prime, len(matrix)) @ matrix % prime
    return round(log(len(np.unique(spanned, axis=0)), prime))


@pytest.mark.parametrize(
    ("prime", "size", "others"),
    [(3, 2, 0), (3, 2, 1), (3, 2, 2), (5, 2, 1), (5, 2, 2), (2, 2, 3), (2, 2, 4), (2, 3, 1), (2, 3, 2), (2, 3, 3)],
)
def test_the_stated_distances_hold(prime: int, size: int, others: int) -> None:
    """The docstring's bounds for any p: from a uniform matrix, or from a uniform one of as high a rank."""
    found = rest_distribution(prime, size, others)
    ranks = np.array([rank(matrix, prime) for matrix in all_of(prime, size, size)])
    shown = min(others, size)
    ideal = np.ones(len(ranks)) if shown == size else (ranks == shown).astype(np.float64)
    distance = float(np.abs(found - ideal / ideal.sum()).sum()) / 2
    if others < size:
        assert found[ranks > others].sum() == 0
        assert distance <= 2 / (prime ** (size - others) * (prime - 1))
        assert np.ptp(found[ranks == others]) < 1e-12  # uniform among the matrices of that rank
    else:
        assert distance <= 1 / (prime ** (others - size) * (prime - 1))
        assert found[ranks < size].sum() <= 2 / (prime - 1)


@both
def test_what_the_server_adds_up_and_sends_is_noise_whatever_is_held(counting: Counting, tmp_path: Path) -> None:
    """Nobody holds anything in the first two rounds, everybody everything in the third."""
    tasks = [task_of(ENTRIES, CLIENTS, number) for number in (1, 2, 3)]

    def serve(conversation: Conversation) -> None:
        with conversation.transport as transport:
            transport.attach(Tap(tmp_path / "server"))
            serving(counting, *tasks)(conversation)

    def take_part(conversation: Conversation) -> list[Holders]:
        client, found = counting.client(conversation, CLIENTS), []
        for task in tasks:
            client.prepare(at_once(conversation), task)
            held = np.arange(ENTRIES if task.round == RoundId(3) else 0)
            found.append(client.count(at_once(conversation), task, held))
        return found

    results = converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))
    assert [found.enough.tolist() for found in results[ONE]] == [[], [], [True] * ENTRIES]
    messages = [wire.decode(record.frame, session=SESSION).message for record in read_transcript(tmp_path / "server")]
    totals = [message.vector for message in messages if isinstance(message, SumTotal)][:: len(CLIENTS)]
    uploads = [message.vector for message in messages if isinstance(message, MaskedInput)]
    assert (len(totals), len(uploads)) == (3, 12)
    differences = [FIELD.subtract(totals[0], other) for other in totals[1:]]
    for vector in (*totals, *uploads, *differences):
        assert looks_uniform(vector)
    assert not looks_uniform(np.arange(ENTRIES, dtype="<u8"))
