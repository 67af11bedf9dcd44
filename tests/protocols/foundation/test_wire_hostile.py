"""Bytes from a hostile or broken peer: a `DecodeError` and nothing else, before anything of the message is applied."""

import struct
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocols.alignment.plain import TAG_BYTES, ClearNames, ClearUnion
from protocols.foundation import wire
from protocols.foundation.errors import DecodeError
from protocols.foundation.identifiers import RoundId, SessionId
from protocols.primitives.aead import OVERHEAD_BYTES
from protocols.primitives.prg import KEY_BYTES
from protocols.primitives.shamir import SHARE_BYTES
from protocols.session.conversation import Abandon, Abort, Back, Failed, LeaveOut
from protocols.session.group_key import DrawGroupKey, SealedGroupKey, SealedGroupKeys
from protocols.session.messages import AdvertiseChannel, ChannelDirectory
from protocols.sums.plain import ClearInput
from protocols.sums.secagg.messages import (
    PEERS_BYTES,
    SEALED_SHARES_BYTES,
    AdvertiseKeys,
    EncryptedShares,
    KeyDirectory,
    MaskedInput,
    ShareKeys,
    SignedSurvivors,
    Survivors,
    SurvivorSignature,
    UnmaskShares,
)
from protocols.sums.totals import SumTotal
from tests.support.messages_of_protocols import STRATEGIES, AnyArray, any_message, same, written_frames

SESSION = SessionId(bytes(range(16)))
ROUND = RoundId(7)
Ext = msgspec.msgpack.Ext
WRITTEN = [pytest.param(*case, id=type(case[0]).__name__) for case in written_frames()]


def frame(message_type: type[wire.Message], body: bytes, *, length: int | None = None, **header: int) -> bytes:
    """A frame around any bytes, with a correct header unless told otherwise."""
    return (
        wire.HEADER.pack(
            header.get("version", wire.VERSION),
            header.get("flags", 0),
            header.get("kind", wire._NUMBERS[message_type]),
            ROUND,
            SESSION,
            len(body) if length is None else length,
        )
        + body
    )


def fields(message_type: type[wire.Message], *values: Any) -> bytes:
    return frame(message_type, msgspec.msgpack.encode(list(values)))


def array(dtype: str, shape: tuple[int, ...], data: bytes = b"") -> Any:
    return Ext(1, dtype.encode() + bytes([len(shape)]) + struct.pack(f"<{len(shape)}Q", *shape) + data)


def refused(bytes_: bytes, match: str | None = None) -> None:
    with pytest.raises(DecodeError, match=match):
        wire.decode(bytes_, session=SESSION)


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

BODY = msgspec.msgpack.encode(["reason"])


def test_the_helper_makes_good_frames() -> None:
    assert wire.decode(frame(Failed, BODY), session=SESSION).message == Failed("reason")


@pytest.mark.parametrize("version", [0, 2, 255])
def test_another_version_is_refused(version: int) -> None:
    refused(frame(Failed, BODY, version=version), "version")


@pytest.mark.parametrize("flags", [1, 128, 255])
def test_a_flag_is_refused(flags: int) -> None:
    refused(frame(Failed, BODY, flags=flags), "flags")


# 0x0101 to 0x0103 were the messages of a masked sum that could lose nobody; numbers are not reused.
@pytest.mark.parametrize("kind", [0, 0x0006, 0x0101, 0x0102, 0x0103, 0x010F, 0x011D, 0x7777, 0xFFFF])
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


# --- body -----------------------------------------------------------------------------------------------------------

VALUES: dict[str, Any] = {
    "nothing": None,
    "bool": True,
    "int": 3,
    "large int": 2**64 - 1,
    "float": 1.5,
    "whole float": 2.0,
    "str": "x",
    "number as str": "3",
    "bytes": b"k" * 32,
    "list": ["x"],
    "list of numbers": [1, 2],
    "map": {1: b"k" * 32},
    "map with text keys": {"1": b"k" * 32},
    "map with text values": {1: "x"},
    "array": array("i8", (1,), bytes(8)),
    "time": Ext(-1, bytes(4)),
}
KINDS = {
    "str": {"str", "number as str"},
    "bytes": {"bytes"},
    "int": {"int", "large int"},
    "dict": {"map"},
    "list": {"list"},
}


