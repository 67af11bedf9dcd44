"""Sums that the server cannot read: exact for every client."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation import wire
from protocols.foundation.identifiers import SERVER
from protocols.primitives.group import PrimeField, Ring
from protocols.primitives.prg import add_keystream
from protocols.session.conversation import Conversation
from protocols.session.group_key import SealedGroupKeys
from protocols.sums.secagg.messages import AdvertiseKeys, MaskedInput, ShareKeys, SurvivorSignature, UnmaskShares
from protocols.sums.secagg.vectors import VectorClient
from protocols.sums.secret.aggregation import (
    SecretSumClient,
    SecretSumServer,
    mask_key,
    open_total,
)
from protocols.sums.terms import SumTerms, VectorLayout
from protocols.sums.totals import SumTotal
from tests.support.group_keys import KINDS, Kind, a_key
from tests.support.in_threads import at_once, at_server, converse
from tests.support.secret_sums import (
    CLIENTS,
    FIRST,
    FOUR,
    INPUTS,
    LAYOUT,
    ONE,
    SECOND,
    TASK,
    THREE,
    TWO,
    both,
    both_rings,
    client_with,
    is_sum_of,
    masked,
    run,
)
from tests.support.sum_conversations import (
    PURPOSE,
    SEMI_HONEST,
    Foreseen,
    Silences,
    everyone,
    layout_for,
    random_inputs,
    step_of,
    task_of,
)

SAYS: dict[str, type[wire.Message]] = {
    "advertise keys": AdvertiseKeys,
    "share keys": ShareKeys,
    "masked input": MaskedInput,
    "consistency check": SurvivorSignature,
    "unmasking": UnmaskShares,
}
EVERY_STEP = [(name, step) for name in KINDS for step in SAYS if (name, step) != ("semi-honest", "consistency check")]


# --- what clients read ----------------------------------------------------------------------------------------------


@both
@both_rings
def test_every_client_reads_the_exact_sum(kind: Kind, ring_bits: int) -> None:
    layout = layout_for(4, ring_bits)
    tasks = [(task_of(layout, CLIENTS, number), random_inputs(layout, CLIENTS, number)) for number in (1, 2)]
    made = run(kind, tasks)
    assert made.silent.seen == []
    for total, (task, inputs) in zip(made.totals, tasks, strict=True):
        assert total.contributors == CLIENTS
        for client in made.clients.values():
            assert is_sum_of(client.open(task, total), task, inputs, CLIENTS)


@both_rings
@pytest.mark.parametrize(("name", "step"), EVERY_STEP)
def test_the_sum_is_exact_without_a_client_that_falls_silent_and_that_client_reads_it_too(
    name: str, step: str, ring_bits: int
) -> None:
    layout = layout_for(4, ring_bits)
    task, inputs = task_of(layout, CLIENTS), random_inputs(layout, CLIENTS, seed=3)
    for gone in (ONE, FOUR):
        made = run(KINDS[name], [(task, inputs)], Foreseen((step_of(step), gone)), (gone, SAYS[step]))
        assert made.silent.seen == [({gone}, step_of(step))]
        contributors = [party for party in CLIENTS if party != gone or step in ("consistency check", "unmasking")]
        (total,) = made.totals
        assert total.contributors == contributors
        for client in made.clients.values():
            assert is_sum_of(client.open(task, total), task, inputs, contributors)


@both
def test_a_client_that_was_not_drawn_or_away_reads_what_it_has_missed(kind: Kind) -> None:
    """Client 4 is no participant of the first sum, and one of the second that is not there. Three clients are too few
    for one that is corrupt and one that drops out, so nobody is declared corrupt."""
    kind = replace(kind, model=replace(kind.model, corrupt=0.0, dropout=0.25))
    others = [ONE, TWO, THREE]
    inputs = [random_inputs(LAYOUT, others, seed) for seed in (1, 2)]
    tasks = [task_of(LAYOUT, others), task_of(LAYOUT, CLIENTS, SECOND)]
    made = run(kind, list(zip(tasks, inputs, strict=True)))
    for task, total, given_in in zip(tasks, made.totals, inputs, strict=True):
        assert is_sum_of(made.clients[FOUR].open(task, total), task, given_in, others)


@both
def test_the_sums_go_on_if_the_client_that_was_to_draw_the_key_falls_silent(kind: Kind) -> None:
    made = run(kind, [(TASK, INPUTS)], Foreseen(("group key", ONE)), (ONE, SealedGroupKeys))
    assert made.silent.seen == [({ONE}, "group key")]
    for party in (TWO, THREE, FOUR):
        opened = made.clients[party].open(TASK, made.totals[0])
        assert is_sum_of(opened, TASK, INPUTS, [TWO, THREE, FOUR])


@both
def test_a_client_that_misses_the_setup_is_named_once_and_has_no_key(kind: Kind) -> None:
    """Nobody has a channel to it: whoever draws the key encrypts none for it."""
    silent, patience = Silences(), Foreseen(("advertise channel", ONE))

    def serve(conversation: Conversation) -> SumTotal:
        server = SecretSumServer(kind.server(CLIENTS))
        server.setup(at_server(conversation, CLIENTS, patience, silent))
        server.prepare(at_server(conversation, CLIENTS, patience, silent), TASK)
        return server.collect(at_server(conversation, None, patience, silent), TASK)

    def take_part(conversation: Conversation) -> SecretSumClient:
        client = SecretSumClient(kind.client(CLIENTS, conversation.transport.party))
        client.setup(at_once(conversation))
        client.prepare(at_once(conversation), TASK)
        client.contribute(at_once(conversation), TASK, INPUTS[conversation.transport.party])
        return client

    results = converse({SERVER: serve} | dict.fromkeys(CLIENTS, take_part) | {ONE: lambda conversation: None})
    assert silent.seen == [({ONE}, "advertise channel")]
    for party in (TWO, THREE, FOUR):
        assert is_sum_of(results[party].open(TASK, results[SERVER]), TASK, INPUTS, [TWO, THREE, FOUR])


@both
def test_the_server_holds_the_sum_plus_one_mask_of_each_contributor(kind: Kind) -> None:
    """The construction, computed from the clients' key; everything else in this file may rest on it."""
    made = run(kind, [(TASK, INPUTS)])
    expected = masked(made.key(), TASK, INPUTS)
    assert np.array_equal(made.totals[0].vector, expected.vector)
    assert made.totals[0].contributors == expected.contributors


