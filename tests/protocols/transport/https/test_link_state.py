"""The state of a link without any connection: exactly once and in order whatever breaks, and what no liar may say."""

import contextlib
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.foundation.errors import DecodeError, PeerLost, PeerMisbehaved
from protocols.foundation.wire import MAX_FRAME_BYTES
from protocols.transport.https import pieces, polling
from protocols.transport.https.inbox import Inbox
from protocols.transport.https.limits import PIECE_BYTES, PIECE_OVERHEAD, LinkLimits
from protocols.transport.https.link import Link
from protocols.transport.https.outbox import Outbox

TIGHT = LinkLimits(unread_bytes=PIECE_BYTES + PIECE_OVERHEAD, window_bytes=PIECE_BYTES, window_frames=3)
SIZES = [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES + 5]
LIMIT = 2 * PIECE_BYTES + 5
STEPS = st.sampled_from(["post 0", "post 1", "carry 0", "carry 1", "cut", "cut and take", "take 0", "take 1", "tick"])


class Ends:
    """Two ends of a link and what is on its way between them."""

    def __init__(self) -> None:
        self.links = [Link(TIGHT), Link(TIGHT)]
        self.posted: list[list[bytes]] = [[], []]
        self.taken: list[list[bytes]] = [[], []]
        self.now = 0.0
        self.cut()

    def cut(self, taking: bool = False) -> None:
        """What is on its way is lost; on a new connection both say what they have. `taking`: frames meanwhile."""
        self.under_way = [deque[bytes](), deque[bytes]()]
        have = [link.greet() for link in self.links]
        while taking and (self.take(0) or self.take(1)):
            continue
        for end, link in enumerate(self.links):
            link.resume(*have[1 - end])

    def post(self, end: int, size: int) -> None:
        frame = bytes([len(self.posted[end]) % 256]) * size
        if not self.links[end].outbox.full:
            self.links[end].post(frame)
            self.posted[end].append(frame)

    def carry(self, end: int) -> bool:
        """One more piece is sent by this end, and one arrives at the other."""
        piece = self.links[end].next_piece(self.now)
        if piece is not None:
            self.under_way[end].append(piece)
        if not self.under_way[end]:
            return False
        arrived = pieces.decode(self.under_way[end].popleft())
        assert isinstance(arrived, pieces.Data | pieces.Ack)
        self.links[1 - end].take(arrived, self.now)
        assert self.links[1 - end].inbox.held <= LIMIT
        return True

    def take(self, end: int) -> bool:
        inbox = self.links[end].inbox
        frame = inbox.pop()
        if frame is not None:
            self.taken[end].append(bytes(frame))
            return True
        return inbox.allow(LIMIT)

    def finish(self) -> None:
        while True:
            self.now += 1.0
            if not any([self.carry(0), self.carry(1), self.take(0), self.take(1)]):
                return


@given(st.lists(st.tuples(STEPS, st.sampled_from(SIZES)), max_size=60))
def test_every_frame_arrives_once_and_in_order(steps: list[tuple[str, int]]) -> None:
    ends = Ends()
    for step, size in steps:
        match step.split():
            case ["post", end]:
                ends.post(int(end), size)
            case ["carry", end]:
                ends.carry(int(end))
            case ["take", end]:
                ends.take(int(end))
            case ["cut", *taking]:
                ends.cut(bool(taking))
            case _:
                ends.now += 1.0
    ends.finish()
    assert ends.taken == [ends.posted[1], ends.posted[0]]
    assert all(link.outbox.empty and link.drained for link in ends.links)
    assert all(link.inbox.held == 0 for link in ends.links)


def test_room_that_is_granted_while_a_peer_is_greeted_is_told_to_it() -> None:
    """Nothing else would tell it: a peer without room sends no piece that could be acknowledged."""
    ends = Ends()
    ends.post(0, 2 * PIECE_BYTES)
    while ends.carry(0):
        continue
    ends.cut(taking=True)  # room for the whole frame is granted after the greeting was written
    ends.finish()
    assert ends.taken[1] == ends.posted[0]


def begin(number: int, total: int, size: int | None = None) -> tuple[int, int | None, memoryview]:
    return number, total, memoryview(bytes(min(total, PIECE_BYTES) if size is None else size))


def more(number: int, size: int) -> tuple[int, int | None, memoryview]:
    return number, None, memoryview(bytes(size))


@pytest.mark.parametrize(
    ("sent", "what"),
    [
        ([begin(1, 5), begin(1, 5)], "sent piece 1 where 2 was due"),
        ([begin(1, 5), begin(3, 5)], "sent piece 3 where 2 was due"),
        ([begin(0, 5)], "sent piece 0 where 1 was due"),
        ([begin(1, PIECE_BYTES + 1), begin(2, 5)], "began a frame within another"),
        ([more(1, 5)], "went on with no frame"),
        ([begin(1, 5, 4)], "a piece of a wrong length"),
        ([begin(1, 5, 6)], "a piece of a wrong length"),
        ([begin(1, PIECE_BYTES + 1, PIECE_BYTES - 1)], "a piece of a wrong length"),
        ([begin(1, PIECE_BYTES + 1), more(2, 2)], "a piece of a wrong length"),
        ([begin(1, MAX_FRAME_BYTES + 1)], "announced a frame of 1,073,741,825 bytes"),
        ([begin(1, 2 << 30)], "announced a frame of 2,147,483,648 bytes"),
        ([begin(1, PIECE_BYTES), begin(2, 1)], "sent more than it had room for"),
        ([begin(1, 3 * PIECE_BYTES), more(2, PIECE_BYTES)], "sent more than it had room for"),
    ],
)
def test_pieces_that_no_honest_peer_sends(sent: list[tuple[int, int | None, memoryview]], what: str) -> None:
    inbox = Inbox(TIGHT)
    for piece in sent[:-1]:
        inbox.take(*piece)
    with pytest.raises(PeerMisbehaved, match=what):
        inbox.take(*sent[-1])