def kind_of(annotation: Any) -> set[str]:
    if annotation == list[int]:
        return {"list of numbers"}
    name = getattr(annotation, "__origin__", annotation).__name__
    return KINDS.get(name, {"array"})


@pytest.mark.parametrize(("message", "round_id", "written"), WRITTEN)
def test_a_mistyped_field_is_refused(message: wire.Message, round_id: int, written: bytes) -> None:
    good = msgspec.msgpack.decode(written[wire.HEADER.size :])
    annotations = [field.type for field in msgspec.structs.fields(type(message))]
    for place, annotation in enumerate(annotations):
        for name, value in VALUES.items():
            if name in kind_of(annotation):
                continue
            refused(fields(type(message), *good[:place], value, *good[place + 1 :]))


@pytest.mark.parametrize(("message", "round_id", "written"), WRITTEN)
def test_missing_and_surplus_fields_are_refused(message: wire.Message, round_id: int, written: bytes) -> None:
    good = msgspec.msgpack.decode(written[wire.HEADER.size :])
    assert same(wire.decode(fields(type(message), *good), session=SESSION).message, message)
    for end in range(len(good)):
        refused(fields(type(message), *good[:end]), "at least length")
    for more in (None, 0, "x", *good[-1:]):
        refused(fields(type(message), *good, more), "at most length")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc0",
        msgspec.msgpack.encode({"reason": "x"}),
        msgspec.msgpack.encode("reason"),
        b"\x91\xa1\xff",  # text that is not UTF-8
        b"\x91\xc1",  # the one byte MessagePack never uses
        b"\x91" * 100_000,  # deeply nested
        BODY * 2,
    ],
    ids=["empty", "nil", "map", "text", "not UTF-8", "reserved byte", "nested", "twice"],
)
def test_a_body_that_is_not_the_list_of_fields_is_refused(body: bytes) -> None:
    refused(frame(Failed, body))


@pytest.mark.parametrize(
    ("message_type", "body"),
    [
        (Failed, b"\x91\xdb\xff\xff\xff\xff"),
        (Failed, b"\xdd\xff\xff\xff\xff\xa1x"),
        (AdvertiseChannel, b"\x92\xc6\xff\xff\xff\xff"),
        (ChannelDirectory, b"\x92\xdf\xff\xff\xff\xff"),
        (EncryptedShares, b"\x92\xa1p\xdf\xff\xff\xff\xff\x01"),
        (Survivors, b"\x92\xa1p\xdd\xff\xff\xff\xff\x01"),
        (ClearNames, b"\x91\xdd\xff\xff\xff\xff"),
        (ClearNames, b"\x91\xdd\xff\xff\xff\xff\xa1x"),
        (ClearUnion, b"\x91\xc9\xff\xff\xff\xff\x01"),
    ],
)
def test_huge_announced_lengths_are_refused(message_type: type[wire.Message], body: bytes) -> None:
    refused(frame(message_type, body))


@pytest.mark.parametrize(
    "shape",
    [
        (2**64 - 1,),
        (2**61 + 1,),  # times 8 bytes: 8 modulo 2^64
        (2**32, 2**32),  # 0 modulo 2^64
        (2**63, 2),
        (2**32, 2**31, 2, 1),
        (2**61, 8),
    ],
)
@pytest.mark.parametrize("data", [b"", bytes(8)])
def test_shapes_that_overflow_are_refused(shape: tuple[int, ...], data: bytes) -> None:
    refused(fields(AnyArray, array("i8", shape, data)), "do not match the shape")


@pytest.mark.parametrize("shape", [(0, 2**63), (2**64 - 1, 0), (0, 2**40, 2**40), (0, 2**62)])
def test_shapes_that_are_empty_and_huge_are_refused(shape: tuple[int, ...]) -> None:
    refused(fields(AnyArray, array("i8", shape)))


