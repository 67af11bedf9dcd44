"""The plain count of holders: the same answers as its secure twin's, from counts in clear for the server."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import PeerMisbehaved, SumAbandoned
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.holders.interface import PURPOSE, Holders
from protocols.holders.plain import PlainHolderClient, PlainHolderServer
from protocols.session.client_session import ClientSession
from protocols.session.conversation import Conversation
from protocols.session.patience import Patience
from protocols.sums.plain import ClearInput
from protocols.sums.totals import SumTotal
from protocols.transport.in_process import InProcessNetwork
from tests.support.holder_conversations import PLAIN, SECRET, counted, enough, rows, some_rows, task_of
from tests.support.in_threads import SESSION, SHORT, at_once, at_server, converse
from tests.support.sum_conversations import FIRST, Foreseen, Silences, everyone

CLIENTS = everyone(3)
ONE, TWO, THREE = CLIENTS
UNION = 20
TASK = task_of(UNION, CLIENTS)
HELD = some_rows(CLIENTS, UNION, seed=5)
PAST = Deadline(0.0)


class Ends:
    """Every party's end in one thread; a client that counts reads an answer that is already there."""

    def __init__(self) -> None:
        network = InProcessNetwork(len(CLIENTS))
        self.talk = {party: Conversation(network.endpoint(party), SESSION) for party in (SERVER, *CLIENTS)}
        self.silent = Silences()

    def count(self, party: PartyId, answer: SumTotal, least: int = 2) -> Holders:
        self.talk[SERVER].send(party, answer, FIRST)
        return PlainHolderClient().count(
            ClientSession(self.talk[party], PAST), replace(TASK, least=least), rows(HELD[party])
        )

    def collect(self, server: PlainHolderServer, present: list[PartyId]) -> None:
        server.prepare(at_server(self.talk[SERVER], CLIENTS, Patience.fixed(SHORT), self.silent), TASK)
        server.collect(at_server(self.talk[SERVER], present, Patience.fixed(SHORT), self.silent), TASK)


def total_of(counts: list[int], dtype: str = "<u4") -> SumTotal:
    return SumTotal.of(FIRST, PURPOSE, CLIENTS, np.array(counts, dtype=dtype))


def test_the_server_sees_which_rows_a_client_holds() -> None:
    ends = Ends()
    ends.count(ONE, total_of([0] * UNION))
    seen = ends.talk[SERVER].receive(ONE, ClearInput, FIRST, PAST)
    assert seen.purpose == PURPOSE
    assert np.flatnonzero(seen.vector).tolist() == sorted(HELD[ONE])
    assert set(seen.vector.tolist()) == {0, 1}


@pytest.mark.parametrize("name", SECRET)
@pytest.mark.parametrize("least", [2, 3, 4])
def test_the_twins_give_the_same_answers(name: str, least: int) -> None:
    clients = everyone(4)
    held, task = some_rows(clients, 50, seed=6), task_of(50, clients, least=least)
    found = []
    for counting in (PLAIN, SECRET[name]):

        def take_part(conversation: Conversation, counting=counting) -> Holders:  # type: ignore[no-untyped-def]
            client = counting.client(conversation, clients)
            client.prepare(at_once(conversation), task)
            holders = client.count(at_once(conversation), task, rows(held[conversation.transport.party]))
            assert isinstance(holders, Holders)
            return holders

        def serve(conversation: Conversation, counting=counting) -> None:  # type: ignore[no-untyped-def]
            server = counting.server(conversation, clients, Foreseen(), Silences())
            server.prepare(at_server(conversation, clients, Foreseen(), Silences()), task)
            server.collect(at_server(conversation, clients, Foreseen(), Silences()), task)

        found.append(converse({SERVER: serve} | dict.fromkeys(clients, take_part)))
    plain, secure = found
    for party in clients:
        assert np.array_equal(plain[party].enough, secure[party].enough)
        assert plain[party].enough.dtype == secure[party].enough.dtype == np.bool_
        assert plain[party].contributors == secure[party].contributors == set(clients)
        assert plain[party].enough.tolist() == enough(held, clients, party, least)
        assert set(plain[party].enough.tolist()) == {False, True}


