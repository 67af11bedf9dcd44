"""Bodies from a hostile or broken peer: mistyped fields, malformed arrays, figures out of range."""

import struct
from typing import Any

import msgspec
import numpy as np
import pytest

from protocols.alignment.plain import TAG_BYTES, ClearNames, ClearUnion
from protocols.foundation import wire
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
    EncryptedSharesWithoutStates,
    KeyDirectory,
    MaskedInput,
    ShareKeys,
    ShareKeysWithoutState,
    SignedSurvivors,
    Survivors,
    SurvivorSignature,
    UnmaskShares,
)
from protocols.sums.totals import SumTotal
from tests.support.hostile_frames import BODY, KEY, SESSION, WRITTEN, frame, refused
from tests.support.messages_of_protocols import AnyArray, same

Ext = msgspec.msgpack.Ext


def fields(message_type: type[wire.Message], *values: Any) -> bytes:
    return frame(message_type, msgspec.msgpack.encode(list(values)))


def array(dtype: str, shape: tuple[int, ...], data: bytes = b"") -> Any:
    return Ext(1, dtype.encode() + bytes([len(shape)]) + struct.pack(f"<{len(shape)}Q", *shape) + data)


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
        (EncryptedShares, b"\x94\xa1p\xdf\xff\xff\xff\xff\x01"),
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
        (KeyDirectory, ["p", {1: KEY, 2: KEY}, {1: KEY}, {}]),
        (KeyDirectory, ["p", {}, {1: KEY}, {}]),
        (KeyDirectory, ["p", {1: KEY}, {1: b""}, {-1: SIGNATURE}]),
        (ShareKeys, [LONG, {}, KEY, b"", b""]),
        (ShareKeys, ["p", {1: SEALED[:-1]}, KEY, b"", b""]),
        (ShareKeys, ["p", {1: SEALED + b"e"}, KEY, b"", b""]),
        (ShareKeys, ["p", {0: SEALED}, KEY, b"", b""]),
        (ShareKeys, ["p", {}, KEY[:31], b"", b""]),
        (ShareKeys, ["p", {}, b"", b"", b""]),
        (ShareKeys, ["p", {}, KEY, b"state", b""]),
        (ShareKeys, ["p", {}, KEY, b"", b"s"]),
        (ShareKeysWithoutState, ["p", {1: SEALED[:-1]}, KEY]),
        (ShareKeysWithoutState, ["p", {}, KEY[:31]]),
        (EncryptedShares, [LONG, {}, {}, {}]),
        (EncryptedShares, ["p", {1: SEALED[:-1]}, {1: b""}, {}]),
        (EncryptedShares, ["p", {1: b""}, {1: b""}, {}]),
        (EncryptedShares, ["p", {0: SEALED}, {0: b""}, {}]),
        (EncryptedShares, ["p", {1: SEALED}, {}, {}]),
        (EncryptedShares, ["p", {}, {1: KEY}, {}]),
        (EncryptedShares, ["p", {1: SEALED}, {1: b"state"}, {}]),
        (EncryptedShares, ["p", {1: SEALED}, {1: b""}, {1: SIGNATURE[:63]}]),
        (EncryptedSharesWithoutStates, ["p", {1: b""}]),
        (EncryptedSharesWithoutStates, ["p", {0: SEALED}]),
        (MaskedInput, [LONG, ONE_U8, PEERS]),
        (MaskedInput, ["p", ONE_F8, PEERS]),
        (MaskedInput, ["p", array("i8", (1,), bytes(8)), PEERS]),
        (MaskedInput, ["p", array("u1", (1, 1), bytes(1)), PEERS]),
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


# --- messages made here ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message_type", "values"),
    [
        (Failed, ["x" * 501]),
        (Abandon, [LONG, "x"]),
        (AdvertiseChannel, [KEY[:31], b""]),
        (AdvertiseKeys, ["p", KEY, b"", b"s"]),
        (KeyDirectory, ["p", {0: KEY}, {0: b""}, {}]),
        (ShareKeys, ["p", {1: b"clear"}, KEY, b"", b""]),
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