@given(st.data())
@settings(deadline=None, max_examples=50)
def test_any_vectors_of_any_group_and_any_contributors_are_opened_exactly(data: st.DataObject) -> None:
    group = data.draw(st.sampled_from([Ring(32), Ring(64), PrimeField()]))
    participants = everyone(data.draw(st.integers(1, 6)))
    contributors = data.draw(st.sets(st.sampled_from(participants), min_size=1))
    length = data.draw(st.integers(0, 5))
    top = (1 << group.bits if isinstance(group, Ring) else (1 << 61) - 1) - 1
    entries = st.lists(st.integers(0, top), min_size=length, max_size=length)
    task = SumTerms(FIRST, PURPOSE, tuple(participants), VectorLayout(group, length), b"model")
    rows = [data.draw(entries) for _ in contributors]
    total = group.zeros(length)
    for party, row in zip(sorted(contributors), rows, strict=True):
        vector = np.array(row, dtype=group.dtype)
        add_keystream(mask_key(a_key(), task, party), vector, group)
        group.add_into(total, vector)
    before = total.copy()
    opened = open_total(a_key(), task, SumTotal.of(FIRST, PURPOSE, contributors, total))
    assert opened.tolist() == [sum(column) % (top + 1) for column in zip(*rows, strict=True)]
    assert np.array_equal(total, before)


def test_more_contributors_than_masks_are_removed_at_a_time() -> None:
    clients = everyone(130)
    layout = layout_for(130)
    task, inputs = task_of(layout, clients), random_inputs(layout, clients)
    assert is_sum_of(client_with(a_key()).open(task, masked(a_key(), task, inputs)), task, inputs, clients)


def test_without_a_key_there_is_nothing_to_contribute_or_to_open() -> None:
    client = SecretSumClient(VectorClient(CLIENTS, SEMI_HONEST))
    with pytest.raises(RuntimeError, match="setup"):
        client.open(TASK, masked(a_key(), TASK, INPUTS))
