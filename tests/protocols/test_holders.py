"""Holders: each learns whether there are enough of them and no more, the server nothing; false totals are refused."""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import combinations, permutations
from math import prod, sqrt
from pathlib import Path

import numpy as np
import pytest
from group_keys import KINDS, Kind, a_key
from holder_conversations import SECRET, TWINS, Counting, Held, enough, rows, some_rows, task_of
from hypothesis import given, settings
from hypothesis import strategies as st
from in_threads import SESSION, Part, converse, soon
from sum_conversations import Bend, Foreseen, Silences, bent, everyone, layout_for, random_inputs, stopping_at
from sum_conversations import task_of as sum_task_of
from uniformity import ENTRIES, HIGH, LOW, chi_squares

from protocols import group_key, holders, wire
from protocols.conversation import Abandon, Conversation
from protocols.errors import PeerMisbehaved, ProtocolError, SumAbandoned, UnexpectedMessage
from protocols.group_key import GroupKey
from protocols.holders import (
    PURPOSE,
    CountTask,
    Holders,
    SecretHolderClient,
    SecretHolderServer,
    enough_holders,
    held_vector,
    own_entries,
    vector_task,
)
from protocols.identifiers import SERVER, PartyId, RoundId, SessionId
from protocols.plain.sums import ClearInput
from protocols.plain.union import ClearNames
from protocols.primitives.group import MODULUS, FieldArray, PrimeField
from protocols.primitives.prg import add_keystream
from protocols.secagg.graph import MaskingGraph
from protocols.secagg.messages import (
    AdvertiseKeys,
    MaskedInput,
    ShareKeys,
    SurvivorSignature,
    UnmaskShares,
)
from protocols.secagg.params import ThreatModel
from protocols.secagg.sums import SecAggSumClient, SecAggSumServer
from protocols.secagg.vectors import VectorClient, VectorServer, VectorTask, parameters_for
from protocols.secret_aggregation import SecretSumClient, SecretSumServer, mask_key, open_total
from protocols.sums import Collected, Total
from protocols.totals import SumTotal
from protocols.transport.tap import Tap, read_transcript

CLIENTS = everyone(4)
ONE, TWO, THREE, FOUR = CLIENTS
FIRST, SECOND = RoundId(1), RoundId(2)
FIELD = PrimeField()
UNION = 30
TASK = task_of(UNION, CLIENTS)
HELD = some_rows(CLIENTS, UNION)
KEY = a_key(1)
REFUSED = "the total of the holders is not that of what the clients have sent"
both = pytest.mark.parametrize("counting", SECRET.values(), ids=SECRET)
every_twin = pytest.mark.parametrize("counting", TWINS.values(), ids=TWINS)

SAYS: dict[str, type[wire.Message]] = {
    "advertise keys": AdvertiseKeys,
    "share keys": ShareKeys,
    "masked input": MaskedInput,
    "consistency check": SurvivorSignature,
    "unmasking": UnmaskShares,
}
EVERY_STEP = [("plain", "input", ClearInput)] + [
    (name, step, message)
    for name in SECRET
    for step, message in SAYS.items()
    if (name, step) != ("semi-honest", "consistency check")
]


def counting_in(counting: Counting, held: Held, *tasks: CountTask) -> Part:
    def take_part(conversation: Conversation) -> list[Holders]:
        client = counting.client(conversation, CLIENTS)
        counts = []
        for task in tasks:
            client.prepare(conversation, task, soon())
            counts.append(client.count(conversation, task, rows(held[conversation.transport.party]), soon()))
        return counts

    return take_part


def serving(
    counting: Counting, *tasks: CountTask, patience: Foreseen | None = None, silent: Silences | None = None
) -> Part:
    def serve(conversation: Conversation) -> None:
        waiting, notice = patience or Foreseen(), silent or Silences()
        server = counting.server(conversation, CLIENTS, waiting, notice)
        for task in tasks:
            server.prepare(conversation, task, CLIENTS, waiting, notice)
            server.collect(conversation, task, waiting, notice, CLIENTS)

    return serve


# --- enough holders -------------------------------------------------------------------------------------------------


@every_twin
@pytest.mark.parametrize("least", [2, 3, 4])
@pytest.mark.parametrize(
    "held",
    [HELD, {party: set() for party in CLIENTS}, {party: set(range(UNION)) for party in CLIENTS}],
    ids=["some", "none", "all"],
)
def test_every_client_knows_which_of_its_rows_have_enough_holders(counting: Counting, held: Held, least: int) -> None:
    task = replace(TASK, least=least)
    parts = {SERVER: serving(counting, task)} | dict.fromkeys(CLIENTS, counting_in(counting, held, task))
    results = converse(parts)
    for party in CLIENTS:
        (found,) = results[party]
        assert found.enough.tolist() == enough(held, CLIENTS, party, least)
        assert found.enough.dtype == np.bool_
        assert found.contributors == set(CLIENTS)


@every_twin
@pytest.mark.parametrize("least", [2, 4])
def test_an_empty_union_is_counted_too(counting: Counting, least: int) -> None:
    task, held = task_of(0, CLIENTS, least=least), {party: set[int]() for party in CLIENTS}
    results = converse({SERVER: serving(counting, task)} | dict.fromkeys(CLIENTS, counting_in(counting, held, task)))
    assert all(results[party][0].enough.shape == (0,) for party in CLIENTS)