@pytest.mark.parametrize(
    "value",
    [
        Ext(1, b""),
        Ext(1, b"i8"),
        Ext(1, b"i8\x01"),
        Ext(1, b"i8\x01" + bytes(7)),
        Ext(1, b"i8\x02" + struct.pack("<Q", 0)),
        Ext(2, b"i8\x01" + struct.pack("<Q", 0)),
        Ext(0, b"i8\x01" + struct.pack("<Q", 0)),
        Ext(127, b""),
        array("i8", (1,)),
        array("i8", (1,), bytes(7)),
        array("i8", (1,), bytes(9)),
        array("i8", (), b""),
        array("i4", (1,), bytes(4)),
        array("f2", (1,), bytes(2)),
        array("O8", (1,), bytes(8)),
        array("|O", (1,), bytes(8)),
        array("I8", (1,), bytes(8)),
        array("i8", (1, 1, 1, 1, 1), bytes(8)),
        array("i8", (1,) * 31, bytes(8)),
    ],
)
def test_malformed_arrays_are_refused(value: Any) -> None:
    refused(fields(AnyArray, value))


KEY = b"k" * 32
SIGNATURE = b"s" * 64
SEALED = b"e" * SEALED_SHARES_BYTES
SHARE = b"h" * SHARE_BYTES
PEERS = b"d" * PEERS_BYTES
SEALED_KEY = b"g" * (KEY_BYTES + OVERHEAD_BYTES)
ONE_U8 = array("u8", (1,), bytes(8))
ONE_F8 = array("f8", (1,), bytes(8))
LONG = "p" * 65


