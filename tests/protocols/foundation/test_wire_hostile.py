"""Bytes from a hostile or broken peer: a `DecodeError` and nothing else, before anything of the message is applied."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.foundation import wire
from protocols.foundation.errors import DecodeError
from protocols.foundation.identifiers import SessionId
from protocols.session.conversation import Failed
from tests.support.hostile_frames import BODY, ROUND, SESSION, WRITTEN, frame, refused
from tests.support.messages_of_protocols import STRATEGIES, any_message, same

# --- damage ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("message", "round_id", "written"), WRITTEN)
def test_every_truncation_is_refused(message: wire.Message, round_id: int, written: bytes) -> None:
    for end in range(len(written)):
        refused(written[:end])


@pytest.mark.parametrize(("message", "round_id", "written"), WRITTEN)
def test_every_truncation_is_refused_with_the_length_set_right(
    message: wire.Message, round_id: int, written: bytes
) -> None:
    body = written[wire.HEADER.size :]
    for end in range(len(body)):
        refused(frame(type(message), body[:end]))


@pytest.mark.parametrize(("message", "round_id", "written"), WRITTEN)
def test_every_flipped_bit_is_refused_or_changes_only_the_round_or_the_contents(
    message: wire.Message, round_id: int, written: bytes
) -> None:
    survived = 0
    for bit in range(8 * len(written)):
        survived += check_flip(message, round_id, written, bit)
    assert survived >= 32  # the bits of the round at least: nothing protects them


@given(any_message, st.data())
@settings(deadline=None, max_examples=150)
def test_flipped_bits_of_any_message(message: wire.Message, data: st.DataObject) -> None:
    encoded = bytes(wire.encode(message, SESSION, ROUND))
    for bit in data.draw(st.lists(st.integers(0, 8 * len(encoded) - 1), min_size=5, max_size=5)):
        check_flip(message, ROUND, encoded, bit)


def check_flip(message: wire.Message, round_id: int, encoded: bytes, bit: int) -> bool:
    damaged = bytearray(encoded)
    damaged[bit // 8] ^= 1 << (bit % 8)
    try:
        envelope = wire.decode(damaged, session=SESSION)
    except DecodeError:
        return False
    place = bit // 8
    assert envelope.session == SESSION
    assert type(envelope.message) is type(message)
    if 4 <= place < 8:
        assert envelope.round == round_id ^ (1 << (bit - 32))
        assert same(envelope.message, message)
    else:
        assert place >= wire.HEADER.size, "a damaged version, flag, kind, session or length decoded"
        assert envelope.round == round_id
    return True


@given(any_message, st.binary(min_size=1, max_size=20))
@settings(deadline=None, max_examples=100)
def test_appended_bytes_are_refused(message: wire.Message, more: bytes) -> None:
    encoded = bytes(wire.encode(message, SESSION, ROUND))
    refused(encoded + more, "announced")
    refused(frame(type(message), encoded[wire.HEADER.size :] + more))


@given(st.binary(max_size=200))
@settings(deadline=None, max_examples=200)
def test_noise_is_refused(noise: bytes) -> None:
    refused(noise)


@given(st.sampled_from(sorted(STRATEGIES, key=lambda kind: kind.__name__)), st.binary(max_size=60))
@settings(deadline=None, max_examples=300)
def test_noise_behind_a_good_header_is_refused_or_a_message(message_type: type[wire.Message], noise: bytes) -> None:
    try:
        envelope = wire.decode(frame(message_type, noise), session=SESSION)
    except DecodeError:
        return
    assert type(envelope.message) is message_type


# --- header ---------------------------------------------------------------------------------------------------------


def test_the_helper_makes_good_frames() -> None:
    assert wire.decode(frame(Failed, BODY), session=SESSION).message == Failed("reason")


@pytest.mark.parametrize("version", [0, 2, 255])
def test_another_version_is_refused(version: int) -> None:
    refused(frame(Failed, BODY, version=version), "version")


@pytest.mark.parametrize("flags", [1, 128, 255])
def test_a_flag_is_refused(flags: int) -> None:
    refused(frame(Failed, BODY, flags=flags), "flags")


# 0x0101 to 0x0103 were the messages of a masked sum that could lose nobody; numbers are not reused.
@pytest.mark.parametrize("kind", [0, 0x0006, 0x0009, 0x0101, 0x0102, 0x0103, 0x010F, 0x0121, 0x7777, 0xFFFF])
def test_an_unknown_kind_is_refused(kind: int) -> None:
    refused(frame(Failed, BODY, kind=kind), "unknown kind")


@given(st.binary(max_size=20).filter(lambda session: session != SESSION))
@settings(deadline=None)
def test_another_session_is_refused(session: bytes) -> None:
    with pytest.raises(DecodeError, match="another session"):
        wire.decode(frame(Failed, BODY), session=SessionId(session))


@pytest.mark.parametrize("length", [0, 7, 9, 2**31, 2**32, 2**63, 2**64 - 1])
def test_a_wrong_length_is_refused(length: int) -> None:
    assert length != len(BODY)
    refused(frame(Failed, BODY, length=length), "announced")


def test_frames_over_the_limit_are_refused() -> None:
    good = frame(Failed, BODY)
    assert wire.decode(good, session=SESSION, max_bytes=len(good)).message == Failed("reason")
    with pytest.raises(DecodeError, match="limit"):
        wire.decode(good, session=SESSION, max_bytes=len(good) - 1)