@every_twin
def test_answers_come_in_the_order_in_which_rows_are_named(counting: Counting) -> None:
    named = {ONE: [4, 0, 3], TWO: [0, 4], THREE: [1, 2], FOUR: [2, 0, 1]}
    task = task_of(5, CLIENTS)

    def take_part(conversation: Conversation) -> list[bool]:
        client = counting.client(conversation, CLIENTS)
        client.prepare(conversation, task, soon())
        held = np.array(named[conversation.transport.party], dtype=np.int64)
        return client.count(conversation, task, held, soon()).enough.tolist()

    results = converse({SERVER: serving(counting, task)} | dict.fromkeys(CLIENTS, take_part))
    assert results[ONE] == [True, True, False]
    assert results[FOUR] == [True, True, True]


@pytest.mark.parametrize(("name", "step", "message"), EVERY_STEP)
def test_the_answers_are_those_over_the_survivors(name: str, step: str, message: type[wire.Message]) -> None:
    """Client 4 falls silent in one step. The next count has everybody else."""
    counting, silent, later = TWINS[name], Silences(), task_of(UNION, CLIENTS, 2)
    patience = Foreseen((f"{step}/{PURPOSE}", FOUR))
    honest = counting_in(counting, HELD, TASK, later)

    def serve(conversation: Conversation) -> None:
        server = counting.server(conversation, CLIENTS, patience, silent)
        server.prepare(conversation, TASK, CLIENTS, patience, silent)
        server.collect(conversation, TASK, patience, silent, CLIENTS)
        server.prepare(conversation, later, CLIENTS[:3], Foreseen(), silent)
        server.collect(conversation, later, Foreseen(), silent, CLIENTS[:3])

    parts = {SERVER: serve} | dict.fromkeys(CLIENTS, honest) | {FOUR: bent(honest, stopping_at(message))}
    results = converse(parts)
    assert silent.seen == [({FOUR}, f"{step}/{PURPOSE}")]
    contributors = CLIENTS if step in ("consistency check", "unmasking") else CLIENTS[:3]
    for party in CLIENTS[:3]:
        first, second = results[party]
        assert first.contributors == set(contributors)
        assert first.enough.tolist() == enough(HELD, contributors, party, 2)
        assert second.enough.tolist() == enough(HELD, CLIENTS[:3], party, 2)


@both
def test_a_total_is_not_sent_to_one_that_is_in_it_and_gone(counting: Counting) -> None:
    """Client 4 falls silent after its input. Whoever hears of it takes it out of those present."""
    present = set(CLIENTS)
    patience, honest = Foreseen((f"unmasking/{PURPOSE}", FOUR)), counting_in(counting, HELD, TASK)

    def lose(parties: Collection[PartyId], step: str) -> None:
        present.difference_update(parties)

    def serve(conversation: Conversation) -> list[int]:
        server = counting.server(conversation, CLIENTS, patience, lose)
        server.prepare(conversation, TASK, present, patience, lose)
        server.collect(conversation, TASK, patience, lose, present)
        traffic = conversation.transport.traffic
        return [traffic.total("sent", peer=party, round_id=FIRST, phase=PURPOSE).messages for party in CLIENTS]

    parts = {SERVER: serve} | dict.fromkeys(CLIENTS, honest) | {FOUR: bent(honest, stopping_at(UnmaskShares))}
    results = converse(parts)
    assert results[SERVER] == [1, 1, 1, 0]
    assert results[ONE][0].contributors == set(CLIENTS)


@every_twin
def test_who_is_gone_between_the_two_halves_is_not_waited_for(counting: Counting) -> None:
    silent = Silences()

    def serve(conversation: Conversation) -> None:
        server = counting.server(conversation, CLIENTS, Foreseen(), silent)
        server.prepare(conversation, TASK, CLIENTS, Foreseen(), silent)
        server.collect(conversation, TASK, Foreseen(), silent, CLIENTS[:3])

    def gone(conversation: Conversation) -> None:
        counting.client(conversation, CLIENTS).prepare(conversation, TASK, soon())

    parts = {SERVER: serve} | dict.fromkeys(CLIENTS, counting_in(counting, HELD, TASK)) | {FOUR: gone}
    results = converse(parts)
    assert silent.seen == []
    for party in CLIENTS[:3]:
        assert results[party][0].enough.tolist() == enough(HELD, CLIENTS[:3], party, 2)


WRONG_ROWS = {
    "twice": [0, 0],
    "some twice": [3, 3, 4],
    "below": [-1],
    "the first from behind": [0, -UNION],
    "beyond": [UNION],
}


@pytest.mark.parametrize("held", WRONG_ROWS.values(), ids=WRONG_ROWS)
@pytest.mark.parametrize("least", [2, 3])
def test_rows_that_are_no_positions_are_not_sent(held: list[int], least: int) -> None:
    """They would be read back wrongly, or as others' rows."""
    task = replace(TASK, least=least)
    with pytest.raises(ValueError, match="rows held are positions in the union"):
        held_vector(np.array(held, dtype=np.int64), own_entries(len(held), task), task, KEY)


@every_twin
def test_a_client_with_rows_that_are_no_positions_sends_nothing(counting: Counting) -> None:
    def take_part(conversation: Conversation) -> None:
        client = counting.client(conversation, CLIENTS)
        client.prepare(conversation, TASK, soon())
        sent = conversation.transport.traffic.total("sent").messages
        with pytest.raises(ValueError, match="each once"):
            client.count(conversation, TASK, np.array([1, 1], dtype=np.int64), soon())
        assert conversation.transport.traffic.total("sent").messages == sent

    def serve(conversation: Conversation) -> None:
        server = counting.server(conversation, CLIENTS, Foreseen(), Silences())
        server.prepare(conversation, TASK, CLIENTS, Foreseen(), Silences())

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))


