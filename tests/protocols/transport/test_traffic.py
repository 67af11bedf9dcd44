"""Counting: per round, phase, peer and direction, exactly the serialised bytes."""

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import DeadlineExpired, PeerFailed, PeerLost
from protocols.foundation.identifiers import SERVER, SETUP, PartyId, RoundId, SessionId
from protocols.session.conversation import Conversation, Failed
from protocols.transport.in_process import InProcessNetwork
from protocols.transport.traffic import Traffic, TrafficCount, TrafficKey

ONE, TWO = PartyId(1), PartyId(2)
PAST = Deadline(0.0)
Sent = tuple[int, str, int, str, int]
sends = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["train", "input/rows"]),
        st.sampled_from([1, 2]),
        st.sampled_from(["down", "up"]),
        st.integers(0, 50),
    ),
    max_size=15,
)


@given(sends)
@settings(deadline=None)
def test_every_frame_is_counted_where_it_belongs_on_both_sides(sent: list[Sent]) -> None:
    network = InProcessNetwork(2)
    server, *clients = (network.endpoint(party) for party in network.parties)
    messages: Counter[tuple[int, str, int, str]] = Counter()
    sizes: Counter[tuple[int, str, int, str]] = Counter()
    for round_id, phase, number, way, size in sent:
        client = clients[number - 1]
        with server.phase(RoundId(round_id), phase), client.phase(RoundId(round_id), phase):
            if way == "down":
                server.send(client.party, bytes(size))
                client.receive([SERVER], PAST)
            else:
                client.send(SERVER, bytes(size))
                server.receive([client.party], PAST)
        messages[round_id, phase, number, way] += 1
        sizes[round_id, phase, number, way] += size
    assert len(server.traffic.counts) == len(messages)
    for round_id, phase, number, way in product(range(3), ["train", "input/rows"], [1, 2], ["down", "up"]):
        expected = TrafficCount(messages[round_id, phase, number, way], sizes[round_id, phase, number, way])
        at_server, at_client = server.traffic, clients[number - 1].traffic
        where = {"round_id": RoundId(round_id), "phase": phase}
        out, back = ("sent", "received") if way == "down" else ("received", "sent")
        assert at_server.total(out, peer=PartyId(number), **where) == expected  # type: ignore[arg-type]
        assert at_client.total(back, peer=SERVER, **where) == expected  # type: ignore[arg-type]
    assert server.traffic.total("sent").bytes == sum(size for *_, way, size in sent if way == "down")
    assert server.traffic.total("received").messages == sum(way == "up" for *_, way, _ in sent)


def test_totals_add_up_whatever_is_left_open() -> None:
    traffic = Traffic()
    traffic.add(TrafficKey(RoundId(1), "a", ONE, "sent"), 1)
    traffic.add(TrafficKey(RoundId(1), "a", ONE, "sent"), 2)
    traffic.add(TrafficKey(RoundId(1), "b", ONE, "sent"), 10)
    traffic.add(TrafficKey(RoundId(2), "a", ONE, "sent"), 100)
    traffic.add(TrafficKey(RoundId(1), "a", TWO, "sent"), 1000)
    traffic.add(TrafficKey(RoundId(1), "a", ONE, "received"), 10000)
    assert traffic.total("sent") == TrafficCount(5, 1113)
    assert traffic.total("received") == TrafficCount(1, 10000)
    assert traffic.total("sent", phase="a") == TrafficCount(4, 1103)
    assert traffic.total("sent", peer=ONE) == TrafficCount(4, 113)
    assert traffic.total("sent", round_id=RoundId(1)) == TrafficCount(4, 1013)
    assert traffic.total("sent", peer=ONE, round_id=RoundId(1), phase="a") == TrafficCount(2, 3)
    assert traffic.total("received", peer=TWO) == TrafficCount(0, 0)


def test_bytes_are_those_of_the_frame_header_included() -> None:
    network = InProcessNetwork(1)
    server, client = network.endpoint(SERVER), network.endpoint(ONE)
    session = SessionId(bytes(16))
    Conversation(client, session).send(SERVER, Failed("x"), SETUP)
    size = len(wire.encode(Failed("x"), session, SETUP))
    assert size > wire.HEADER.size
    assert client.traffic.total("sent", peer=SERVER, round_id=SETUP, phase="setup") == TrafficCount(1, size)
    with pytest.raises(PeerFailed):
        Conversation(server, session).receive_any(ONE, SETUP, PAST)
    assert server.traffic.total("received", peer=ONE) == TrafficCount(1, size)


def test_labels_nest_and_return_after_an_error() -> None:
    transport = InProcessNetwork(1).endpoint(SERVER)
    with transport.phase(RoundId(1), "outer"):
        with transport.phase(RoundId(2), "inner"):
            transport.send(ONE, b"1")
        with pytest.raises(DeadlineExpired), transport.phase(RoundId(3), "broken off"):
            transport.receive([ONE], PAST)
        transport.send(ONE, b"22")
    transport.send(ONE, b"333")
    sizes = {(key.round, key.phase): count.bytes for key, count in transport.traffic.counts.items()}
    assert sizes == {(2, "inner"): 1, (1, "outer"): 2, (0, "setup"): 3}


def test_what_was_not_sent_or_received_is_not_counted() -> None:
    transport = InProcessNetwork(1).endpoint(ONE)
    with pytest.raises(PeerLost):
        transport.send(TWO, b"x")
    with pytest.raises(DeadlineExpired):
        transport.receive([SERVER], PAST)
    assert not transport.traffic.counts