@pytest.mark.parametrize(
    ("message_type", "values"),
    [
        (Failed, ["x" * 501]),
        (Abort, ["x" * 501]),
        (LeaveOut, [None]),
        (Back, [0]),
        (Abandon, [LONG, "x"]),
        (Abandon, ["p", "x" * 501]),
        (AdvertiseChannel, [KEY[:31], b""]),
        (AdvertiseChannel, [KEY + b"k", b""]),
        (AdvertiseChannel, [KEY, SIGNATURE[:63]]),
        (AdvertiseChannel, [KEY, SIGNATURE + b"s"]),
        (ChannelDirectory, [{1: KEY, 2: KEY[:31]}, {}]),
        (ChannelDirectory, [{2**64 - 1: b""}, {}]),
        (ChannelDirectory, [{0: KEY}, {}]),
        (ChannelDirectory, [{-1: KEY}, {}]),
        (ChannelDirectory, [{1: KEY}, {1: b"s"}]),
        (ChannelDirectory, [{1: KEY}, {0: b""}]),
        (AdvertiseKeys, [LONG, KEY, b"", b""]),
        (AdvertiseKeys, ["p", KEY[:31], b"", b""]),
        (AdvertiseKeys, ["p", KEY + b"k", b"", b""]),
        (AdvertiseKeys, ["p", KEY, b"state", b""]),
        (AdvertiseKeys, ["p", KEY, b"", b"s"]),
        (KeyDirectory, [LONG, {}, {}, {}]),
        (KeyDirectory, ["p", {1: KEY, 2: b""}, {1: b"", 2: b""}, {}]),
        (KeyDirectory, ["p", {0: KEY}, {0: b""}, {}]),
        (KeyDirectory, ["p", {1: KEY}, {1: b""}, {1: SIGNATURE[:63]}]),
        (KeyDirectory, ["p", {1: KEY}, {1: b"state"}, {}]),
        (KeyDirectory, ["p", {1: KEY}, {}, {}]),
        (KeyDirectory, ["p", {}, {1: KEY}, {}]),
        (KeyDirectory, ["p", {1: KEY}, {1: b""}, {-1: SIGNATURE}]),
        (ShareKeys, [LONG, {}, KEY]),
        (ShareKeys, ["p", {1: SEALED[:-1]}, KEY]),
        (ShareKeys, ["p", {1: SEALED + b"e"}, KEY]),
        (ShareKeys, ["p", {0: SEALED}, KEY]),
        (ShareKeys, ["p", {}, KEY[:31]]),
        (ShareKeys, ["p", {}, b""]),
        (EncryptedShares, [LONG, {}]),
        (EncryptedShares, ["p", {1: SEALED[:-1]}]),
        (EncryptedShares, ["p", {1: b""}]),
        (EncryptedShares, ["p", {0: SEALED}]),
        (MaskedInput, [LONG, ONE_U8, PEERS]),
        (MaskedInput, ["p", ONE_F8, PEERS]),
        (MaskedInput, ["p", array("i8", (1,), bytes(8)), PEERS]),
        (MaskedInput, ["p", array("u1", (1,), bytes(1)), PEERS]),
        (MaskedInput, ["p", array("u8", (), bytes(8)), PEERS]),
        (MaskedInput, ["p", array("u8", (1, 1), bytes(8)), PEERS]),
        (MaskedInput, ["p", ONE_U8]),
        (MaskedInput, ["p", ONE_U8, b""]),
        (MaskedInput, ["p", ONE_U8, PEERS[:31]]),
        (MaskedInput, ["p", ONE_U8, PEERS + b"d"]),
        (Survivors, [LONG, []]),
        (Survivors, ["p", [1.0]]),
        (Survivors, ["p", [True]]),
        (Survivors, ["p", {1: 1}]),
        (SurvivorSignature, [LONG, SIGNATURE]),
        (SurvivorSignature, ["p", b""]),
        (SurvivorSignature, ["p", SIGNATURE[:63]]),
        (SignedSurvivors, [LONG, {}]),
        (SignedSurvivors, ["p", {1: b""}]),
        (SignedSurvivors, ["p", {0: SIGNATURE}]),
        (UnmaskShares, [LONG, {}, {}]),
        (UnmaskShares, ["p", {1: SHARE[:-1]}, {}]),
        (UnmaskShares, ["p", {}, {1: SHARE + b"h"}]),
        (UnmaskShares, ["p", {0: SHARE}, {}]),
        (UnmaskShares, ["p", {}, {-1: SHARE}]),
        (UnmaskShares, ["p", {1: SHARE, 2: SHARE}, {2: SHARE, 3: SHARE}]),
        (DrawGroupKey, [0]),
        (SealedGroupKeys, [KEY[:31], {}]),
        (SealedGroupKeys, [KEY + b"k", {}]),
        (SealedGroupKeys, [KEY, {1: SEALED_KEY[:-1]}]),
        (SealedGroupKeys, [KEY, {1: SEALED_KEY, 2: SEALED_KEY + b"g"}]),
        (SealedGroupKeys, [KEY, {0: SEALED_KEY}]),
        (SealedGroupKeys, [KEY, {-1: SEALED_KEY}]),
        (SealedGroupKey, [0, KEY, SEALED_KEY]),
        (SealedGroupKey, [-1, KEY, SEALED_KEY]),
        (SealedGroupKey, [True, KEY, SEALED_KEY]),
        (SealedGroupKey, [1, KEY[:31], SEALED_KEY]),
        (SealedGroupKey, [1, KEY, SEALED_KEY[:-1]]),
        (SealedGroupKey, [1, KEY, KEY]),
        (SumTotal, [LONG, 1, [1], ONE_U8]),
        (SumTotal, ["p", -1, [1], ONE_U8]),
        (SumTotal, ["p", 1, [0, 1], ONE_U8]),
        (SumTotal, ["p", 1, [-1], ONE_U8]),
        (SumTotal, ["p", 1, [2, 1], ONE_U8]),
        (SumTotal, ["p", 1, [1, 1], ONE_U8]),
        (SumTotal, ["p", 1, [1.0], ONE_U8]),
        (SumTotal, ["p", 1, [1], ONE_F8]),
        (SumTotal, ["p", 1, [1], array("i8", (1,), bytes(8))]),
        (SumTotal, ["p", 1, [1], array("u8", (1, 1), bytes(8))]),
        (ClearInput, [LONG, ONE_U8]),
        (ClearInput, ["p", ONE_F8]),
        (ClearInput, ["p", array("i8", (1,), bytes(8))]),
        (ClearInput, ["p", array("u8", (1, 1), bytes(8))]),
        (ClearNames, [["a", "b", "a"]]),
        (ClearNames, [["a", 1]]),
        (ClearUnion, [ONE_U8]),
        (ClearUnion, [array("u1", (TAG_BYTES,), bytes(TAG_BYTES))]),
        (ClearUnion, [array("u1", (1, 1, TAG_BYTES), bytes(TAG_BYTES))]),
        (ClearUnion, [array("u1", (1, TAG_BYTES - 1), bytes(TAG_BYTES - 1))]),
        (ClearUnion, [array("u1", (1, TAG_BYTES + 1), bytes(TAG_BYTES + 1))]),
        (ClearUnion, [array("u1", (2, TAG_BYTES), bytes(TAG_BYTES))]),
        (ClearUnion, [array("u1", (0, 0), b"")]),
        (ClearUnion, [array("u4", (1, TAG_BYTES), bytes(4 * TAG_BYTES))]),
        (ClearUnion, [array("i8", (1, TAG_BYTES), bytes(8 * TAG_BYTES))]),
    ],
)
def test_fields_out_of_their_range_are_refused(message_type: type[wire.Message], values: list[Any]) -> None:
    refused(fields(message_type, *values))