@pytest.mark.parametrize("least", [1, 0, -1])
def test_a_bound_that_every_row_meets_is_refused(least: int) -> None:
    with pytest.raises(ValueError, match="every row has that many holders"):
        task_of(UNION, CLIENTS, least=least)


@both
@pytest.mark.parametrize("least", [2, 3, 5])
def test_a_row_costs_a_fixed_number_of_bytes_each_way(counting: Counting, least: int) -> None:
    """Both sizes of the union have headers of the same length."""
    tasks = [task_of(size, CLIENTS, number, least=least) for number, size in enumerate((300, 400), start=1)]

    def take_part(conversation: Conversation) -> list[list[int]]:
        counting_in(counting, {party: {0, 1} for party in CLIENTS}, *tasks)(conversation)
        traffic = conversation.transport.traffic
        return [
            [
                traffic.total("sent", round_id=task.round, phase=f"masked input/{PURPOSE}").bytes,
                traffic.total("received", round_id=task.round, phase=PURPOSE).bytes,
            ]
            for task in tasks
        ]

    results = converse({SERVER: serving(counting, *tasks)} | dict.fromkeys(CLIENTS, take_part))
    for party in CLIENTS:
        small, large = results[party]
        assert [more - less for more, less in zip(large, small, strict=True)] == [100 * 8 * (2 * least - 3)] * 2


# --- the same in one place ------------------------------------------------------------------------------------------


class Count:
    """What clients send and the server adds up, put together in one place."""

    def __init__(
        self, held: Held, task: CountTask = TASK, key: GroupKey = KEY, own: dict[PartyId, FieldArray] | None = None
    ) -> None:
        """`own`: what clients add for their rows, if it is not to be drawn."""
        self.task, self.key = task, key
        self.held = {party: rows(of_party) for party, of_party in held.items()}
        self.own = own or {party: own_entries(len(of_party), task) for party, of_party in self.held.items()}
        added: FieldArray = np.zeros(task.entries + 1, dtype="<u8")
        for party, of_party in self.held.items():
            vector = held_vector(of_party, self.own[party], task, key)
            add_keystream(mask_key(key, vector_task(task), party), vector, FIELD)
            FIELD.add_into(added, vector)
        self.total = SumTotal.of(task.round, PURPOSE, held.keys(), added)

    def read(self, party: PartyId, total: SumTotal | None = None) -> list[bool]:
        """As a client reads what it is sent."""
        opened = open_total(self.key, vector_task(self.task), total or self.total)
        return enough_holders(opened, self.held[party], self.own[party], self.task, self.key).tolist()

    def opened(self) -> FieldArray:
        """[entries per row, union]: what a client that holds nothing sees."""
        words = open_total(self.key, vector_task(self.task), self.total).astype("<u8", copy=False)
        return words[:-1].reshape(self.task.entries_per_row, self.task.union_size)

    def left(self, party: PartyId) -> FieldArray:
        """[entries per row, held]: what a holder sees of the others."""
        return FIELD.subtract(self.opened()[:, self.held[party]], self.own[party])

    def refuses(self, total: SumTotal) -> bool:
        """Whether every contributor does."""
        refused = 0
        for party in self.held:
            try:
                self.read(party, total)
            except PeerMisbehaved as problem:
                refused += str(problem) == REFUSED
        return refused == len(self.held)


def with_vector(total: SumTotal, vector: FieldArray) -> SumTotal:
    return SumTotal(total.purpose, total.of_round, total.contributors, vector)


Union = tuple[CountTask, dict[PartyId, set[int]]]


@st.composite
def unions(draw: st.DrawFn) -> Union:
    """Of two to six participants, of whom some may have dropped out."""
    participants = everyone(draw(st.integers(2, 6)))
    size, least = draw(st.integers(1, 12)), draw(st.integers(2, 5))
    contributors = draw(st.sets(st.sampled_from(participants), min_size=1))
    held = {party: draw(st.sets(st.integers(0, size - 1))) for party in sorted(contributors)}
    return task_of(size, participants, least=least), held


@given(unions())
@settings(deadline=None)
def test_any_sets_give_the_right_answers_to_every_contributor(union: Union) -> None:
    task, held = union
    count = Count(held, task)
    for party in held:
        assert count.read(party) == enough(held, list(held), party, task.least)


@given(unions(), st.data())
@settings(deadline=None)
def test_no_row_of_too_few_passes_whatever_weights_and_points_are_drawn(union: Union, data: st.DataObject) -> None:
    """Zeros and equal ones among them, which are too rare to meet otherwise."""
    task, held = union
    elements = st.sampled_from([0, 1, 2, MODULUS - 1]) | st.integers(0, MODULUS - 1)
    own = dict[PartyId, FieldArray]()
    for party, of_party in held.items():
        drawn = [data.draw(st.tuples(elements, elements)) for _ in of_party]
        powers = [[weight * pow(point, j, MODULUS) % MODULUS for weight, point in drawn] for j in range(7)]
        own[party] = np.array(powers[: task.entries_per_row], dtype="<u8").reshape(task.entries_per_row, len(drawn))
    count = Count(held, task, own=own)
    for party in held:
        true = enough(held, list(held), party, task.least)
        assert all(right or not found for found, right in zip(count.read(party), true, strict=True))


