"""Maps from a hostile peer: one form for each, and no key twice."""

import itertools

import msgspec
import pytest

from protocols.foundation import wire
from protocols.primitives.aead import OVERHEAD_BYTES
from protocols.primitives.prg import KEY_BYTES
from protocols.primitives.shamir import SHARE_BYTES
from protocols.scores.crypten.messages import DIGEST_BYTES, RING_KEY_BYTES, GroupAnswer, GroupFormed, JoinGroup
from protocols.scores.messages import AskScores
from protocols.scores.topk.messages import SelectionRelay, SelectionStep, SharesForAsker
from protocols.session.group_key import SealedGroupKeys
from protocols.session.messages import ChannelDirectory
from protocols.sums.secagg.messages import (
    SEALED_SHARES_BYTES,
    STATE_BYTES,
    EncryptedShares,
    EncryptedSharesWithoutStates,
    KeyDirectory,
    ShareKeys,
    ShareKeysWithoutState,
    SignedSurvivors,
    UnmaskShares,
)
from tests.support.hostile_frames import KEY, SESSION, frame, refused
from tests.support.messages_of_protocols import STRATEGIES

# --- maps -----------------------------------------------------------------------------------------------------------


def short_bytes(value: bytes) -> bytes:
    """MessagePack's bin 8."""
    return b"\xc4" + bytes([len(value)]) + value


def short_map(*entries: tuple[bytes, bytes]) -> bytes:
    """MessagePack's fixmap, of keys that are already packed."""
    return bytes([0x80 | len(entries)]) + b"".join(key + short_bytes(value) for key, value in entries)


Around = tuple[bytes, bytes]
PARTICIPANTS = msgspec.msgpack.encode([1, 2, 127, 128, 300, 2**32, 2**63])
"""All keys of the maps below."""
MAPS: list[tuple[type[wire.Message], str, Around, int]] = [
    (ChannelDirectory, "channel_keys", (b"\x92", b"\x80"), 32),
    (ChannelDirectory, "signatures", (b"\x92\x80", b""), 64),
    (KeyDirectory, "mask_keys", (b"\x94\xa1p", b"\x80"), 32),
    (KeyDirectory, "states", (b"\x94\xa1p", b"\x80"), 32),
    (KeyDirectory, "signatures", (b"\x94\xa1p\x80\x80", b""), 64),
    (ShareKeys, "sealed", (b"\x95\xa1p", short_bytes(KEY) + short_bytes(b"") + short_bytes(b"")), SEALED_SHARES_BYTES),
    (ShareKeysWithoutState, "sealed", (b"\x93\xa1p", short_bytes(KEY)), SEALED_SHARES_BYTES),
    (EncryptedSharesWithoutStates, "sealed", (b"\x92\xa1p", b""), SEALED_SHARES_BYTES),
    (EncryptedShares, "sealed", (b"\x94\xa1p", b"\x80"), SEALED_SHARES_BYTES),
    (EncryptedShares, "states", (b"\x94\xa1p", b"\x80"), 32),
    (EncryptedShares, "signatures", (b"\x94\xa1p\x80\x80", b""), 64),
    (SignedSurvivors, "signatures", (b"\x92\xa1p", b""), 64),
    (UnmaskShares, "mask_key_shares", (b"\x93\xa1p", b"\x80"), SHARE_BYTES),
    (UnmaskShares, "seed_shares", (b"\x93\xa1p\x80", b""), SHARE_BYTES),
    (SealedGroupKeys, "sealed", (b"\x92" + short_bytes(KEY), b""), KEY_BYTES + OVERHEAD_BYTES),
    (JoinGroup, "sealed", (b"\x95\xa1p" + short_bytes(KEY), b"\xa9127.0.0.1\x01"), RING_KEY_BYTES),
    (GroupFormed, "sealed", (b"\x96\xa1p" + PARTICIPANTS + short_bytes(KEY), b"\xa9127.0.0.1\x01"), RING_KEY_BYTES),
    (GroupAnswer, "sealed", (b"\x93\xa1p" + PARTICIPANTS, b""), DIGEST_BYTES + 8 + OVERHEAD_BYTES),
    (AskScores, "sealed", (b"\x92\xa1p", b""), OVERHEAD_BYTES + 1),
    (SelectionStep, "to_one", (b"\x95\xa1p\x01\x90" + short_bytes(b""), b""), 5),
    (SelectionRelay, "to_all", (b"\x95\xa1p\x01", b"\x80" + short_bytes(b"")), 5),
    (SelectionRelay, "to_one", (b"\x95\xa1p\x01\x80", short_bytes(b"")), 5),
    (SharesForAsker, "sealed", (b"\x92\xa1p", b""), 5),
]
"""Every map of every message: its field, what stands before and behind it in the body, the length of its entries."""
every_map = pytest.mark.parametrize(
    ("message_type", "field", "around", "size"),
    [pytest.param(*case, id=f"{case[0].__name__}.{case[1]}") for case in MAPS],
)


def _of_length(packed: bytes, size: int) -> bytes:
    """The same map with entries of another length."""
    for value, other in itertools.product((b"a", b"b"), (SEALED_SHARES_BYTES, STATE_BYTES)):
        packed = packed.replace(bytes([other]) + value * other, bytes([size]) + value * size)
    return packed


def with_map(message_type: type[wire.Message], around: Around, packed: bytes) -> bytes:
    if message_type is KeyDirectory and around[1]:  # keys and states are of the same clients
        packed += packed
    if message_type is EncryptedShares and around[1]:  # and so are shares and states, of another length
        packed = _of_length(packed, SEALED_SHARES_BYTES) + _of_length(packed, STATE_BYTES)
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