# --- maps -----------------------------------------------------------------------------------------------------------


def short_bytes(value: bytes) -> bytes:
    """MessagePack's bin 8."""
    return b"\xc4" + bytes([len(value)]) + value


def short_map(*entries: tuple[bytes, bytes]) -> bytes:
    """MessagePack's fixmap, of keys that are already packed."""
    return bytes([0x80 | len(entries)]) + b"".join(key + short_bytes(value) for key, value in entries)


Around = tuple[bytes, bytes]
MAPS: list[tuple[type[wire.Message], str, Around, int]] = [
    (ChannelDirectory, "channel_keys", (b"\x92", b"\x80"), 32),
    (ChannelDirectory, "signatures", (b"\x92\x80", b""), 64),
    (KeyDirectory, "mask_keys", (b"\x94\xa1p", b"\x80"), 32),
    (KeyDirectory, "states", (b"\x94\xa1p", b"\x80"), 32),
    (KeyDirectory, "signatures", (b"\x94\xa1p\x80\x80", b""), 64),
    (ShareKeys, "sealed", (b"\x93\xa1p", short_bytes(KEY)), SEALED_SHARES_BYTES),
    (EncryptedShares, "sealed", (b"\x92\xa1p", b""), SEALED_SHARES_BYTES),
    (SignedSurvivors, "signatures", (b"\x92\xa1p", b""), 64),
    (UnmaskShares, "mask_key_shares", (b"\x93\xa1p", b"\x80"), SHARE_BYTES),
    (UnmaskShares, "seed_shares", (b"\x93\xa1p\x80", b""), SHARE_BYTES),
    (SealedGroupKeys, "sealed", (b"\x92" + short_bytes(KEY), b""), KEY_BYTES + OVERHEAD_BYTES),
]
"""Every map of every message: its field, what stands before and behind it in the body, the length of its entries."""
every_map = pytest.mark.parametrize(
    ("message_type", "field", "around", "size"),
    [pytest.param(*case, id=f"{case[0].__name__}.{case[1]}") for case in MAPS],
)


def with_map(message_type: type[wire.Message], around: Around, packed: bytes) -> bytes:
    if message_type is KeyDirectory and around[1]:  # keys and states are of the same clients
        packed += packed
    return frame(message_type, around[0] + packed + around[1])


def test_every_map_of_every_message_is_tried() -> None:
    annotated = {
        (kind, field.name)
        for kind in STRATEGIES
        for field in msgspec.structs.fields(kind)
        if "dict" in str(field.type).lower() or "mapping" in str(field.type).lower()
    }
    assert annotated == {(kind, field) for kind, field, *_ in MAPS}