@pytest.mark.parametrize("least", [2, 3])
def test_a_large_union_gives_the_right_answers(least: int) -> None:
    clients, size = everyone(3), 100_000
    rng = np.random.default_rng(7)
    holds = rng.random((3, size)) < 0.4
    task = task_of(size, clients, least=least)
    count = Count({party: np.flatnonzero(holds[party - 1]).tolist() for party in clients}, task)
    for party in clients:
        true = (holds.sum(axis=0) >= least)[holds[party - 1]]
        assert 0 < true.sum() < len(true)
        assert np.array_equal(count.read(party), true)


def test_what_a_client_adds_for_a_row_are_a_weight_and_its_products_with_powers_of_a_point() -> None:
    task = replace(TASK, least=5)
    entries = own_entries(200, task)
    assert entries.shape == (7, 200)
    points = FIELD.multiply(entries[1], FIELD.inverse(entries[0]))
    for power in range(1, 7):
        assert np.array_equal(entries[power], FIELD.multiply(entries[power - 1], points))
    assert len(set(points.tolist()) | set(entries[0].tolist())) == 400
    assert not np.any(entries == own_entries(200, task))
    assert own_entries(200, TASK).shape == (1, 200)
    assert own_entries(0, task).shape == (7, 0)


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


def regular(matrices: Iterable[Matrix]) -> list[bool]:
    return holders._regular(np.array(matrices, dtype="<u8")).tolist()


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


@given(matrices())
@settings(deadline=None, max_examples=300)
def test_matrices_have_an_inverse_if_their_determinant_is_not_zero(drawn: list[Matrix]) -> None:
    given_them = np.array(drawn, dtype="<u8")
    before = given_them.copy()
    assert holders._regular(given_them).tolist() == [determinant(matrix) != 0 for matrix in drawn]
    assert np.array_equal(given_them, before)


def test_every_matrix_of_zeros_and_ones_is_judged_right() -> None:
    for size, number in ((1, 2), (2, 16), (3, 512)):
        bits = (np.arange(number)[:, None] >> np.arange(size * size)) & 1
        every: list[Matrix] = bits.reshape(number, size, size).tolist()
        expected = [determinant(matrix) != 0 for matrix in every]
        assert regular(every) == expected
        assert 0 < sum(expected) < number


def test_permutations_of_a_diagonal_are_regular_and_no_matrices_at_all_are_no_problem() -> None:
    """Every pivot but those of the diagonal itself has to be looked for."""
    for size in (1, 2, 3, 4):
        every = [
            [[7 * (column == place) for column in range(size)] for place in order]
            for order in permutations(range(size))
        ]
        assert regular(every) == [True] * len(every)
        assert holders._regular(np.zeros((0, size, size), dtype="<u8")).shape == (0,)


# --- what a client sees ---------------------------------------------------------------------------------------------


def looks_uniform(vector: FieldArray) -> bool:
    """All bytes but the highest, in which an element of the field has five bits."""
    return all(LOW < statistic < HIGH for statistic in chi_squares(vector)[:7])


def differ(first: FieldArray, second: FieldArray) -> bool:
    """Whether two samples are of different distributions (Kolmogorov and Smirnov): wrong once in 10^12 times."""
    both_sorted = np.sort(np.concatenate((first, second)))
    shares = [np.searchsorted(np.sort(sample), both_sorted, side="right") / len(sample) for sample in (first, second)]
    distance = float(np.abs(shares[0] - shares[1]).max())
    return distance > 3.77 * sqrt(1 / len(first) + 1 / len(second))


def left_with_others(number: int) -> FieldArray:
    """What client 1 sees of rows that so many others hold."""
    every = set(range(ENTRIES))
    parties = everyone(6)
    count = Count({party: every if party <= 1 + number else set() for party in parties}, task_of(ENTRIES, parties))
    return count.left(ONE)[0]


def test_a_lone_holder_sees_exactly_zeros() -> None:
    assert not left_with_others(0).any()


def test_what_a_holder_sees_is_uniform_and_the_same_for_one_other_and_for_many() -> None:
    one, two, five = (left_with_others(number) for number in (1, 2, 5))
    for seen in (one, two, five):
        assert looks_uniform(seen)
    assert not differ(one, five)
    assert not differ(one, two)
    assert not differ(two, five)


def test_without_random_weights_one_other_and_four_would_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """That the last test passes is due to the weights."""
    monkeypatch.setattr(PrimeField, "uniform", lambda field, shape: np.ones(shape, dtype="<u8"))
    one, four = left_with_others(1), left_with_others(4)
    assert set(one.tolist()) == {1}
    assert differ(one, four)
    assert not looks_uniform(one)


def test_small_weights_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    monkeypatch.setattr(PrimeField, "uniform", lambda field, shape: rng.integers(0, 1 << 60, shape, dtype="<u8"))
    one, four = left_with_others(1), left_with_others(4)
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


@pytest.mark.parametrize("least", [3, 4, 5])
def test_for_a_larger_bound_the_number_of_others_shows_where_they_are_too_few(least: int) -> None:
    """Stated: the rank of the power sums, to a holder and to one that holds nothing of the row."""
    parties = everyone(6)
    for others in range(least - 1):
        held = {party: set(range(20)) if party <= 1 + others else set[int]() for party in parties}
        count = Count(held, task_of(20, parties, least=least))
        for seen, number in ((count.left(ONE), others), (count.opened(), 1 + others)):
            for rank in range(1, least):
                hankel = seen[np.add.outer(np.arange(rank), np.arange(rank))]
                assert set(holders._regular(np.moveaxis(hankel, -1, 0)).tolist()) == {rank <= number}


# --- false totals ---------------------------------------------------------------------------------------------------


