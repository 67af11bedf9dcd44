"""Counting holders: right for every client, noise for the server, and false counts are refused; too few end a sum."""

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from group_keys import KINDS, Kind, a_key
from holder_conversations import SECRET, TWINS, Counting, Held, counted, rows, some_rows, task_of
from hypothesis import given, settings
from hypothesis import strategies as st
from in_threads import SESSION, Part, converse, soon
from sum_conversations import Bend, Foreseen, Silences, bent, everyone, layout_for, random_inputs, stopping_at
from sum_conversations import task_of as sum_task_of
from uniformity import ENTRIES, HIGH, LOW, chi_squares

from protocols import group_key, wire
from protocols.conversation import Abandon, Conversation
from protocols.errors import PeerMisbehaved, ProtocolError, SumAbandoned, UnexpectedMessage
from protocols.group_key import GroupKey
from protocols.holders import (
    PURPOSE,
    CountTask,
    Holders,
    SecretHolderClient,
    SecretHolderServer,
    counts_of,
    held_vector,
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
REFUSED = "the numbers of holders are not those that the clients have sent"
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


# --- counts ---------------------------------------------------------------------------------------------------------


@every_twin
@pytest.mark.parametrize(
    "held",
    [HELD, {party: set() for party in CLIENTS}, {party: set(range(UNION)) for party in CLIENTS}],
    ids=["some", "none", "all"],
)
def test_every_client_knows_how_many_hold_each_row(counting: Counting, held: Held) -> None:
    parts = {SERVER: serving(counting, TASK)} | dict.fromkeys(CLIENTS, counting_in(counting, held, TASK))
    results = converse(parts)
    for party in CLIENTS:
        (holders,) = results[party]
        assert holders.counts.tolist() == counted(held, UNION, CLIENTS)
        assert holders.counts.dtype == np.int64
        assert holders.contributors == set(CLIENTS)


@every_twin
def test_an_empty_union_is_counted_too(counting: Counting) -> None:
    task, held = task_of(0, CLIENTS), {party: set[int]() for party in CLIENTS}
    results = converse({SERVER: serving(counting, task)} | dict.fromkeys(CLIENTS, counting_in(counting, held, task)))
    assert all(results[party][0].counts.shape == (0,) for party in CLIENTS)


@pytest.mark.parametrize(("name", "step", "message"), EVERY_STEP)
def test_the_counts_are_those_of_the_survivors(name: str, step: str, message: type[wire.Message]) -> None:
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
        assert first.counts.tolist() == counted(HELD, UNION, contributors)
        assert second.counts.tolist() == counted(HELD, UNION, CLIENTS[:3])


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
        assert results[party][0].counts.tolist() == counted(HELD, UNION, CLIENTS[:3])


@pytest.mark.parametrize(
    "held", [[0, 0], [-1], [-2], [UNION], [3, 3, 4]], ids=["twice", "below", "further below", "beyond", "some twice"]
)
def test_rows_that_are_no_positions_are_not_sent(held: list[int]) -> None:
    """They would spoil the check, and every client would take the server for a liar."""
    with pytest.raises((ValueError, IndexError)):
        held_vector(np.array(held, dtype=np.int64), TASK, KEY)


# --- false counts ---------------------------------------------------------------------------------------------------


def masked(held: Held, task: CountTask = TASK, key: GroupKey = KEY) -> SumTotal:
    """What the server holds at the end of a count, put together in one place."""
    total: FieldArray = np.zeros(task.union_size + 1, dtype="<u8")
    for party, of_party in held.items():
        vector = held_vector(rows(of_party), task, key)
        add_keystream(mask_key(key, vector_task(task), party), vector, FIELD)
        FIELD.add_into(total, vector)
    return SumTotal.of(task.round, PURPOSE, held.keys(), total)


def read(total: SumTotal, task: CountTask = TASK, key: GroupKey = KEY) -> list[int]:
    """As a client reads what it is sent."""
    opened = open_total(key, vector_task(task), total)
    return counts_of(opened, task, key, len(total.contributors)).tolist()


def with_vector(total: SumTotal, vector: FieldArray) -> SumTotal:
    return SumTotal(total.purpose, total.of_round, total.contributors, vector)


@st.composite
def unions(draw: st.DrawFn) -> tuple[CountTask, dict[PartyId, set[int]]]:
    size = draw(st.integers(1, 12))
    sets = st.sets(st.integers(0, size - 1))
    contributors = draw(st.sets(st.sampled_from(CLIENTS), min_size=1))
    return task_of(size, CLIENTS), {party: draw(sets) for party in sorted(contributors)}


@given(unions())
@settings(deadline=None)
def test_the_counts_of_any_sets_are_right(union: tuple[CountTask, dict[PartyId, set[int]]]) -> None:
    task, held = union
    assert read(masked(held, task), task) == counted(held, task.union_size, list(held))


@given(unions(), st.data())
@settings(deadline=None)
def test_any_change_of_any_entry_is_refused(
    union: tuple[CountTask, dict[PartyId, set[int]]], data: st.DataObject
) -> None:
    """Of a count, of the check, or of several at once; by one, by any amount, or as if one more held the row."""
    task, held = union
    total = masked(held, task)
    size = task.union_size + 1
    amounts = st.sampled_from([1, MODULUS - 1]) | st.integers(1, MODULUS - 1)
    changes = data.draw(st.dictionaries(st.integers(0, size - 1), amounts, min_size=1, max_size=size))
    added: FieldArray = np.zeros(size, dtype="<u8")
    for place, amount in changes.items():
        added[place] = amount
    with pytest.raises(PeerMisbehaved, match=REFUSED):
        read(with_vector(total, FIELD.add(total.vector, added)), task)


@given(unions(), st.integers(0, MODULUS - 1).filter(lambda factor: factor != 1), st.integers(1, MODULUS - 1))
@settings(deadline=None)
def test_a_total_that_is_scaled_or_shifted_as_a_whole_is_refused(
    union: tuple[CountTask, dict[PartyId, set[int]]], factor: int, constant: int
) -> None:
    """What passes the check of counts c passes that of k c; the masks keep the server from getting there."""
    task, held = union
    total = masked(held, task)
    scaled = FIELD.multiply(total.vector, np.full(len(total.vector), factor, dtype="<u8"))
    shifted = FIELD.add(total.vector, np.full(len(total.vector), constant, dtype="<u8"))
    for vector in (scaled, shifted, np.roll(total.vector, 1)):
        with pytest.raises(PeerMisbehaved, match=REFUSED):
            read(with_vector(total, vector), task)


@given(unions(), st.sets(st.sampled_from(CLIENTS), min_size=1))
@settings(deadline=None)
def test_other_contributors_are_refused(union: tuple[CountTask, dict[PartyId, set[int]]], others: set[PartyId]) -> None:
    task, held = union
    told = SumTotal.of(task.round, PURPOSE, others, masked(held, task).vector)
    if others == held.keys():
        assert read(told, task) == counted(held, task.union_size, list(held))
    else:
        with pytest.raises(PeerMisbehaved, match=REFUSED):
            read(told, task)


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
    """Relabelled, so that it looks like the one that is due. The same rows are held in both."""
    other = masked(HELD, task, key)
    assert read(other, task, key) == counted(HELD, UNION, CLIENTS)
    with pytest.raises(PeerMisbehaved, match=REFUSED):
        read(SumTotal.of(TASK.round, PURPOSE, CLIENTS, other.vector))


def test_counts_above_the_number_of_contributors_are_refused_even_if_the_check_is_right() -> None:
    """As a client could bring about that lies about what it holds."""
    opened = held_vector(rows({0}), TASK, KEY)
    for times, right in ((1, True), (2, True), (3, False)):
        claimed = FIELD.multiply(opened, np.full(len(opened), times, dtype="<u8"))
        if right:
            assert counts_of(claimed, TASK, KEY, 2)[0] == times
        else:
            with pytest.raises(PeerMisbehaved, match=REFUSED):
                counts_of(claimed, TASK, KEY, 2)


def test_who_knows_the_key_can_name_any_counts() -> None:
    """Stated as not covered: one client on the side of an active server is enough."""
    total, lie = masked(HELD), held_vector(rows({5}), TASK, KEY)
    claimed = FIELD.add(total.vector, lie)
    true = counted(HELD, UNION, CLIENTS)
    true[5] += 1
    assert true[5] <= len(CLIENTS)
    assert read(with_vector(total, claimed)) == true


Lie = Callable[[SumTotal], wire.Message]


class Lying(Conversation):
    """A server's conversation in which the totals it sends are what `lie` makes of them."""

    def __init__(self, straight: Conversation, lie: Lie) -> None:
        super().__init__(straight.transport, straight.session)
        self._lie = lie

    def broadcast(self, to: Collection[PartyId], message: wire.Message, round_id: RoundId) -> set[PartyId]:
        said = self._lie(message) if isinstance(message, SumTotal) and round_id == SECOND else message
        return super().broadcast(to, said, round_id)


def one_more(total: SumTotal) -> SumTotal:
    vector = total.vector.copy()
    vector[3] = (int(vector[3]) + 1) % MODULUS
    return with_vector(total, vector)


LIES: dict[str, tuple[Lie, type[ProtocolError], str]] = {
    "one more holder": (one_more, PeerMisbehaved, REFUSED),
    "nothing but zeros": (lambda total: with_vector(total, np.zeros_like(total.vector)), PeerMisbehaved, REFUSED),
    "a contributor less": (
        lambda total: SumTotal.of(SECOND, PURPOSE, CLIENTS[:3], total.vector),
        PeerMisbehaved,
        "(not those that the clients have sent|a count without this client)",
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


# --- what the server sees -------------------------------------------------------------------------------------------


def looks_uniform(vector: FieldArray) -> bool:
    """All bytes but the highest, in which an element of the field has five bits."""
    return all(LOW < statistic < HIGH for statistic in chi_squares(vector)[:7])


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
    assert [set(holders.counts.tolist()) for holders in results[ONE]] == [{0}, {0}, {4}]
    messages = [wire.decode(record.frame, session=SESSION).message for record in read_transcript(tmp_path / "server")]
    totals = [message.vector for message in messages if isinstance(message, SumTotal)][:: len(CLIENTS)]
    uploads = [message.vector for message in messages if isinstance(message, MaskedInput)]
    assert (len(totals), len(uploads)) == (3, 12)
    differences = [FIELD.subtract(totals[0], other) for other in totals[1:]]
    for vector in (*totals, *uploads, *differences):
        assert looks_uniform(vector)
    assert not looks_uniform(np.arange(ENTRIES, dtype="<u8"))


def test_two_counts_have_unrelated_factors() -> None:
    """The check of the same rows differs between rounds, alignments, keys and sessions."""
    held = rows({1, 2, 3})
    tasks = [TASK, replace(TASK, round=SECOND), replace(TASK, union=b"other")]
    keys = [KEY, a_key(2), a_key(1, SessionId(bytes(16)))]
    checks = {int(held_vector(held, task, key)[-1]) for task in tasks for key in keys}
    assert len(checks) == 9
    assert held_vector(held, TASK, KEY)[-1] == held_vector(held, TASK, KEY)[-1]


def test_the_counts_are_kept_out_of_the_repr() -> None:
    assert repr(Holders(np.array([12345]), frozenset({ONE}))) == "Holders(contributors=frozenset({1}))"


# --- who may open a sum of rows -------------------------------------------------------------------------------------


def holders_of(*counts: int, contributors: Collection[PartyId] = CLIENTS) -> Holders:
    return Holders(np.array(counts, dtype=np.int64), frozenset(contributors))


def refuses(holders: Holders, least: int, missing: Collection[PartyId], all_of_them: bool = True) -> bool:
    try:
        holders.may_open(least)(frozenset(missing), all_of_them)
    except SumAbandoned:
        return True
    return False


def test_rows_with_enough_holders_may_be_added_up() -> None:
    assert holders_of(0, 1, 2, 3, 4).enough(2).tolist() == [False, False, True, True, True]


@pytest.mark.parametrize(
    ("counts", "least", "missing", "refused"),
    [
        ([4, 2, 3], 2, [], False),
        ([4, 2, 3], 2, [FOUR], True),
        ([4, 3, 3], 2, [FOUR], False),
        ([4, 3, 3], 2, [THREE, FOUR], True),
        ([4, 4], 2, [THREE, FOUR], False),
        ([4, 4], 2, [TWO, THREE, FOUR], True),
        ([4, 1, 0], 2, [FOUR], False),  # the rows of too few are not added up
        ([4, 2, 3], 2, [PartyId(5)], False),  # it was not counted
        ([2, 2], 1, [FOUR], False),
        ([1, 2], 1, [FOUR], True),
    ],
)
def test_a_sum_is_refused_if_a_row_may_be_left_with_too_few(
    counts: list[int], least: int, missing: list[PartyId], refused: bool
) -> None:
    assert refuses(holders_of(*counts), least, missing) == refused


def test_where_a_client_does_not_hear_of_all_any_missing_one_is_too_many() -> None:
    holders = holders_of(4, 4, contributors=CLIENTS)
    assert refuses(holders, 1, [FOUR], all_of_them=False)
    assert not refuses(holders, 1, [FOUR], all_of_them=True)
    assert not refuses(holders, 1, [], all_of_them=False)
    assert not refuses(holders, 1, [PartyId(5)], all_of_them=False)


@given(unions(), st.integers(1, 4), st.sets(st.sampled_from(everyone(5))))
@settings(deadline=None, max_examples=300)
def test_what_may_be_opened_leaves_enough_holders_of_every_row(
    union: tuple[CountTask, dict[PartyId, set[int]]], least: int, missing: set[PartyId]
) -> None:
    """And it is refused only if rows that the missing do hold could be left with too few."""
    task, held = union
    counts = counted(held, task.union_size, list(held))
    left = counted(held, task.union_size, [party for party in held if party not in missing])
    added = [row for row, count in enumerate(counts) if count >= least]
    refused = refuses(holders_of(*counts, contributors=held), least, missing)
    gone = len(missing & held.keys())
    if not refused:
        assert all(left[row] >= least for row in added)
    elif added:
        assert gone
        assert min(counts[row] for row in added) - gone < least


# --- counted, then gone ---------------------------------------------------------------------------------------------

ROWS = "rows"
LAYOUT = layout_for(4)
ROW_TASK = sum_task_of(LAYOUT, CLIENTS, purpose=ROWS)
INPUTS = random_inputs(LAYOUT, CLIENTS)
RARE = {ONE: {0, 1}, TWO: {0, 1}, THREE: {0}, FOUR: {0, 1}}
"""Row 1 has three holders."""
COMMON = {party: {0, 1} for party in CLIENTS}


def rows_exact(opened: Total, parties: Collection[PartyId]) -> bool:
    added = LAYOUT.ring.zeros(LAYOUT.entries)
    for party in parties:
        LAYOUT.ring.add_into(added, LAYOUT.encode(INPUTS[party]).vector)
    expected = LAYOUT.decode(added)
    return np.array_equal(opened.real, expected.real) and np.array_equal(opened.counts, expected.counts)


def stopping_in_rows(kind: type[wire.Message]) -> Bend:
    """Honest in the count; silent from one message of the sum of rows on."""
    stop = stopping_at(kind)

    def bend(message: wire.Message, round_id: RoundId) -> wire.Message | wire.Frame:
        return stop(message, round_id) if getattr(message, "purpose", None) == ROWS else message

    return bend


class Rows:
    """A round as it is meant to be: both sums prepared, holders counted, rows added up if enough hold them."""

    def __init__(self, kind: Kind, held: Held, least: int, step: str, *, secret_rows: bool, late: bool = False) -> None:
        """`step`: in which step of the rows client 4 falls silent. `late`: rows are prepared after the count."""
        self.kind, self.held, self.least, self.step, self.late = kind, held, least, step, late
        self.secret_rows = secret_rows
        self.said: dict[PartyId, list[wire.Message]] = {party: [] for party in CLIENTS}
        self.total: Total | None = None
        self.problems: dict[PartyId, str] = {}

    def run(self) -> None:
        parts = {SERVER: self._serve} | dict.fromkeys(CLIENTS, self._noted)
        converse(parts | {FOUR: bent(self._noted, stopping_in_rows(SAYS[self.step]))})

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
        holders = counting.count(conversation, TASK_OF_TWO, rows(self.held[me]), soon())
        assert holders.counts.tolist() == counted(self.held, 2, CLIENTS)
        if self.late:
            summing.prepare(conversation, ROW_TASK, soon())
        try:
            summing.contribute(conversation, ROW_TASK, INPUTS[me], soon(), holders.may_open(self.least))
            if self.secret_rows:
                total = conversation.receive(SERVER, SumTotal, FIRST, soon(), ROWS)
                assert isinstance(summing, SecretSumClient)
                assert rows_exact(summing.open(ROW_TASK, total), CLIENTS[:3])
        except SumAbandoned as problem:
            self.problems[me] = str(problem)

    def _serve(self, conversation: Conversation) -> None:
        vectors, silent = self.kind.server(CLIENTS), Silences()
        patience = Foreseen((f"{self.step}/{ROWS}", FOUR))
        vectors.setup(conversation, CLIENTS, patience, silent)
        group_key.serve(conversation, CLIENTS, patience, silent)
        counting = SecretHolderServer(vectors)
        summing = SecretSumServer(vectors) if self.secret_rows else SecAggSumServer(vectors)
        counting.prepare(conversation, TASK_OF_TWO, CLIENTS, patience, silent)
        if not self.late:
            summing.prepare(conversation, ROW_TASK, CLIENTS, patience, silent)
        counting.collect(conversation, TASK_OF_TWO, patience, silent, CLIENTS)
        if self.late:
            summing.prepare(conversation, ROW_TASK, CLIENTS, patience, silent)
        try:
            collected = summing.collect(conversation, ROW_TASK, patience, silent, CLIENTS)
            if isinstance(collected, Collected):
                self.total = collected.total
            else:
                conversation.broadcast(CLIENTS[:3], collected, FIRST)
        except SumAbandoned as problem:
            self.problems[SERVER] = str(problem)
            conversation.broadcast(CLIENTS[:3], Abandon(ROWS, str(problem)), FIRST)
        assert silent.seen == [({FOUR}, f"{self.step}/{ROWS}")]


TASK_OF_TWO = task_of(2, CLIENTS)
FALLING_SILENT = [("masked input", False), ("advertise keys", True), ("share keys", True), ("masked input", True)]
both_kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@both_kinds
@pytest.mark.parametrize("secret_rows", [False, True], ids=["masked rows", "secret rows"])
@pytest.mark.parametrize(("step", "late"), FALLING_SILENT)
def test_rows_are_not_opened_if_a_counted_client_is_gone_and_a_row_may_have_too_few(
    kind: Kind, step: str, late: bool, secret_rows: bool
) -> None:
    """Whether client 4 goes before it has shared keys for the rows or after; no client gives a share away."""
    a_round = Rows(kind, RARE, 3, step, secret_rows=secret_rows, late=late)
    a_round.run()
    reason = "1 clients fell silent after their rows were counted: a row may have fewer than 3 holders left"
    assert reason in a_round.problems[SERVER]
    assert a_round.problems.keys() == {SERVER, ONE, TWO, THREE}
    assert any(a_round.problems[party] == reason for party in CLIENTS[:3])
    assert a_round.total is None
    for party in CLIENTS:
        answers = [message for message in a_round.said[party] if getattr(message, "purpose", None) == ROWS]
        assert not any(isinstance(message, UnmaskShares | SurvivorSignature) for message in answers)


@both_kinds
@pytest.mark.parametrize("secret_rows", [False, True], ids=["masked rows", "secret rows"])
@pytest.mark.parametrize(("step", "late"), FALLING_SILENT)
def test_rows_with_enough_other_holders_are_added_up_without_the_one_that_is_gone(
    kind: Kind, step: str, late: bool, secret_rows: bool
) -> None:
    a_round = Rows(kind, COMMON, 3, step, secret_rows=secret_rows, late=late)
    a_round.run()
    assert a_round.problems == {}
    if not secret_rows:
        assert a_round.total is not None
        assert rows_exact(a_round.total, CLIENTS[:3])


SPARSE = ThreatModel(0.0, 0.1, security_bits=1, correctness_bits=1)


def test_in_a_sparse_graph_one_that_is_gone_ends_the_sum_however_many_hold_its_rows() -> None:
    clients, gone = everyone(24), PartyId(7)
    parameters = parameters_for(24, 24, SPARSE, 2)
    assert not parameters.complete
    task = VectorTask(FIRST, ROWS, tuple(clients), FIELD, 2)
    may_open = holders_of(24, 24, contributors=clients).may_open(2)
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
        with pytest.raises(SumAbandoned, match="1 clients fell silent after their rows were counted"):
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
