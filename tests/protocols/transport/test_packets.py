"""Packets: back to the same frames, and nothing else is one."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocols.foundation import wire
from protocols.foundation.errors import DecodeError
from protocols.foundation.identifiers import RoundId, SessionId
from protocols.session.conversation import Abandon
from protocols.transport import packets

FRAMES = st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=packets.MOST_FRAMES)
SESSION = SessionId(bytes(16))


@given(FRAMES)
def test_a_packet_gives_its_frames_back(frames: list[bytes]) -> None:
    packet = packets.join(frames)
    assert packets.is_packet(packet)
    assert [bytes(frame) for frame in packets.split(packet)] == frames


def test_the_largest_packet() -> None:
    frames = [bytes([at]) * (packets.FRAME_BYTES // packets.MOST_FRAMES) for at in range(packets.MOST_FRAMES)]
    packet = packets.join(frames)
    assert len(packet) == packets.MOST_BYTES
    assert [bytes(frame) for frame in packets.split(packet)] == frames


@pytest.mark.parametrize("frames", [[], [b""], [b"x", b""], [b"x"] * 17, [bytes(packets.FRAME_BYTES), b"x"]])
def test_what_is_too_much_or_nothing_is_not_joined(frames: list[bytes]) -> None:
    with pytest.raises(ValueError, match=r"^no packet of "):
        packets.join(frames)


@given(FRAMES, st.data())
def test_a_packet_that_was_cut_or_lengthened_is_refused(frames: list[bytes], data: st.DataObject) -> None:
    packet = bytes(packets.join(frames))
    cut = data.draw(st.integers(0, len(packet) - 1))
    for changed in (packet[:cut], packet + b"x"):
        with pytest.raises(DecodeError):
            packets.split(changed)


@pytest.mark.parametrize(
    "message",
    [
        struct.pack("<BBH", packets.MARKER, 1, 0),
        struct.pack("<BBHI", packets.MARKER, 1, 1, 0),
        struct.pack("<BBHII", packets.MARKER, 1, 2, 1, 0) + b"x",
        struct.pack("<BBH", packets.MARKER, 1, 17) + struct.pack("<17I", *[1] * 17) + bytes(17),
        struct.pack("<BBHI", packets.MARKER, 1, 1, 1 << 31),
        struct.pack("<BBHII", packets.MARKER, 1, 2, 1 << 31, 1 << 31) + b"x",
        struct.pack("<BBHI", packets.MARKER, 2, 1, 1) + b"x",
        struct.pack("<BBHI", 1, 1, 1, 1) + b"x",
        struct.pack("<BBHI", packets.MARKER, 1, 1, 1 << 17) + bytes(1 << 17),
        b"",
    ],
    ids=["none", "empty", "one empty", "many", "false", "false sum", "version", "marker", "large", "nothing"],
)
def test_what_nobody_joins_is_refused(message: bytes) -> None:
    with pytest.raises(DecodeError):
        packets.split(message)


@given(st.binary(max_size=200))
def test_any_bytes_are_split_or_refused(message: bytes) -> None:
    try:
        frames = packets.split(message)
    except DecodeError:
        return
    assert packets.join(frames) == message


def test_no_message_looks_like_a_packet_and_one_inside_another_is_no_message() -> None:
    frame = wire.encode(Abandon("rows", "why"), SESSION, RoundId(1))
    assert not packets.is_packet(frame)
    [inner] = packets.split(packets.join([packets.join([frame])]))
    with pytest.raises(DecodeError, match=r"^version 183 instead of 1$"):
        wire.decode(inner, session=SESSION)