@given(unions(), st.data())
@settings(deadline=None)
def test_any_change_of_any_entry_is_refused(union: Union, data: st.DataObject) -> None:
    """Of a row, of the check, or of several at once; by one or by any amount."""
    count = Count(union[1], union[0])
    size = count.task.entries + 1
    amounts = st.sampled_from([1, MODULUS - 1]) | st.integers(1, MODULUS - 1)
    changes = data.draw(st.dictionaries(st.integers(0, size - 1), amounts, min_size=1, max_size=min(size, 8)))
    added: FieldArray = np.zeros(size, dtype="<u8")
    for place, amount in changes.items():
        added[place] = amount
    assert count.refuses(with_vector(count.total, FIELD.add(count.total.vector, added)))


@given(unions(), st.integers(0, MODULUS - 1).filter(lambda factor: factor != 1), st.integers(1, MODULUS - 1))
@settings(deadline=None)
def test_a_total_that_is_scaled_or_shifted_as_a_whole_is_refused(union: Union, factor: int, constant: int) -> None:
    """What passes the check of entries e passes that of k e; the masks keep the server from getting there."""
    count = Count(union[1], union[0])
    vector = count.total.vector
    scaled = FIELD.multiply(vector, np.full(len(vector), factor, dtype="<u8"))
    shifted = FIELD.add(vector, np.full(len(vector), constant, dtype="<u8"))
    for changed in (scaled, shifted, np.roll(vector, 1), np.zeros_like(vector)):
        assert count.refuses(with_vector(count.total, changed))


@given(unions(), st.data())
@settings(deadline=None)
def test_other_contributors_are_refused(union: Union, data: st.DataObject) -> None:
    task, held = union
    others = data.draw(st.sets(st.sampled_from(task.participants), min_size=1))
    count = Count(held, task)
    told = SumTotal.of(task.round, PURPOSE, others, count.total.vector)
    assert count.refuses(told) == (others != held.keys())


@pytest.mark.parametrize(
    ("task", "key"),
    [
        (replace(TASK, round=SECOND), KEY),
        (replace(TASK, union=b"another alignment"), KEY),
        (replace(TASK, participants=tuple(everyone(5))), KEY),
        (TASK, a_key(2)),
        (TASK, a_key(1, SessionId(bytes(16)))),
        (TASK, GroupKey(bytes([1]) * 32, SESSION, bytes(32))),
    ],
    ids=["round", "union", "participants", "key", "session", "commitment"],
)
def test_the_total_of_another_count_is_refused(task: CountTask, key: GroupKey) -> None:
    """Relabelled, so that it looks like the one that is due. The same is added for the same rows in both."""
    count = Count(HELD)
    other = Count(HELD, task, key, count.own)
    for party in CLIENTS:
        assert other.read(party) == count.read(party) == enough(HELD, CLIENTS, party, 2)
    assert count.refuses(SumTotal.of(TASK.round, PURPOSE, CLIENTS, other.total.vector))


@pytest.mark.parametrize("least", [3, 4])
def test_the_total_of_another_bound_is_refused(least: int) -> None:
    """As it is, or cut to the length that is due."""
    count, other = Count(HELD), Count(HELD, replace(TASK, least=least))
    with pytest.raises(PeerMisbehaved, match="another length or group"):
        count.read(ONE, other.total)
    vector = other.total.vector
    cut = np.concatenate((vector[:UNION], vector[-1:]))
    assert count.refuses(with_vector(count.total, cut))
    assert count.refuses(with_vector(count.total, vector[: UNION + 1].copy()))


LONE = {ONE: {0, 1}, TWO: {1}, THREE: {2}, FOUR: set[int]()}
"""Rows 0 and 2 have one holder each."""


