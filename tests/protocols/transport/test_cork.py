"""Frames in a cork: the same frames in the same order, and none is kept while its sender waits, works or ends."""

import contextlib
import threading
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import DeadlineExpired, PeerLost
from protocols.foundation.identifiers import SERVER, PartyId, RoundId
from protocols.foundation.wire import Frame
from protocols.transport.base import Transport
from protocols.transport.in_process import InProcessNetwork, InProcessTransport
from protocols.transport.packets import FRAME_BYTES, MOST_FRAMES
from protocols.transport.traffic import Direction
from tests.support.in_threads import soon

ONE, TWO, THREE = PartyId(1), PartyId(2), PartyId(3)
PAST = Deadline(0.0)


class Counting(InProcessTransport):
    """The server's end, which notes what left together, and of which some peers can no longer be reached."""

    def __init__(self, network: InProcessNetwork) -> None:
        super().__init__(network, SERVER, [ONE, TWO, THREE])
        self.left: list[tuple[PartyId, int]] = []
        self.gone: set[PartyId] = set()
        self.full: set[PartyId] = set()
        self.room = 1 << 16
        """So many frames are taken."""

    def busy(self, to: PartyId) -> bool:
        return to in self.full

    def _post(self, to: PartyId, frame: Frame) -> None:
        if to in self.gone or not self.room:
            raise PeerLost(f"client {to} can no longer be reached", to)
        self.room -= 1
        super()._post(to, frame)

    def _post_together(self, to: PartyId, frames: list[Frame]) -> None:
        self.left.append((to, len(frames)))
        super()._post_together(to, frames)


class Noting:
    """A tap that keeps what was sent."""

    def __init__(self) -> None:
        self.sent = list[bytes]()

    def write(self, direction: Direction, peer: PartyId, round_id: RoundId, phase: str, frame: Frame) -> None:
        self.sent += [bytes(frame)] if direction == "sent" else []

    def close(self) -> None:
        """Nothing to release."""


def ends() -> tuple[Counting, list[InProcessTransport]]:
    network = InProcessNetwork(3)
    return Counting(network), [network.endpoint(party) for party in (ONE, TWO, THREE)]


def heard(transport: Transport) -> list[bytes]:
    frames = list[bytes]()
    while True:
        try:
            frames.append(bytes(transport.receive(transport.peers, PAST)[1]))
        except DeadlineExpired:
            return frames


def test_frames_of_a_block_leave_together_at_its_end() -> None:
    server, (one, two, _) = ends()
    with server.corked():
        with server.corked():
            server.send(ONE, b"first")
            server.send(TWO, b"for two")
        server.send(ONE, b"second")
        assert (heard(one), heard(two), server.left) == ([], [], [])
    assert (heard(one), heard(two)) == ([b"first", b"second"], [b"for two"])
    assert server.left == [(ONE, 2), (TWO, 1)]


def test_without_a_block_nothing_is_kept() -> None:
    server, (one, *_) = ends()
    server.send(ONE, b"at once")
    assert heard(one) == [b"at once"]
    with server.corked():
        pass
    server.send(ONE, b"at once again")
    assert heard(one) == [b"at once again"]


@pytest.mark.parametrize(
    "wait",
    [
        lambda server: server.receive([TWO], PAST),
        lambda server: server.gather([TWO, THREE], PAST),
        lambda server: server.pause(PAST),
        lambda server: server.flush(PAST),
        lambda server: server.close(),
        lambda server: server.release(),
    ],
    ids=["receive", "gather", "pause", "flush", "close", "release"],
)
def test_whoever_waits_or_ends_lets_everything_leave_first(wait: Callable[[Counting], object]) -> None:
    server, (one, *_) = ends()
    with server.corked():
        server.send(ONE, b"first")
        server.send(ONE, b"second")
        with contextlib.suppress(DeadlineExpired):
            wait(server)
        assert heard(one) == [b"first", b"second"]


def test_nobody_waits_for_what_is_there_already() -> None:
    server, (one, two, _) = ends()
    two.send(SERVER, b"there")
    with server.corked():
        server.send(ONE, b"first")
        assert server.receive([TWO], soon()) == (TWO, b"there")
        server.send(ONE, b"second")
        assert heard(one) == []
    assert server.left == [(ONE, 2)]


def test_an_error_in_the_block_lets_everything_leave() -> None:
    server, (one, *_) = ends()

    def fail() -> None:
        with server.corked():
            server.send(ONE, b"said")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert heard(one) == [b"said"]


def test_nobody_waits_for_an_answer_to_what_is_kept() -> None:
    """Both sides keep what they send and then wait for each other, many times."""
    network = InProcessNetwork(1)
    server, client = network.endpoint(SERVER), network.endpoint(ONE)

    def answer() -> None:
        with client.corked():
            for _ in range(50):
                client.send(SERVER, client.receive([SERVER], soon())[1])

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    with server.corked():
        for number in range(50):
            server.send(ONE, b"%d" % number)
            assert server.receive([ONE], soon()) == (ONE, b"%d" % number)
    thread.join(10.0)
    assert not thread.is_alive()


