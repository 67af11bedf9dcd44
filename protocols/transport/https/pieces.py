"""What travels on a connection: pieces of frames, and a few words about the connection itself.

A piece is one WebSocket message (or one entry of a long poll's body); all integers are little endian::

    hello     kind 1, version, party u32, federation 32 B, incarnation 16 B, attempt u32, server's incarnation 16 B
              (zeros: not known yet), received u64, granted u64
    welcome   kind 2, version, federation 32 B, server's incarnation 16 B, received u64, granted u64
    begin     kind 3, number u64, bytes of the frame u64, first bytes of the frame
    more      kind 4, number u64, next bytes of the frame
    ack       kind 5, received u64, granted u64
    beat      kind 6
    end       kind 7: the sender has nothing more to say, and all it had to say came before
    refused   kind 8, reason u8, text

`number`: pieces of a direction are numbered from 1, over all connections of a link. `received`: the last number that
has arrived; everything up to it. `granted`: bytes that the peer may have sent in all, over all connections.
"""

import struct
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, TypeAlias

from protocols.foundation.errors import DecodeError
from protocols.foundation.identifiers import PartyId
from protocols.transport.https.limits import PIECE_BYTES

VERSION: Final = 1
INCARNATION_BYTES: Final = 16
FEDERATION_BYTES: Final = 32
UNKNOWN: Final = bytes(INCARNATION_BYTES)
LONGEST_REASON: Final = 200

_HELLO: Final = struct.Struct("<BBI32s16sI16sQQ")
_WELCOME: Final = struct.Struct("<BB32s16sQQ")
_BEGIN: Final = struct.Struct("<BQQ")
_MORE: Final = struct.Struct("<BQ")
_ACK: Final = struct.Struct("<BQQ")
LARGEST_PIECE: Final = _BEGIN.size + PIECE_BYTES


class Kind(IntEnum):
    HELLO = 1
    WELCOME = 2
    BEGIN = 3
    MORE = 4
    ACK = 5
    BEAT = 6
    END = 7
    REFUSED = 8


class Reason(IntEnum):
    """Why a connection is refused."""

    NOT_A_MEMBER = 1
    OTHER_FEDERATION = 2
    OTHER_VERSION = 3
    OTHER_PARTY = 4
    SUPERSEDED = 5
    MISBEHAVED = 6
    RESTARTED = 7
    STALE = 8
    ENDED = 9


PASSING: Final = frozenset({Reason.STALE})
"""Reasons for which another connection is worth a try."""


@dataclass(frozen=True, slots=True)
class Hello:
    party: PartyId
    federation: bytes
    incarnation: bytes
    attempt: int
    server: bytes
    received: int
    granted: int
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class Welcome:
    federation: bytes
    server: bytes
    received: int
    granted: int
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class Data:
    """A piece of a frame; `total`: the size of the frame that begins with it, else None."""

    number: int
    total: int | None
    payload: memoryview = field(repr=False)


@dataclass(frozen=True, slots=True)
class Ack:
    received: int
    granted: int


@dataclass(frozen=True, slots=True)
class Beat:
    pass


@dataclass(frozen=True, slots=True)
class End:
    pass


@dataclass(frozen=True, slots=True)
class Refused:
    reason: Reason
    text: str


Piece: TypeAlias = Hello | Welcome | Data | Ack | Beat | End | Refused

BEAT: Final = bytes([Kind.BEAT])
END: Final = bytes([Kind.END])


def hello(words: Hello) -> bytes:
    return _HELLO.pack(
        Kind.HELLO,
        words.version,
        words.party,
        words.federation,
        words.incarnation,
        words.attempt,
        words.server,
        words.received,
        words.granted,
    )


def welcome(words: Welcome) -> bytes:
    return _WELCOME.pack(
        Kind.WELCOME, words.version, words.federation, words.server, words.received, words.granted
    )  # fmt: skip


def data(number: int, total: int | None, payload: memoryview) -> bytes:
    head = _MORE.pack(Kind.MORE, number) if total is None else _BEGIN.pack(Kind.BEGIN, number, total)
    return b"".join((head, payload))


def ack(received: int, granted: int) -> bytes:
    return _ACK.pack(Kind.ACK, received, granted)


def refused(reason: Reason, text: str) -> bytes:
    return bytes([Kind.REFUSED, reason]) + text.encode("ascii", "replace")[:LONGEST_REASON]


def decode(piece: bytes) -> Piece:
    """`DecodeError` for anything that is not one of the kinds above, of exactly its length."""
    kind = piece[0] if piece else 0
    if kind in (Kind.BEGIN, Kind.MORE):
        return _data(kind, piece)
    try:
        if kind == Kind.ACK:
            return Ack(*_ACK.unpack(piece)[1:])
        if kind == Kind.HELLO:
            _, version, party, federation, incarnation, attempt, server, received, granted = _HELLO.unpack(piece)
            return Hello(PartyId(party), federation, incarnation, attempt, server, received, granted, version)
        if kind == Kind.WELCOME:
            _, version, federation, server, received, granted = _WELCOME.unpack(piece)
            return Welcome(federation, server, received, granted, version)
        if kind == Kind.REFUSED and 2 <= len(piece) <= 2 + LONGEST_REASON:
            return Refused(Reason(piece[1]), _printable(piece[2:]))
    except (struct.error, ValueError):
        raise DecodeError("a malformed piece") from None
    if piece == BEAT:
        return Beat()
    if piece == END:
        return End()
    raise DecodeError("a piece of an unknown kind")


def _data(kind: int, piece: bytes) -> Data:
    head = _BEGIN if kind == Kind.BEGIN else _MORE
    if len(piece) < head.size or len(piece) > head.size + PIECE_BYTES:
        raise DecodeError("a piece of an impossible length")
    _, number, *total = head.unpack_from(piece)
    return Data(number, total[0] if total else None, memoryview(piece)[head.size :])


def _printable(text: bytes) -> str:
    """What a peer says goes to a terminal."""
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "?" for byte in text)