@pytest.mark.parametrize("least", [2, 3])
def test_without_the_check_a_server_could_make_a_lone_holder_believe_in_others(
    monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    """It adds to the row's entries what other holders would; that takes no key."""

    def with_made_up_holders(count: Count) -> SumTotal:
        added: FieldArray = np.zeros(count.task.entries + 1, dtype="<u8")
        for _ in range(least - 1):
            made_up = own_entries(1, count.task)
            entries = added[:-1].reshape(count.task.entries_per_row, UNION)
            entries[:, :1] = FIELD.add(entries[:, :1], made_up)
        return with_vector(count.total, FIELD.add(count.total.vector, added))

    count = Count(LONE, replace(TASK, least=least))
    assert not count.read(ONE)[0]
    assert count.refuses(with_made_up_holders(count))
    monkeypatch.setattr(holders, "_checksum", lambda entries, task, key: np.uint64(0))
    count = Count(LONE, replace(TASK, least=least))
    assert not count.read(ONE)[0]
    assert count.read(ONE, with_made_up_holders(count))[0]


def test_who_knows_the_key_can_make_a_lone_holder_believe_in_others() -> None:
    """Stated as not covered: one client on the side of an active server is enough."""
    count = Count(LONE)
    lie = held_vector(rows({0}), own_entries(1, TASK), TASK, KEY)
    assert count.read(ONE) == [False, True]
    assert count.read(ONE, with_vector(count.total, FIELD.add(count.total.vector, lie))) == [True, True]


def test_two_counts_have_unrelated_factors() -> None:
    """The check of the same entries differs between rounds, alignments, keys and sessions."""
    held, own = rows({1, 2, 3}), own_entries(3, TASK)
    tasks = [TASK, replace(TASK, round=SECOND), replace(TASK, union=b"other")]
    keys = [KEY, a_key(2), a_key(1, SessionId(bytes(16)))]
    checks = {int(held_vector(held, own, task, key)[-1]) for task in tasks for key in keys}
    assert len(checks) == 9
    assert held_vector(held, own, TASK, KEY)[-1] == held_vector(held, own, TASK, KEY)[-1]


@pytest.mark.parametrize("place", range(5))
def test_every_entry_has_a_factor_of_its_own(place: int) -> None:
    task = task_of(5, CLIENTS)
    factors = [int(held_vector(rows({row}), np.ones((1, 1), "<u8"), task, KEY)[-1]) for row in range(5)]
    assert factors[place] > 1 << 32
    assert factors.count(factors[place]) == 1


Lie = Callable[[SumTotal], wire.Message]


class Lying(Conversation):
    """A server's conversation in which the totals it sends are what `lie` makes of them."""

    def __init__(self, straight: Conversation, lie: Lie) -> None:
        super().__init__(straight.transport, straight.session)
        self._lie = lie

    def broadcast(self, to: Collection[PartyId], message: wire.Message, round_id: RoundId) -> set[PartyId]:
        said = self._lie(message) if isinstance(message, SumTotal) and round_id == SECOND else message
        return super().broadcast(to, said, round_id)


def a_little_more(total: SumTotal) -> SumTotal:
    vector = total.vector.copy()
    vector[3] = (int(vector[3]) + 1) % MODULUS
    return with_vector(total, vector)


LIES: dict[str, tuple[Lie, type[ProtocolError], str]] = {
    "a little more": (a_little_more, PeerMisbehaved, REFUSED),
    "nothing but zeros": (lambda total: with_vector(total, np.zeros_like(total.vector)), PeerMisbehaved, REFUSED),
    "a contributor less": (
        lambda total: SumTotal.of(SECOND, PURPOSE, CLIENTS[:3], total.vector),
        PeerMisbehaved,
        "(not that of what the clients have sent|a count without this client)",
    ),
    "without anybody": (
        lambda total: SumTotal.of(SECOND, PURPOSE, [], total.vector),
        PeerMisbehaved,
        "a count without this client, which has contributed to it",
    ),
    "of another length": (
        lambda total: with_vector(total, total.vector[:-1].copy()),
        PeerMisbehaved,
        "another length or group",
    ),
    "of the ring": (
        lambda total: with_vector(total, np.full_like(total.vector, MODULUS)),
        PeerMisbehaved,
        "another length or group",
    ),
    "of another purpose": (
        lambda total: SumTotal.of(SECOND, "rows", CLIENTS, total.vector),
        PeerMisbehaved,
        "where another one was due",
    ),
    "of the last round": (
        lambda total: SumTotal.of(FIRST, PURPOSE, CLIENTS, total.vector),
        PeerMisbehaved,
        "where another one was due",
    ),
    "another message": (lambda total: ClearNames(["x"]), UnexpectedMessage, "the server sent ClearNames"),
}


@both
@pytest.mark.parametrize("lie", LIES)
def test_a_client_does_not_go_on_after_a_false_total(counting: Counting, lie: str) -> None:
    """The first round is honest, so that nothing else is at fault in the second."""
    make, problem, match = LIES[lie]
    later = task_of(UNION, CLIENTS, 2)

    def serve(conversation: Conversation) -> None:
        serving(counting, TASK, later)(Lying(conversation, make))

    def take_part(conversation: Conversation) -> None:
        with pytest.raises(problem, match=match):
            counting_in(counting, HELD, TASK, later)(conversation)

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))


@both
def test_the_total_of_an_earlier_round_is_refused_when_it_is_sent_again(counting: Counting) -> None:
    later, seen = task_of(UNION, CLIENTS, 2), list[SumTotal]()

    class Replaying(Conversation):
        def broadcast(self, to: Collection[PartyId], message: wire.Message, round_id: RoundId) -> set[PartyId]:
            if isinstance(message, SumTotal):
                seen.append(message)
                message = SumTotal.of(round_id, PURPOSE, CLIENTS, seen[0].vector)
            return super().broadcast(to, message, round_id)

    def serve(conversation: Conversation) -> None:
        serving(counting, TASK, later)(Replaying(conversation.transport, SESSION))

    def take_part(conversation: Conversation) -> None:
        with pytest.raises(PeerMisbehaved, match=REFUSED):
            counting_in(counting, HELD, TASK, later)(conversation)

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))
    assert len(seen) == 2


@both
def test_clients_that_have_another_alignment_cannot_count_together(counting: Counting) -> None:
    def serve(conversation: Conversation) -> None:
        with pytest.raises(SumAbandoned, match="cannot go on"):
            serving(counting, TASK)(conversation)

    def take_part(conversation: Conversation) -> None:
        other = conversation.transport.party == TWO
        task = replace(TASK, union=b"other") if other else TASK
        with pytest.raises(PeerMisbehaved, match=r"(other keys, terms or model|not signed by its pinned identity)"):
            counting_in(counting, HELD, task)(conversation)
        conversation.send(SERVER, Abandon(PURPOSE, "cannot go on"), FIRST)

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))


@both
def test_clients_that_have_another_bound_cannot_count_together(counting: Counting) -> None:
    def serve(conversation: Conversation) -> None:
        with pytest.raises(SumAbandoned, match="cannot go on"):
            serving(counting, TASK)(conversation)

    def take_part(conversation: Conversation) -> None:
        task = replace(TASK, least=3) if conversation.transport.party == TWO else TASK
        with pytest.raises(PeerMisbehaved, match=r"(other keys, terms or model|not signed by its pinned identity)"):
            counting_in(counting, HELD, task)(conversation)
        conversation.send(SERVER, Abandon(PURPOSE, "cannot go on"), FIRST)

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))