@pytest.mark.parametrize("odd", [bytes(FRAME_BYTES + 1), b""], ids=["long", "empty"])
def test_a_frame_that_is_not_kept_comes_after_those_that_are(odd: bytes) -> None:
    server, (one, *_) = ends()
    with server.corked():
        for frame in (b"before", odd, b"after"):
            server.send(ONE, frame)
        assert heard(one) == [b"before", odd]
    assert heard(one) == [b"after"]


def test_no_more_is_kept_than_a_packet_has_room_for() -> None:
    server, (one, *_) = ends()
    with server.corked():
        for number in range(MOST_FRAMES + 1):
            server.send(ONE, b"%d" % number)
        assert len(heard(one)) == MOST_FRAMES + 1
        server.send(ONE, bytes(FRAME_BYTES - 1))
        assert heard(one) == []
        server.send(ONE, b"two")
        assert [len(frame) for frame in heard(one)] == [FRAME_BYTES - 1, 3]


ACTS = st.one_of(
    st.tuples(st.just("send"), st.sampled_from([ONE, TWO, THREE]), st.integers(0, 3)),
    st.tuples(st.sampled_from(["in", "out", "look", "release"]), st.just(ONE), st.just(0)),
)


@given(st.lists(ACTS, max_size=40))
@settings(deadline=None)
def test_everybody_hears_the_same_frames_in_the_same_order(acts: list[tuple[str, PartyId, int]]) -> None:
    """Whatever is sent, in whatever blocks, with waits in between."""
    server, clients = ends()
    sent: dict[PartyId, list[bytes]] = {ONE: [], TWO: [], THREE: []}
    got: dict[PartyId, list[bytes]] = {ONE: [], TWO: [], THREE: []}
    blocks = []
    for number, (act, to, size) in enumerate(acts):
        if act == "send":
            sent[to].append(bytes([number]) * [0, 1, 40_000, FRAME_BYTES + 1][size])
            server.send(to, sent[to][-1])
        elif act == "in":
            blocks.append(server.corked())
            blocks[-1].__enter__()
        elif act == "out" and blocks:
            blocks.pop().__exit__(None, None, None)
        elif act in ("look", "release"):
            heard(server) if act == "look" else server.release()
            for party, client in zip(got, clients, strict=True):
                got[party] += heard(client)
            assert got == sent
    while blocks:
        blocks.pop().__exit__(None, None, None)
    for party, client in zip(got, clients, strict=True):
        got[party] += heard(client)
    assert got == sent


def test_frames_are_counted_one_by_one_when_they_are_sent() -> None:
    server, (one, *_) = ends()
    with server.phase(RoundId(1), "a step"), server.corked():
        server.send(ONE, b"first")
        server.send(ONE, b"second")
    total = server.traffic.total("sent", round_id=RoundId(1), phase="a step")
    assert (total.messages, total.bytes) == (2, 11)
    heard(one)
    assert one.traffic.total("received").messages == 2


def test_a_peer_that_cannot_be_reached_is_told_when_it_is_awaited_or_sent_more() -> None:
    server, (one, _, three) = ends()
    server.gone.add(TWO)
    with server.corked():
        for party in (ONE, TWO, THREE):
            server.send(party, b"word")
    assert (heard(one), heard(three)) == ([b"word"], [b"word"])
    three.send(SERVER, b"answer")
    assert server.receive([ONE, THREE], PAST) == (THREE, b"answer")
    with pytest.raises(PeerLost, match="client 2") as lost:
        server.receive([ONE, TWO, THREE], PAST)
    assert lost.value.parties == (TWO,)
    with server.corked():
        server.send(TWO, b"again")
    with pytest.raises(PeerLost, match="client 2"):
        server.send(TWO, b"more")


def test_what_could_not_leave_comes_first_when_its_peer_takes_messages_again() -> None:
    """It is on record as sent: a peer that got later frames without it would have a receipt against its server."""
    server, (_, two, _) = ends()
    tap = Noting()
    server.attach(tap)
    server.gone.add(TWO)
    with server.corked():
        server.send(TWO, b"first")
        server.send(TWO, b"second")
    with pytest.raises(PeerLost, match="client 2"):
        server.receive([TWO], PAST)
    server.full, attempts = {TWO}, len(server.left)
    server.release()
    assert len(server.left) == attempts  # one that takes nothing is not waited for again
    server.gone, server.full = set(), set()
    with contextlib.suppress(PeerLost):
        server.send(TWO, b"third")
    server.send(TWO, b"fourth")
    assert heard(two) == tap.sent
    assert [frame for frame in tap.sent if frame != b"third"] == [b"first", b"second", b"fourth"]


def test_frames_that_have_left_do_not_leave_again() -> None:
    server, (one, *_) = ends()
    server.room = 1
    with server.corked():
        for frame in (b"first", b"second", b"third"):
            server.send(ONE, frame)
    assert heard(one) == [b"first"]
    server.room = 9
    server.release()
    assert heard(one) == [b"second", b"third"]


def test_those_that_take_messages_at_once_come_first() -> None:
    server, _ = ends()
    server.full = {ONE}
    with server.corked():
        for party in (ONE, TWO):
            server.send(party, b"word")
    assert [party for party, _ in server.left] == [TWO, ONE]


def test_a_stranger_is_refused_at_once() -> None:
    _, (one, *_) = ends()
    with one.corked(), pytest.raises(PeerLost, match="party 2"):
        one.send(TWO, b"x")
