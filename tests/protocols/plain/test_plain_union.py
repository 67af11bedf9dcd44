"""The plain union: every client learns the size and its own places, consistent with everybody else's."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_threads import converse, soon
from sum_conversations import Foreseen, Silences

from protocols.conversation import Abort, Conversation, Failed
from protocols.errors import Aborted, PeerFailed, PeerMisbehaved
from protocols.identifiers import SERVER, SETUP, PartyId
from protocols.plain.union import ClearNames, ClearPositions, join, serve
from protocols.unions import Positions

ONE, TWO, THREE = PartyId(1), PartyId(2), PartyId(3)


def union(*lists: Sequence[str]) -> tuple[int, list[Positions]]:
    clients = {PartyId(number): names for number, names in enumerate(lists, start=1)}

    def take_part(conversation: Conversation) -> Positions:
        return join(conversation, clients[conversation.transport.party], soon())

    silent = Silences()
    results = converse(
        {SERVER: lambda end: serve(end, clients, Foreseen(), silent)} | dict.fromkeys(clients, take_part)
    )
    assert silent.seen == []
    return results.pop(SERVER), [results[party] for party in clients]


names = st.lists(st.text(max_size=4) | st.sampled_from(["a", "b", "c", "d"]), unique=True, max_size=6)


@given(st.lists(names, min_size=1, max_size=4).filter(any))
@settings(deadline=None, max_examples=40)
def test_it_is_the_union_of_the_sets(lists: list[list[str]]) -> None:
    size, positions = union(*lists)
    assert size == len(set().union(*lists))
    place: dict[str, int] = {}
    for own, answer in zip(lists, positions, strict=True):
        assert answer.union_size == size
        for name, position in zip(own, answer.own.tolist(), strict=True):
            assert place.setdefault(name, position) == position
    assert sorted(place.values()) == list(range(size))


def test_places_follow_the_order_of_the_names_sent() -> None:
    size, (first, second) = union(["treats", "causes"], ["isa", "treats"])
    assert size == 3
    assert first.own.tolist() == [2, 0]
    assert second.own.tolist() == [1, 2]


def test_a_client_without_names_takes_part() -> None:
    size, (nothing, own) = union([], ["a"])
    assert (size, nothing.union_size, nothing.own.size, own.own.tolist()) == (1, 1, 0, [0])


def test_a_union_of_nothing_is_refused() -> None:
    def serving(conversation: Conversation) -> None:
        with pytest.raises(PeerMisbehaved, match="no client has any name"):
            serve(conversation, [ONE, TWO], Foreseen(), Silences())

    def sending(conversation: Conversation) -> None:
        conversation.send(SERVER, ClearNames([]), SETUP)

    converse({SERVER: serving, ONE: sending, TWO: sending})


def test_a_silent_client_is_named_and_the_union_is_that_of_the_others() -> None:
    silent = Silences()

    def serving(conversation: Conversation) -> int:
        return serve(conversation, [ONE, TWO, THREE], Foreseen(("union", TWO)), silent)

    def joining(conversation: Conversation) -> list[int]:
        own = {ONE: ["treats"], THREE: ["causes", "treats"]}[conversation.transport.party]
        positions = join(conversation, own, soon())
        assert positions.union_size == 2
        return [int(place) for place in positions.own]

    results = converse({SERVER: serving, ONE: joining, TWO: lambda conversation: None, THREE: joining})
    assert results == {SERVER: 2, ONE: [1], TWO: None, THREE: [0, 1]}
    assert silent.seen == [({TWO}, "union")]


def test_the_server_may_end_it() -> None:
    def joining(conversation: Conversation) -> None:
        with pytest.raises(Aborted, match="client 2 is lost"):
            join(conversation, ["a"], soon())

    converse({SERVER: lambda end: end.send(ONE, Abort("client 2 is lost"), SETUP), ONE: joining})


def test_malformed_bytes_are_misbehaviour() -> None:
    def serving(conversation: Conversation) -> None:
        with pytest.raises(PeerMisbehaved, match="client 1 sent a malformed message"):
            serve(conversation, [ONE], Foreseen(), Silences())

    converse({SERVER: serving, ONE: lambda end: end.transport.send(SERVER, b"noise")})


def test_a_client_that_fails_is_named() -> None:
    def serving(conversation: Conversation) -> None:
        with pytest.raises(PeerFailed, match="client 1: no data"):
            serve(conversation, [ONE], Foreseen(), Silences())

    converse({SERVER: serving, ONE: lambda end: end.send(SERVER, Failed("no data"), SETUP)})


@pytest.mark.parametrize(
    ("size", "own"), [(2, [0]), (2, [0, 0]), (2, [0, 2]), (2, [-1, 0]), (3, [0, 1, 2]), (-2, [0, 1])]
)
def test_a_client_refuses_places_that_do_not_fit_its_names(size: int, own: list[int]) -> None:
    def serving(conversation: Conversation) -> None:
        conversation.receive(ONE, ClearNames, SETUP, soon())
        conversation.send(ONE, ClearPositions(size, np.array(own, dtype=np.int64)), SETUP)

    def joining(conversation: Conversation) -> None:
        with pytest.raises(PeerMisbehaved, match="do not fit"):
            join(conversation, ["a", "b"], soon())

    converse({SERVER: serving, ONE: joining})


def test_its_traffic_is_that_of_the_set_up() -> None:
    def joining(conversation: Conversation) -> tuple[int, int]:
        join(conversation, ["a"], soon())
        traffic = conversation.transport.traffic
        return (
            traffic.total("sent", round_id=SETUP, phase="union").messages,
            traffic.total("received", round_id=SETUP, phase="union").messages,
        )

    assert converse({SERVER: lambda end: serve(end, [ONE], Foreseen(), Silences()), ONE: joining})[ONE] == (1, 1)
