"""The plain union: every client learns the size and its own places, consistent with everybody else's."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.alignment.interface import Positions, Union, list_digest
from protocols.alignment.plain import TAG_BYTES, ClearNames, ClearUnion, join, serve, tag_of
from protocols.foundation import wire
from protocols.foundation.errors import Aborted, PeerFailed, PeerMisbehaved
from protocols.foundation.identifiers import SERVER, SETUP, PartyId
from protocols.session.conversation import Abort, Conversation, Failed
from tests.support.in_threads import SESSION, at_once, at_server, converse, soon
from tests.support.sum_conversations import Foreseen, Silences

ONE, TWO, THREE = PartyId(1), PartyId(2), PartyId(3)


def union(*lists: Sequence[str]) -> tuple[Union, list[Positions]]:
    clients = {PartyId(number): names for number, names in enumerate(lists, start=1)}

    def take_part(conversation: Conversation) -> Positions:
        return join(at_once(conversation), clients[conversation.transport.party])

    silent = Silences()
    results = converse(
        {SERVER: lambda end: serve(at_server(end, clients, Foreseen(), silent))} | dict.fromkeys(clients, take_part)
    )
    assert silent.seen == []
    return results.pop(SERVER), [results[party] for party in clients]


def listed(*names: str) -> ClearUnion:
    return ClearUnion(np.frombuffer(b"".join(map(tag_of, names)), dtype=np.uint8).reshape(-1, TAG_BYTES))


def tags_digest(*names: str) -> bytes:
    return list_digest(listed(*sorted(names)).tags)


names = st.lists(st.text(max_size=4) | st.sampled_from(["a", "b", "c", "d"]), unique=True, max_size=6)


@given(st.lists(names, min_size=1, max_size=4).filter(any))
@settings(deadline=None, max_examples=40)
def test_it_is_the_union_of_the_sets(lists: list[list[str]]) -> None:
    whole, positions = union(*lists)
    size = len(set().union(*lists))
    assert whole == Union(size, tags_digest(*set().union(*lists)))
    place: dict[str, int] = {}
    for own, answer in zip(lists, positions, strict=True):
        assert (answer.union_size, answer.digest) == (whole.size, whole.digest)
        for name, position in zip(own, answer.own.tolist(), strict=True):
            assert place.setdefault(name, position) == position
    assert sorted(place.values()) == list(range(size))


def test_places_follow_the_order_of_the_names_sent() -> None:
    whole, (first, second) = union(["treats", "causes"], ["isa", "treats"])
    assert whole.size == 3
    assert first.own.tolist() == [2, 0]
    assert second.own.tolist() == [1, 2]


def test_a_client_without_names_takes_part() -> None:
    whole, (nothing, own) = union([], ["a"])
    assert (whole.size, nothing.union_size, nothing.own.size, own.own.tolist()) == (1, 1, 0, [0])


def test_a_union_of_nothing_is_refused() -> None:
    def serving(conversation: Conversation) -> None:
        with pytest.raises(PeerMisbehaved, match="no client has any name"):
            serve(at_server(conversation, [ONE, TWO], Foreseen(), Silences()))

    def sending(conversation: Conversation) -> None:
        conversation.send(SERVER, ClearNames([]), SETUP)

    converse({SERVER: serving, ONE: sending, TWO: sending})


def test_a_silent_client_is_named_and_the_union_is_that_of_the_others() -> None:
    silent = Silences()

    def serving(conversation: Conversation) -> Union:
        return serve(at_server(conversation, [ONE, TWO, THREE], Foreseen(("union", TWO)), silent))

    def joining(conversation: Conversation) -> list[int]:
        own = {ONE: ["treats"], THREE: ["causes", "treats"]}[conversation.transport.party]
        positions = join(at_once(conversation), own)
        assert positions.union_size == 2
        return [int(place) for place in positions.own]

    results = converse({SERVER: serving, ONE: joining, TWO: lambda conversation: None, THREE: joining})
    assert results == {SERVER: Union(2, tags_digest("causes", "treats")), ONE: [1], TWO: None, THREE: [0, 1]}
    assert silent.seen == [({TWO}, "union")]


def test_the_server_may_end_it() -> None:
    def joining(conversation: Conversation) -> None:
        with pytest.raises(Aborted, match="client 2 is lost"):
            join(at_once(conversation), ["a"])

    converse({SERVER: lambda end: end.send(ONE, Abort("client 2 is lost"), SETUP), ONE: joining})


def test_malformed_bytes_are_misbehaviour() -> None:
    def serving(conversation: Conversation) -> None:
        with pytest.raises(PeerMisbehaved, match="client 1 sent a malformed message"):
            serve(at_server(conversation, [ONE], Foreseen(), Silences()))

    converse({SERVER: serving, ONE: lambda end: end.transport.send(SERVER, b"noise")})


def test_a_client_that_fails_is_named() -> None:
    def serving(conversation: Conversation) -> None:
        with pytest.raises(PeerFailed, match="client 1: no data"):
            serve(at_server(conversation, [ONE], Foreseen(), Silences()))

    converse({SERVER: serving, ONE: lambda end: end.send(SERVER, Failed("no data"), SETUP)})


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (listed("a"), "lacks a name"),
        (listed(), "lacks a name"),
        (listed("c", "d"), "lacks a name"),
        (listed("a", "b", "a"), "names a tag twice"),
        (listed("a", "b", "c", "c"), "names a tag twice"),
    ],
    ids=["one missing", "empty", "others'", "one twice", "another's twice"],
)
def test_a_client_refuses_a_list_that_does_not_fit_its_names(answer: ClearUnion, problem: str) -> None:
    def serving(conversation: Conversation) -> None:
        conversation.receive(ONE, ClearNames, SETUP, soon())
        conversation.send(ONE, answer, SETUP)

    def joining(conversation: Conversation) -> None:
        with pytest.raises(PeerMisbehaved, match=problem):
            join(at_once(conversation), ["a", "b"])

    converse({SERVER: serving, ONE: joining})


def test_everybody_is_sent_the_same_list_whatever_its_own_names_are() -> None:
    own = {ONE: ["treats", "causes"], TWO: ["isa"], THREE: list[str]()}

    def taking(conversation: Conversation) -> bytes:
        conversation.send(SERVER, ClearNames(own[conversation.transport.party]), SETUP)
        _, frame = conversation.transport.receive([SERVER], soon())
        return bytes(frame)

    results = converse(
        {SERVER: lambda end: serve(at_server(end, own, Foreseen(), Silences()))} | dict.fromkeys(own, taking)
    )
    whole = results.pop(SERVER)
    assert len(set(results.values())) == 1
    received = wire.decode(results[ONE], session=SESSION).message
    assert isinstance(received, ClearUnion)
    assert np.array_equal(received.tags, listed("causes", "isa", "treats").tags)
    assert whole == Union(3, list_digest(received.tags))
    assert not any(name.encode() in results[ONE] for names in own.values() for name in names)


def test_clients_that_were_sent_different_lists_can_tell_by_the_digest() -> None:
    """Each finds all its names in its list, but what they would bind their sums to differs."""
    lists = {ONE: listed("a", "b", "c"), TWO: listed("b", "a", "c"), THREE: listed("a", "b", "c", "d")}

    def serving(conversation: Conversation) -> None:
        for party, answer in lists.items():
            conversation.receive(party, ClearNames, SETUP, soon())
            conversation.send(party, answer, SETUP)

    def joining(conversation: Conversation) -> bytes:
        return join(at_once(conversation), ["a", "b"]).digest

    results = converse({SERVER: serving} | dict.fromkeys(lists, joining))
    assert len({results[party] for party in lists}) == 3


@given(st.lists(st.text(max_size=6), unique=True, max_size=20))
@settings(deadline=None)
def test_every_name_has_a_tag_of_its_own(some: list[str]) -> None:
    tags = {tag_of(name) for name in some}
    assert len(tags) == len(some)
    assert all(len(tag) == TAG_BYTES for tag in tags)


def test_its_traffic_is_that_of_the_set_up() -> None:
    def joining(conversation: Conversation) -> tuple[int, int]:
        join(at_once(conversation), ["a"])
        traffic = conversation.transport.traffic
        return (
            traffic.total("sent", round_id=SETUP, phase="union").messages,
            traffic.total("received", round_id=SETUP, phase="union").messages,
        )

    assert converse({SERVER: lambda end: serve(at_server(end, [ONE], Foreseen(), Silences())), ONE: joining})[ONE] == (
        1,
        1,
    )