def test_nobody_acknowledges_what_was_not_sent_or_takes_back_a_word() -> None:
    outbox = Outbox(TIGHT)
    outbox.append(bytes(3 * PIECE_BYTES))
    outbox.acknowledge(0, 10 * PIECE_BYTES)
    assert [outbox.next_piece() is not None for _ in range(2)] == [True, True]
    outbox.acknowledge(1, 10 * PIECE_BYTES)
    for received, granted in ((3, 10 * PIECE_BYTES), (0, 10 * PIECE_BYTES), (1, 9 * PIECE_BYTES)):
        with pytest.raises(PeerMisbehaved):
            outbox.acknowledge(received, granted)
    with pytest.raises(PeerMisbehaved):
        outbox.resume(0, 10 * PIECE_BYTES)
    outbox.resume(1, 10 * PIECE_BYTES)  # what was sent beyond it did not arrive
    with pytest.raises(PeerMisbehaved):
        outbox.acknowledge(2, 10 * PIECE_BYTES)
    assert [outbox.next_piece() is not None for _ in range(3)] == [True, True, False]


def test_a_peer_is_granted_the_frame_that_is_waited_for_and_no_more() -> None:
    inbox, size = Inbox(TIGHT), 10 * PIECE_BYTES
    inbox.take(*begin(1, size))
    assert inbox.wanting
    assert not inbox.allow(size - 1)
    with pytest.raises(PeerMisbehaved):
        inbox.take(*more(2, PIECE_BYTES))
    assert inbox.allow(size)
    complete = [inbox.take(*more(number, PIECE_BYTES)) for number in range(2, 11)]
    assert complete == [False] * 8 + [True]
    with pytest.raises(PeerMisbehaved):
        inbox.take(*begin(11, 0))
    assert inbox.pop() == bytes(size)
    assert inbox.take(*begin(11, 0))


def test_a_frame_that_is_refused_takes_no_memory() -> None:
    inbox, size = Inbox(TIGHT), 10 * PIECE_BYTES
    inbox.take(*begin(1, size))
    assert inbox.arriving == size
    inbox.discard()
    for number in range(2, 11):
        assert inbox.held == 0
        inbox.take(*more(number, PIECE_BYTES))
    assert inbox.held == 0
    assert inbox.arriving is None
    assert inbox.take(*begin(11, 5))
    assert inbox.pop() == bytes(5)


def test_empty_frames_are_not_free() -> None:
    inbox = Inbox(TIGHT)
    most = TIGHT.unread_bytes // PIECE_OVERHEAD
    for number in range(1, most + 1):
        inbox.take(*begin(number, 0))
    with pytest.raises(PeerMisbehaved, match="room"):
        inbox.take(*begin(most + 1, 0))


def test_what_is_sent_after_the_end_of_a_link_is_forgotten() -> None:
    link = Link(TIGHT)
    link.greet()
    link.resume(0, 1 << 20)
    link.post(b"never read")
    link.end(PeerLost("gone"))
    link.end(PeerLost("a second reason"))
    assert link.next_piece(0.0) is None
    assert str(link.ended) == "gone"


WORDS = st.one_of(
    st.builds(pieces.ack, st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1)),
    st.builds(
        pieces.data,
        st.integers(0, 2**64 - 1),
        st.none() | st.integers(0, 2**64 - 1),
        st.binary(max_size=40).map(memoryview),
    ),
    st.builds(pieces.refused, st.sampled_from(pieces.Reason), st.text(max_size=300)),
    st.sampled_from([pieces.BEAT, pieces.END]),
)


@given(WORDS, st.integers(0, 60), st.binary(max_size=3))
def test_any_bytes_are_a_piece_or_refused(piece: bytes, at: int, put: bytes) -> None:
    pieces.decode(piece)
    for changed in (piece[:at], piece[:at] + put + piece[at + len(put) :], put, piece + put):
        try:
            found = pieces.decode(changed)
        except DecodeError:
            continue
        if isinstance(found, pieces.Refused):
            assert found.text.isprintable()


def test_a_refusal_cannot_steer_a_terminal() -> None:
    sent = bytes([pieces.Kind.REFUSED, pieces.Reason.MISBEHAVED]) + b"\x1b[31mred\nline\xff"
    assert pieces.decode(sent) == pieces.Refused(pieces.Reason.MISBEHAVED, "?[31mred?line?")


@given(st.lists(st.binary(max_size=9), max_size=9), st.integers(0, 100))
def test_bodies_of_long_polls(sent: list[bytes], cut: int) -> None:
    body = polling.joined(sent)
    assert polling.split(body) == sent
    with contextlib.suppress(polling.BadBody):
        found = polling.split(body[:cut])
        assert found == sent[: len(found)]
    for hostile in (b"\xff\xff\xff\xff", b"\x01\x00\x00", polling.joined([b""] * 65)):
        with pytest.raises(polling.BadBody):
            polling.split(hostile)


def test_limits_that_make_no_sense_are_refused() -> None:
    for wrong in ({"unread_bytes": PIECE_BYTES}, {"heartbeat_seconds": 30.0}, {"window_frames": 0}):
        with pytest.raises(ValueError, match="must"):
            LinkLimits(**wrong)  # type: ignore[arg-type]