# --- what the server sees -------------------------------------------------------------------------------------------


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
            client.prepare(conversation, task, soon())
            held = np.arange(ENTRIES if task.round == RoundId(3) else 0)
            found.append(client.count(conversation, task, held, soon()))
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


def test_the_answers_are_kept_out_of_the_repr() -> None:
    assert repr(Holders(np.array([True]), frozenset({ONE}))) == "Holders(contributors=frozenset({1}))"


# --- who may open a sum of rows -------------------------------------------------------------------------------------


def holders_among(contributors: Collection[PartyId], answers: Collection[bool] = (True, True)) -> Holders:
    return Holders(np.array(answers, dtype=np.bool_), frozenset(contributors))


@pytest.mark.parametrize("answers", [[], [False], [True, True]], ids=["no rows", "a lone row", "rows of many"])
@given(contributors=st.sets(st.sampled_from(CLIENTS)), missing=st.sets(st.sampled_from(everyone(6))))
def test_a_sum_is_refused_if_any_counted_client_is_missing(
    answers: list[bool], contributors: set[PartyId], missing: set[PartyId]
) -> None:
    found = holders_among(contributors, answers)
    if gone := missing & contributors:
        with pytest.raises(
            SumAbandoned, match=f"^{len(gone)} clients fell silent after holders were counted: a row may"
        ):
            found.may_open(frozenset(missing))
    else:
        found.may_open(frozenset(missing))


# --- counted, then gone ---------------------------------------------------------------------------------------------

ROWS = "rows"
LAYOUT = layout_for(4)
ROW_TASK = sum_task_of(LAYOUT, CLIENTS, purpose=ROWS)
INPUTS = random_inputs(LAYOUT, CLIENTS)
TASK_OF_TWO = task_of(2, CLIENTS)


def rows_exact(opened: Total, parties: Collection[PartyId]) -> bool:
    added = LAYOUT.ring.zeros(LAYOUT.entries)
    for party in parties:
        LAYOUT.ring.add_into(added, LAYOUT.encode(INPUTS[party]).vector)
    expected = LAYOUT.decode(added)
    return np.array_equal(opened.real, expected.real) and np.array_equal(opened.counts, expected.counts)


def stopping_in(purpose: str, kind: type[wire.Message]) -> Bend:
    """Silent from one message of one sum on."""
    stop = stopping_at(kind)

    def bend(message: wire.Message, round_id: RoundId) -> wire.Message | wire.Frame:
        return stop(message, round_id) if getattr(message, "purpose", None) == purpose else message

    return bend


class Rows:
    """A round as it is meant to be: both sums prepared, holders counted, rows added up."""

    def __init__(
        self, kind: Kind, step: str, *, secret_rows: bool, late: bool, counted: Collection[PartyId] = CLIENTS
    ) -> None:
        """`step`: in which step of the rows client 4 falls silent, or of the count, if it is not `counted`.

        `late`: rows are prepared after the count.
        """
        self.kind, self.step, self.secret_rows, self.late, self.counted = kind, step, secret_rows, late, set(counted)
        self.silent_in = ROWS if FOUR in self.counted else PURPOSE
        self.said: dict[PartyId, list[wire.Message]] = {party: [] for party in CLIENTS}
        self.opened = set[PartyId]()
        """Who has read the sum of the rows, which was that of clients 1 to 3."""
        self.problems: dict[PartyId, str] = {}

    def run(self) -> None:
        parts = {SERVER: self._serve} | dict.fromkeys(CLIENTS, self._noted)
        converse(parts | {FOUR: bent(self._noted, stopping_in(self.silent_in, SAYS[self.step]))})

    def _noted(self, conversation: Conversation) -> None:
        def note(message: wire.Message, round_id: RoundId) -> wire.Message:
            self.said[conversation.transport.party].append(message)
            return message

        bent(self._take_part, note)(conversation)

    def _take_part(self, conversation: Conversation) -> None:
        me = conversation.transport.party
        vectors = self.kind.client(CLIENTS, me)
        vectors.setup(conversation, soon())
        key = group_key.join(conversation, vectors.session, soon())
        counting = SecretHolderClient(vectors, key)
        summing = SecretSumClient(vectors, key) if self.secret_rows else SecAggSumClient(vectors)
        counting.prepare(conversation, TASK_OF_TWO, soon())
        if not self.late:
            summing.prepare(conversation, ROW_TASK, soon())
        found = counting.count(conversation, TASK_OF_TWO, np.arange(2), soon())
        assert found.enough.tolist() == [True, True]
        assert found.contributors == self.counted
        if self.late:
            summing.prepare(conversation, ROW_TASK, soon())
        try:
            summing.contribute(conversation, ROW_TASK, INPUTS[me], soon(), found.may_open)
            if self.secret_rows:
                total = conversation.receive(SERVER, SumTotal, FIRST, soon(), ROWS)
                assert isinstance(summing, SecretSumClient)
                assert rows_exact(summing.open(ROW_TASK, total), CLIENTS[:3])
                self.opened.add(me)
        except SumAbandoned as problem:
            self.problems[me] = str(problem)

    def _serve(self, conversation: Conversation) -> None:
        vectors, silent = self.kind.server(CLIENTS), Silences()
        patience = Foreseen((f"{self.step}/{self.silent_in}", FOUR))
        vectors.setup(conversation, CLIENTS, patience, silent)
        group_key.serve(conversation, CLIENTS, patience, silent)
        counting = SecretHolderServer(vectors)
        summing = SecretSumServer(vectors) if self.secret_rows else SecAggSumServer(vectors)
        counting.prepare(conversation, TASK_OF_TWO, CLIENTS, patience, silent)
        if not self.late:
            summing.prepare(conversation, ROW_TASK, CLIENTS, patience, silent)
        counting.collect(conversation, TASK_OF_TWO, patience, silent, CLIENTS)
        if self.late:
            summing.prepare(conversation, ROW_TASK, self.counted, patience, silent)
        try:
            collected = summing.collect(conversation, ROW_TASK, patience, silent, self.counted)
            if isinstance(collected, Collected):
                assert rows_exact(collected.total, CLIENTS[:3])
                self.opened.add(SERVER)
            else:
                conversation.broadcast(CLIENTS[:3], collected, FIRST)
        except SumAbandoned as problem:
            self.problems[SERVER] = str(problem)
            conversation.broadcast(CLIENTS[:3], Abandon(ROWS, str(problem)), FIRST)
        assert silent.seen == [({FOUR}, f"{self.step}/{self.silent_in}")]


