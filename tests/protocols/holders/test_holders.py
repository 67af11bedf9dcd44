"""Holders: each learns whether there are enough of them, over whichever clients are left."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pytest

from protocols.foundation import wire
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.holders.interface import PURPOSE, Holders
from protocols.holders.secret import held_vector, own_entries
from protocols.session.conversation import Conversation
from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import (
    UnmaskShares,
)
from tests.support.holder_conversations import SECRET, TWINS, Counting, Held, enough, task_of
from tests.support.holder_counts import (
    CLIENTS,
    FIRST,
    FOUR,
    HELD,
    KEY,
    ONE,
    SAYS,
    TASK,
    THREE,
    TWO,
    UNION,
    both,
    counting_in,
    every_twin,
    serving,
)
from tests.support.in_threads import at_once, at_server, converse
from tests.support.sum_conversations import Foreseen, Silences, bent, stopping_at

EVERY_STEP = [("plain", "input", ClearInput)] + [
    (name, step, message)
    for name in SECRET
    for step, message in SAYS.items()
    if (name, step) != ("semi-honest", "consistency check")
]


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
        client.prepare(at_once(conversation), task)
        held = np.array(named[conversation.transport.party], dtype=np.int64)
        return client.count(at_once(conversation), task, held).enough.tolist()

    results = converse({SERVER: serving(counting, task)} | dict.fromkeys(CLIENTS, take_part))
    assert results[ONE] == [True, True, False]
    assert results[FOUR] == [True, True, True]


@pytest.mark.parametrize(("name", "step", "message"), EVERY_STEP)
def test_the_answers_are_those_over_the_survivors(name: str, step: str, message: type[wire.Message]) -> None:
    """Client 4 drops out in one step. The next count has everybody else."""
    counting, silent, later = TWINS[name], Silences(), task_of(UNION, CLIENTS, 2)
    patience = Foreseen((f"{step}/{PURPOSE}", FOUR))
    honest = counting_in(counting, HELD, TASK, later)

    def serve(conversation: Conversation) -> None:
        server = counting.server(conversation, CLIENTS, patience, silent)
        server.prepare(at_server(conversation, CLIENTS, patience, silent), TASK)
        server.collect(at_server(conversation, CLIENTS, patience, silent), TASK)
        server.prepare(at_server(conversation, CLIENTS[:3], Foreseen(), silent), later)
        server.collect(at_server(conversation, CLIENTS[:3], Foreseen(), silent), later)

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
    """Client 4 drops out after its input. Whoever hears of it takes it out of those present."""
    present = set(CLIENTS)
    patience, honest = Foreseen((f"unmasking/{PURPOSE}", FOUR)), counting_in(counting, HELD, TASK)

    def lose(parties: Collection[PartyId], step: str) -> None:
        present.difference_update(parties)

    def serve(conversation: Conversation) -> list[int]:
        server = counting.server(conversation, CLIENTS, patience, lose)
        server.prepare(at_server(conversation, present, patience, lose), TASK)
        server.collect(at_server(conversation, present, patience, lose), TASK)
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
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), silent), TASK)
        server.collect(at_server(conversation, CLIENTS[:3], Foreseen(), silent), TASK)

    def gone(conversation: Conversation) -> None:
        counting.client(conversation, CLIENTS).prepare(at_once(conversation), TASK)

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
        client.prepare(at_once(conversation), TASK)
        sent = conversation.transport.traffic.total("sent").messages
        with pytest.raises(ValueError, match="each once"):
            client.count(at_once(conversation), TASK, np.array([1, 1], dtype=np.int64))
        assert conversation.transport.traffic.total("sent").messages == sent

    def serve(conversation: Conversation) -> None:
        server = counting.server(conversation, CLIENTS, Foreseen(), Silences())
        server.prepare(at_server(conversation, CLIENTS, Foreseen(), Silences()), TASK)

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
        assert [more - less for more, less in zip(large, small, strict=True)] == [100 * 8 * (least - 1) ** 2] * 2


def test_the_answers_are_kept_out_of_the_repr() -> None:
    assert repr(Holders(np.array([True]), frozenset({ONE}))) == "Holders(contributors=frozenset({1}))"