@every_map
def test_a_map_that_names_a_key_twice_is_refused(
    message_type: type[wire.Message], field: str, around: Around, size: int
) -> None:
    """With two values, of which a lenient reader would keep one, and with the same value; next to each other or not."""
    one, other = b"a" * size, b"b" * size
    good = with_map(message_type, around, short_map((b"\x01", one), (b"\x02", other)))
    assert getattr(wire.decode(good, session=SESSION).message, field) == {1: one, 2: other}
    for entries in (
        [(b"\x01", one), (b"\x01", other)],
        [(b"\x01", one), (b"\x01", one)],
        [(b"\x01", one), (b"\x02", other), (b"\x01", other)],
        [(b"\x01", one), (b"\xcc\x01", other)],
    ):
        refused(with_map(message_type, around, short_map(*entries)), f"{message_type.__name__}: not in canonical form")


@pytest.mark.parametrize(
    "key",
    # MessagePack's unsigned and signed integers of 1, 2, 4 and 8 bytes.
    [bytes([first + power]) + (1).to_bytes(2**power, "big") for first in (0xCC, 0xD0) for power in range(4)],
    ids=bytes.hex,
)
@every_map
def test_a_key_in_more_bytes_than_it_needs_is_refused(
    message_type: type[wire.Message], field: str, around: Around, size: int, key: bytes
) -> None:
    value = b"a" * size
    assert msgspec.msgpack.decode(short_map((key, value))) == {1: value}
    refused(with_map(message_type, around, short_map((key, value))), "not in canonical form")


@every_map
def test_a_map_or_an_entry_with_a_longer_head_than_it_needs_is_refused(
    message_type: type[wire.Message], field: str, around: Around, size: int
) -> None:
    value = b"a" * size
    entry, small = b"\x01" + short_bytes(value), short_map((b"\x01", value))
    long_entry = b"\x81\x01\xc5\0" + bytes([size]) + value
    for packed in (b"\xde\0\x01" + entry, b"\xdf\0\0\0\x01" + entry, long_entry):
        assert msgspec.msgpack.decode(packed) == msgspec.msgpack.decode(small)
        refused(with_map(message_type, around, packed), "not in canonical form")


@every_map
def test_the_order_and_the_size_of_the_keys_are_free(
    message_type: type[wire.Message], field: str, around: Around, size: int
) -> None:
    """Canonical means no more than: as `encode` would write these entries in this order."""
    keys = [300, 2**32, 1, 127, 128, 2**63]
    packed = short_map(*((msgspec.msgpack.encode(key), b"a" * size) for key in keys))
    message = wire.decode(with_map(message_type, around, packed), session=SESSION).message
    assert list(getattr(message, field)) == keys


# --- messages made here ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message_type", "values"),
    [
        (Failed, ["x" * 501]),
        (Abandon, [LONG, "x"]),
        (AdvertiseChannel, [KEY[:31], b""]),
        (AdvertiseKeys, ["p", KEY, b"", b"s"]),
        (KeyDirectory, ["p", {0: KEY}, {0: b""}, {}]),
        (ShareKeys, ["p", {1: b"clear"}, KEY]),
        (MaskedInput, ["p", np.zeros(1), PEERS]),
        (MaskedInput, ["p", [1, 2], PEERS]),
        (MaskedInput, ["p", np.zeros(1, "<u8"), PEERS[:31]]),
        (UnmaskShares, ["p", {1: SHARE}, {1: SHARE}]),
        (SealedGroupKeys, [KEY, {1: KEY}]),
        (SealedGroupKey, [1, KEY, KEY]),
        (SumTotal, ["p", 1, [2, 1], np.zeros(1, "<u8")]),
        (SumTotal, ["p", 1, [1], np.zeros(1)]),
        (ClearInput, ["p", np.zeros(1)]),
        (ClearNames, [["a", "a"]]),
        (ClearUnion, [np.zeros((2, TAG_BYTES - 1), "<u1")]),
        (ClearUnion, [np.zeros((2, TAG_BYTES))]),
        (ClearUnion, [np.zeros(TAG_BYTES, "<u1")]),
    ],
)
def test_the_same_limits_hold_for_messages_made_here(message_type: type[wire.Message], values: list[Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  each has its own text
        message_type(*values)