FALLING_SILENT = [("masked input", False), ("advertise keys", True), ("share keys", True), ("masked input", True)]
both_kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
masked_or_secret = pytest.mark.parametrize("secret_rows", [False, True], ids=["masked rows", "secret rows"])


@both_kinds
@masked_or_secret
@pytest.mark.parametrize(("step", "late"), FALLING_SILENT)
def test_rows_are_not_opened_if_a_counted_client_is_gone(kind: Kind, step: str, late: bool, secret_rows: bool) -> None:
    """Whether client 4 goes before it has shared keys for the rows or after; no client gives a share away."""
    a_round = Rows(kind, step, secret_rows=secret_rows, late=late)
    a_round.run()
    reason = "1 clients fell silent after holders were counted: a row may have too few of them left"
    assert reason in a_round.problems[SERVER]
    assert a_round.problems.keys() == {SERVER, ONE, TWO, THREE}
    assert any(a_round.problems[party] == reason for party in CLIENTS[:3])
    assert a_round.opened == set()
    for party in CLIENTS:
        answers = [message for message in a_round.said[party] if getattr(message, "purpose", None) == ROWS]
        assert not any(isinstance(message, UnmaskShares | SurvivorSignature) for message in answers)


@both_kinds
@masked_or_secret
@pytest.mark.parametrize("late", [False, True], ids=["keys shared for the rows", "no keys shared"])
def test_rows_are_added_up_without_a_participant_that_was_not_counted(
    kind: Kind, late: bool, secret_rows: bool
) -> None:
    """Client 4 falls silent before the count, whether or not it has shared keys for the rows by then."""
    a_round = Rows(kind, "masked input", secret_rows=secret_rows, late=late, counted=CLIENTS[:3])
    a_round.run()
    assert a_round.problems == {}
    assert a_round.opened == (set(CLIENTS[:3]) if secret_rows else {SERVER})


SPARSE = ThreatModel(0.0, 0.1, security_bits=1, correctness_bits=1)


def test_in_a_sparse_graph_one_that_is_gone_ends_the_sum_however_many_hold_its_rows() -> None:
    clients, gone = everyone(24), PartyId(7)
    parameters = parameters_for(24, 24, SPARSE, 2)
    assert not parameters.complete
    task = VectorTask(FIRST, ROWS, tuple(clients), FIELD, 2)
    may_open = holders_among(clients).may_open
    given_shares = list[wire.Message]()

    def take_part(conversation: Conversation) -> None:
        client = VectorClient(clients, SPARSE)
        client.setup(conversation, soon())
        client.prepare(conversation, task, soon())
        if conversation.transport.party != gone:
            with suppress(SumAbandoned):
                client.contribute(conversation, task, np.ones(2, "<u8"), soon(), may_open=may_open)

    def noting(conversation: Conversation) -> None:
        def note(message: wire.Message, round_id: RoundId) -> wire.Message:
            if isinstance(message, UnmaskShares):
                given_shares.append(message)
            return message

        bent(take_part, note)(conversation)

    def serve(conversation: Conversation) -> None:
        server = VectorServer(24, SPARSE)
        server.setup(conversation, clients, Foreseen(), Silences())
        server.prepare(conversation, task, clients, Foreseen(), Silences())
        with pytest.raises(SumAbandoned, match="1 clients fell silent after holders were counted"):
            server.collect(conversation, task, Foreseen(), Silences(), set(clients) - {gone})

    converse({SERVER: serve} | dict.fromkeys(clients, noting))
    # Whoever answers has not heard of the missing client: nobody gives a share of its mask key.
    assert len(given_shares) == len(clients) - 1 - parameters.degree
    assert not any(message.mask_key_shares for message in given_shares if isinstance(message, UnmaskShares))


@pytest.mark.parametrize("count", [60, 200])
def test_in_a_sparse_graph_no_sum_can_be_opened_without_the_neighbours_of_whoever_is_missing(count: int) -> None:
    """Even if the missing client has shared no keys, so that no mask key of it is needed: whoever is next to it on the
    ring has a self mask of which too few clients give shares."""
    clients = everyone(count)
    parameters = parameters_for(count, count, ThreatModel(0.0, 0.05), 2)
    assert not parameters.complete
    graph = MaskingGraph(tuple(clients), parameters.degree, bytes(32))
    neighbours = {party: set(graph.neighbours(party)) for party in clients}
    for missing in clients:
        answering = set(clients) - neighbours[missing] - {missing}
        fewest = min(len((neighbours[party] | {party}) & answering) for party in clients if party != missing)
        assert fewest < parameters.threshold
