"""Receipts: hashes of the frames that passed a client's end, in order, chained, and signed where it can sign.

With its receipt a client shows that the server's transcript leaves out, adds or changes none of the frames between the
two. It holds no more than the transcript does, in less room.

A receipt is text, one JSON object to a line, written without spaces and with the fields in this order::

    {"version":2,"session":"32 hex digits","client":3,"settings":"64 hex digits"}
    {"round":0,"sent":["32 hex digits",...],"received":[...],"final":false,"link":"64 hex digits","signature":""}

The first line is its head: `settings` is the digest of the settings that the parties of the session agreed on. Every
other line is a mark: the hashes of what has passed since the mark before, and the round in which it was made. `final`:
nothing more passes in this session. `link` is the SHA-256 of the link before (32 bytes) and of the line up to and with
`final`, as an object of its own; before the first it is the SHA-256 of the head's line. `signature` is that of the
client's identity on the link as a `Statement`; empty for a client that has no identity.

A mark that was changed, left out or put elsewhere is noticed at its link, and under signatures one that another party
made. Marks that are missing at the end are not noticed, except that the receipt is not final. A line without its end,
which a crash leaves, was never made.

Misuse: a receipt is its client's word. A client can write down frames that never passed.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

import msgspec

from protocols.foundation.errors import DecodeError, PeerMisbehaved
from protocols.foundation.identifiers import PartyId, RoundId, SessionId
from protocols.foundation.wire import Frame
from protocols.primitives.identity import Statement
from protocols.session.credentials import check_signed
from protocols.transport.tap import frame_hash
from protocols.transport.traffic import Direction

VERSION: Final = 2
PROTOCOL: Final = "secure-kg/receipt"

Sign = Callable[[Statement], bytes]
_Hash = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{32}\Z")]
_Digest = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
_Signature = Annotated[str, msgspec.Meta(pattern=r"\A([0-9a-f]{128})?\Z")]
_Number = Annotated[int, msgspec.Meta(ge=0, lt=2**32)]
_Line = TypeVar("_Line", bound=msgspec.Struct)


class _Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: Literal[2]
    session: _Hash
    client: _Number
    settings: _Digest


class _Content(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    round: _Number
    sent: list[_Hash]
    received: list[_Hash]
    final: bool


class _Mark(_Content, frozen=True, forbid_unknown_fields=True):
    link: _Digest
    signature: _Signature

    def content(self) -> bytes:
        return msgspec.json.encode(_Content(self.round, self.sent, self.received, self.final))


@dataclass(frozen=True, slots=True)
class Head:
    """Whose receipt it is, and of what."""

    session: SessionId
    client: PartyId
    settings: bytes

    def encode(self) -> bytes:
        return msgspec.json.encode(_Head(VERSION, self.session.hex(), self.client, self.settings.hex()))


class Receipt:
    """The lines of one receipt as they come to be. What is in a line is not kept."""

    def __init__(self) -> None:
        self.passed: dict[Direction, int] = {"sent": 0, "received": 0}
        """How many frames so far."""
        self._new: dict[Direction, list[str]] = {"sent": [], "received": []}
        self._link = b""
        self._head: Head | None = None
        self._sign: Sign | None = None

    def write(self, direction: Direction, peer: PartyId, round_id: RoundId, phase: str, frame: Frame) -> None:
        self._new[direction].append(frame_hash(frame))
        self.passed[direction] += 1

    def close(self) -> None:
        """Nothing to release: whoever made it writes its lines down."""

    def begin(self, head: Head, sign: Sign | None) -> bytes:
        """The first line. `sign` is that of the client's identity."""
        line = head.encode()
        self._head, self._sign, self._link = head, sign, hashlib.sha256(line).digest()
        return line + b"\n"

    def mark(self, round_id: RoundId, final: bool) -> bytes:
        """The next line; empty if nothing has passed since the last one."""
        if self._head is None:
            raise RuntimeError("a receipt begins with its head")
        sent, received = self._new["sent"], self._new["received"]
        if not (sent or received or final):
            return b""
        content = _Content(round_id, sent, received, final)
        self._link = _next_link(self._link, msgspec.json.encode(content))
        self._new = {"sent": [], "received": []}
        signature = b"" if self._sign is None else self._sign(_statement(self._head, round_id, self._link))
        mark = _Mark(round_id, sent, received, final, link=self._link.hex(), signature=signature.hex())
        return msgspec.json.encode(mark) + b"\n"


@dataclass(frozen=True, slots=True)
class Mark:
    round: RoundId
    link: bytes
    signature: bytes
    sent: int
    """How many frames were sent up to this mark, from the first one on."""
    received: int


@dataclass(frozen=True, slots=True)
class KeptReceipt:
    """A receipt that was read back, in order and unchanged since it was written, as far as its links can tell."""

    head: Head
    marks: tuple[Mark, ...]
    sent: tuple[str, ...]
    received: tuple[str, ...]
    final: bool

    def check_signatures(self, directory: Mapping[PartyId, bytes]) -> None:
        """Raise `PeerMisbehaved` unless the client has signed every mark with its identity in `directory`."""
        for number, mark in enumerate(self.marks, start=1):
            if not mark.signature:
                raise PeerMisbehaved(f"mark {number} is not signed")
            try:
                check_signed(directory, _statement(self.head, mark.round, mark.link), mark.signature)
            except PeerMisbehaved:
                raise PeerMisbehaved(f"mark {number} is not signed by client {self.head.client}") from None


def read_receipt(path: Path) -> KeptReceipt | None:
    """None if it was cut before its first line was whole. `DecodeError` in one line if it is no receipt or damaged."""
    try:
        *lines, _ = path.read_bytes().split(b"\n")  # the last one is empty, or was cut by a crash
    except OSError as problem:
        raise DecodeError(problem.strerror or "cannot be read") from None
    if not lines:
        return None
    read = _parsed(lines[0], _Head, 1)
    head = Head(SessionId(bytes.fromhex(read.session)), PartyId(read.client), bytes.fromhex(read.settings))
    link, final = hashlib.sha256(lines[0]).digest(), False
    marks, sent, received = list[Mark](), list[str](), list[str]()
    for number, line in enumerate(lines[1:], start=2):
        if final:
            raise DecodeError(f"line {number}: goes on after its end")
        mark = _parsed(line, _Mark, number)
        link = _next_link(link, mark.content())
        if mark.link != link.hex():
            raise DecodeError(f"line {number}: not what was written, or not in its place")
        sent += mark.sent
        received += mark.received
        marks.append(Mark(RoundId(mark.round), link, bytes.fromhex(mark.signature), len(sent), len(received)))
        final = mark.final
    return KeptReceipt(head, tuple(marks), tuple(sent), tuple(received), final)


def _parsed(line: bytes, kind: type[_Line], number: int) -> _Line:
    try:
        read = msgspec.json.decode(line, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise DecodeError(f"line {number}: not a line of a receipt of version {VERSION}") from None
    if msgspec.json.encode(read) != line:  # one meaning has one form
        raise DecodeError(f"line {number}: not as receipts are written")
    return read


def _next_link(link: bytes, content: bytes) -> bytes:
    return hashlib.sha256(link + content).digest()


def _statement(head: Head, round_id: RoundId, link: bytes) -> Statement:
    return Statement(PROTOCOL, VERSION, head.session, round_id, head.client, "receipt", link)