@pytest.mark.parametrize("least", [2, 3])
def test_a_client_looks_at_its_own_rows_and_at_its_own_bound(least: int) -> None:
    found = Ends().count(TWO, total_of(counted(HELD, UNION, CLIENTS)), least)
    assert found.enough.tolist() == enough(HELD, CLIENTS, TWO, least)
    assert found.enough.any()
    assert not found.enough.all()
    assert found.contributors == set(CLIENTS)


@pytest.mark.parametrize("held", [[0, 0], [-1], [UNION]], ids=["twice", "below", "beyond"])
def test_rows_that_are_no_positions_are_not_sent(held: list[int]) -> None:
    ends = Ends()
    with pytest.raises(ValueError, match="rows held are positions in the union"):
        PlainHolderClient().count(ClientSession(ends.talk[ONE], PAST), TASK, np.array(held, dtype=np.int64))
    assert ends.talk[ONE].transport.traffic.total("sent").messages == 0


@given(st.lists(st.sets(st.integers(0, UNION - 1)), min_size=3, max_size=3))
@settings(deadline=None, max_examples=30)
def test_the_counts_of_any_sets_are_right(sets: list[set[int]]) -> None:
    ends, held = Ends(), dict(zip(CLIENTS, sets, strict=True))
    for party in CLIENTS:
        vector = np.zeros(UNION, "<u4")
        vector[sorted(held[party])] = 1
        ends.talk[party].send(SERVER, ClearInput(PURPOSE, vector), FIRST)
    ends.collect(PlainHolderServer(), CLIENTS)
    for party in CLIENTS:
        total = ends.talk[party].receive(SERVER, SumTotal, FIRST, PAST, PURPOSE)
        assert total.vector.tolist() == counted(held, UNION, CLIENTS)
        assert (total.contributors, total.of_round) == (CLIENTS, FIRST)


@pytest.mark.parametrize("present", [[ONE, TWO], CLIENTS], ids=["known to be gone", "silent"])
def test_a_missing_client_is_not_counted_and_called_silent_only_if_it_was_awaited(present: list[PartyId]) -> None:
    ends = Ends()
    for party in (ONE, TWO):
        vector = np.zeros(UNION, "<u4")
        vector[sorted(HELD[party])] = 1
        ends.talk[party].send(SERVER, ClearInput(PURPOSE, vector), FIRST)
    ends.collect(PlainHolderServer(2), present)
    assert ends.silent.seen == ([({THREE}, f"input/{PURPOSE}")] if THREE in present else [])
    total = ends.talk[TWO].receive(SERVER, SumTotal, FIRST, PAST, PURPOSE)
    assert total.contributors == [ONE, TWO]
    assert total.vector.tolist() == counted(HELD, UNION, [ONE, TWO])


def test_the_twin_gives_up_where_the_secure_count_would() -> None:
    ends = Ends()
    ends.talk[ONE].send(SERVER, ClearInput(PURPOSE, np.zeros(UNION, "<u4")), FIRST)
    with pytest.raises(SumAbandoned, match="1 client has sent an input, 2 are needed"):
        ends.collect(PlainHolderServer(2), [ONE])


@pytest.mark.parametrize("entries", [0, UNION - 1, UNION + 1])
def test_a_total_of_another_length_is_refused(entries: int) -> None:
    with pytest.raises(PeerMisbehaved, match="a count of another length"):
        Ends().count(ONE, total_of([0] * entries))


def test_more_holders_than_clients_are_refused() -> None:
    assert Ends().count(ONE, total_of([len(CLIENTS)] * UNION), least=len(CLIENTS)).enough.all()
    with pytest.raises(SumAbandoned):
        Ends().count(ONE, total_of([len(CLIENTS) + 1] * UNION))
