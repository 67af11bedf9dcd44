"""Totals of the holders that a server has changed, made up or mixed up are refused."""

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.alignment.plain import ClearNames
from protocols.foundation import wire
from protocols.foundation.errors import PeerMisbehaved, PeersRefused, ProtocolError, SumAbandoned, UnexpectedMessage
from protocols.foundation.identifiers import SERVER, PartyId, RoundId, SessionId
from protocols.holders import secret as holders
from protocols.holders.interface import PURPOSE, CountTask
from protocols.holders.secret import held_vector, own_entries
from protocols.primitives.group import MODULUS, FieldArray
from protocols.session.conversation import Conversation
from protocols.session.group_key import GroupKey
from protocols.sums.totals import SumTotal
from tests.support.group_keys import a_key
from tests.support.holder_conversations import Counting, enough, rows, task_of
from tests.support.holder_counts import (
    CLIENTS,
    FIELD,
    FIRST,
    FOUR,
    HELD,
    KEY,
    ONE,
    REFUSED,
    SECOND,
    TASK,
    THREE,
    TWO,
    UNION,
    Count,
    Union,
    both,
    counting_in,
    serving,
    unions,
    with_vector,
)
from tests.support.in_threads import SESSION, converse
from tests.support.sum_conversations import everyone

DIFFERENT = r"(other keys, terms or rows|not signed by its pinned identity)"
"""What a client refuses a sum by, of whose terms it knows otherwise than those it should add up with."""


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
        with pytest.raises(SumAbandoned, match=DIFFERENT):
            serving(counting, TASK)(conversation)

    def take_part(conversation: Conversation) -> None:
        other = conversation.transport.party == TWO
        task = replace(TASK, union=b"other") if other else TASK
        with pytest.raises(PeersRefused, match=DIFFERENT):
            counting_in(counting, HELD, task)(conversation)

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))


@both
def test_clients_that_have_another_bound_cannot_count_together(counting: Counting) -> None:
    def serve(conversation: Conversation) -> None:
        with pytest.raises(SumAbandoned, match=DIFFERENT):
            serving(counting, TASK)(conversation)

    def take_part(conversation: Conversation) -> None:
        task = replace(TASK, least=3) if conversation.transport.party == TWO else TASK
        with pytest.raises(PeersRefused, match=DIFFERENT):
            counting_in(counting, HELD, task)(conversation)

    converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part))
