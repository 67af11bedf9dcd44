"""Typed messages to bytes and back: the only place that (de)serialises.

A frame is a fixed header followed by a MessagePack body (little endian throughout)::

    byte 0      version (currently 1)
    byte 1      flags, must be 0
    bytes 2-3   kind of the message
    bytes 4-7   round
    bytes 8-23  session
    bytes 24-31 length of the body; the frame ends exactly there

The body is the message's fields in order. Arrays are MessagePack extension values: dtype, shape, raw little-endian
bytes. Decoding is strict: an unknown version or kind, another session, a wrong length, a missing, surplus or mistyped
field, a map with one key twice, an array whose bytes do not match its shape, or a frame over the size limit raises
`DecodeError`, and no part of the message reaches the caller. The text of the error is for the local log; a peer is only
told that decoding failed.

Misuse: the wire neither encrypts nor authenticates. Secrets must be encrypted before they become fields.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, TypeAlias, TypeVar, cast, get_origin, get_type_hints

import msgspec
import numpy as np
import numpy.typing as npt

from protocols.foundation.errors import DecodeError
from protocols.foundation.identifiers import SESSION_BYTES, RoundId, SessionId

Frame: TypeAlias = bytes | bytearray | memoryview

VERSION: Final = 1
MAX_FRAME_BYTES: Final = 1 << 30
SMALL_FRAME_BYTES: Final = 1 << 22
"""Unless its type says otherwise: lists and maps take many times their bytes in memory once they are decoded."""
HEADER: Final = struct.Struct(f"<BBHI{SESSION_BYTES}sQ")
_ARRAY_EXT: Final = 1
_FIXED_EXT: Final = {1: 0xD4, 2: 0xD5, 4: 0xD6, 8: 0xD7, 16: 0xD8}
_SHORT_LIST: Final = 0x90
"""MessagePack's head of a list of up to 15 entries, less their number."""
_ARRAY_HEADER: Final = struct.Struct("<2sB")  # dtype code, number of dimensions
_MAX_DIMENSIONS: Final = 4
_MAX_ROUND: Final = 2**32 - 1
_MARGIN: Final = 512
"""Room before and after an array that stands in its frame; a message whose other fields need more is copied."""

# Only these travel. Two-letter codes instead of numpy's strings, so that a peer cannot name an arbitrary dtype.
_DTYPES: Final[dict[bytes, np.dtype[Any]]] = {
    b"u1": np.dtype("<u1"),
    b"u2": np.dtype("<u2"),
    b"u4": np.dtype("<u4"),
    b"u8": np.dtype("<u8"),
    b"i8": np.dtype("<i8"),
    b"f4": np.dtype("<f4"),
    b"f8": np.dtype("<f8"),
}
_CODES: Final = {dtype: code for code, dtype in _DTYPES.items()}


class _Room(bytearray):
    """Memory for one frame, in which an array stands already."""


def array_in_frame(entries: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """A vector of zeros that is sent from where it stands: `encode` writes the rest of the frame around it.

    For vectors so long that a copy would matter. It saves the copy in one message, whose only array of this kind it is;
    once that is encoded the vector must not be changed, as it is the frame.
    """
    room = _Room(2 * _MARGIN + entries * dtype.itemsize)
    return np.ndarray((entries,), dtype=dtype, buffer=room, offset=_MARGIN)


class Message(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Base of all messages; a subclass gets its number on the wire from `@message(kind)`.

    Field checks beyond types (lengths, dtypes, ranges) belong into `__post_init__` and raise `ValueError`:
    they hold for messages made here and for messages that arrive.
    """

    AHEAD: ClassVar[Literal["", "client", "server"]] = ""
    """Who keeps one that comes while another is awaited, until its own sum asks for it; empty: nobody
    (`protocols.session.conversation`)."""


M = TypeVar("M", bound=Message)
_KINDS: dict[int, type[Message]] = {}
_NUMBERS: dict[type[Message], int] = {}
_LIMITS: dict[type[Message], int] = {}
_WITH_MAPS: set[type[Message]] = set()
_DECODERS: dict[type[Message], "msgspec.msgpack.Decoder[Message]"] = {}


def message(kind: int, max_bytes: int = SMALL_FRAME_BYTES) -> Callable[[type[M]], type[M]]:
    """Class decorator: give a message type its number and largest frame. Numbers are 16 bits and never reused."""

    def register(message_type: type[M]) -> type[M]:
        if not 0 < kind < 1 << 16 or kind in _KINDS:
            raise TypeError(f"message kind {kind:#06x} is out of range or taken")
        _KINDS[kind] = message_type
        _NUMBERS[message_type] = kind
        _LIMITS[message_type] = max_bytes
        if any(get_origin(annotation) is dict for annotation in get_type_hints(message_type).values()):
            _WITH_MAPS.add(message_type)
        return message_type

    return register


@dataclass(frozen=True, slots=True)
class Envelope:
    """A decoded message with the session and round its header names."""

    session: SessionId
    round: RoundId
    message: Message


def require(condition: bool, problem: str) -> None:
    """Check a field inside `__post_init__`."""
    if not condition:
        raise ValueError(problem)


def require_array(array: object, *dtypes: str, ndim: int) -> None:
    """Check that a field is an array of one of `dtypes` with `ndim` axes."""
    require(isinstance(array, np.ndarray), "not an array")
    value = cast("npt.NDArray[Any]", array)
    require(value.ndim == ndim, f"array of {value.ndim} axes instead of {ndim}")
    require(value.dtype in [np.dtype(name) for name in dtypes], f"array of {value.dtype} instead of {'/'.join(dtypes)}")


def encode(payload: Message, session: SessionId, round_id: RoundId) -> Frame:
    """The frame of `payload`. Raises `DecodeError` if it could not be decoded again (too large, odd dtype)."""
    if len(session) != SESSION_BYTES:
        raise DecodeError(f"session of {len(session)} bytes instead of {SESSION_BYTES}")
    if not 0 <= round_id <= _MAX_ROUND:
        raise DecodeError(f"round {round_id} out of range")
    if type(payload) not in _NUMBERS:
        raise TypeError(f"{type(payload).__name__} has no number on the wire")
    parts = _parts(payload)
    size = HEADER.size + sum(part.nbytes if isinstance(part, np.ndarray) else len(part) for part in parts)
    if size > _LIMITS[type(payload)]:
        raise DecodeError(f"message of {size} bytes exceeds the limit of {_LIMITS[type(payload)]}")
    header = HEADER.pack(VERSION, 0, _NUMBERS[type(payload)], round_id, session, size - HEADER.size)
    return _joined([header, *parts], size)


def _parts(payload: Message) -> list[bytes | npt.NDArray[Any]]:
    """The body of a message in pieces: arrays as they are, all else as bytes."""
    values = [getattr(payload, name) for name in payload.__struct_fields__]
    if not any(isinstance(value, np.ndarray) for value in values):
        return [_ENCODER.encode(payload)]
    parts: list[bytes | npt.NDArray[Any]] = [bytes([_SHORT_LIST + len(values)])]
    for value in values:
        if isinstance(value, np.ndarray):
            head = _array_head(value)
            parts += [_ext_head(len(head) + value.nbytes), head, value]
        else:
            parts.append(_ENCODER.encode(value))
    return parts


def _joined(parts: list[bytes | npt.NDArray[Any]], size: int) -> Frame:
    """The frame of these parts: around an array that has room for it, else in new memory, each part copied once."""
    before = 0
    for part in parts:
        if isinstance(part, np.ndarray):
            room = _room_of(part)
            if room is not None and before <= _MARGIN and size - before - part.nbytes <= _MARGIN:
                frame = memoryview(room)[_MARGIN - before :][:size]
                _copy(parts, frame, standing=part)
                return frame
            before += part.nbytes
        else:
            before += len(part)
    frame_in_new_memory = bytearray(size)
    _copy(parts, memoryview(frame_in_new_memory))
    return frame_in_new_memory


def _room_of(array: npt.NDArray[Any]) -> _Room | None:
    """The room of an array that was made by `array_in_frame`; None for a part of one, and for every other."""
    base: object = array.base
    return base if isinstance(base, _Room) and array.nbytes == len(base) - 2 * _MARGIN else None


def _copy(parts: list[bytes | npt.NDArray[Any]], frame: memoryview, standing: npt.NDArray[Any] | None = None) -> None:
    at = 0
    for part in parts:
        if not isinstance(part, np.ndarray):
            frame[at : at + len(part)] = part
            at += len(part)
            continue
        if part is not standing:
            target = np.frombuffer(frame, dtype=part.dtype.newbyteorder("<"), count=part.size, offset=at)
            target.reshape(part.shape)[...] = part
        at += part.nbytes


def decode(frame: Frame, *, session: SessionId, max_bytes: int = MAX_FRAME_BYTES) -> Envelope:
    """The message in `frame`, or `DecodeError`. `session` is the only session this party takes part in."""
    if len(frame) > max_bytes:
        raise DecodeError(f"frame of {len(frame)} bytes exceeds the limit of {max_bytes}")
    if len(frame) < HEADER.size:
        raise DecodeError(f"frame of {len(frame)} bytes is shorter than its header")
    version, flags, kind, round_id, sent_session, length = HEADER.unpack_from(frame)
    if version != VERSION:
        raise DecodeError(f"version {version} instead of {VERSION}")
    if flags != 0:
        raise DecodeError("unknown flags")
    message_type = _KINDS.get(kind)
    if message_type is None:
        raise DecodeError(f"unknown kind {kind:#06x}")
    if len(frame) > _LIMITS[message_type]:
        raise DecodeError(f"{message_type.__name__} of {len(frame)} bytes exceeds the limit of {_LIMITS[message_type]}")
    if sent_session != session:
        raise DecodeError("frame of another session")
    if length != len(frame) - HEADER.size:
        raise DecodeError(f"body of {len(frame) - HEADER.size} bytes instead of the announced {length}")
    try:
        payload = _decoder(message_type).decode(memoryview(frame)[HEADER.size :])
    except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
        raise DecodeError(f"{message_type.__name__}: {problem}") from None
    # Of a key that stands twice in a map the last entry would win silently. What we would not have sent so is refused.
    # As bytes: a memoryview would be compared one entry at a time.
    if message_type in _WITH_MAPS and _ENCODER.encode(payload) != bytes(memoryview(frame)[HEADER.size :]):
        raise DecodeError(f"{message_type.__name__}: not in canonical form")
    return Envelope(session=session, round=RoundId(round_id), message=payload)


def kind_of(frame: Frame) -> type[Message] | None:
    """The type of message that the header of a frame names, unread; None if it names none."""
    if len(frame) < HEADER.size:
        return None
    return _KINDS.get(HEADER.unpack_from(frame)[2])


def _decoder(message_type: type[Message]) -> "msgspec.msgpack.Decoder[Message]":
    if message_type not in _DECODERS:
        _DECODERS[message_type] = msgspec.msgpack.Decoder(
            message_type, strict=True, dec_hook=_typed_array, ext_hook=_array_from_ext
        )
    return _DECODERS[message_type]


def _array_head(value: npt.NDArray[Any]) -> bytes:
    code = _CODES.get(value.dtype.newbyteorder("<"))
    if code is None or value.ndim > _MAX_DIMENSIONS:
        raise DecodeError(f"array of {value.dtype} with {value.ndim} axes does not travel")
    return _ARRAY_HEADER.pack(code, value.ndim) + struct.pack(f"<{value.ndim}Q", *value.shape)


def _ext_head(length: int) -> bytes:
    """MessagePack's head of an extension value of so many bytes. Arrays are written without passing through msgspec:
    model-sized ones pass this way every round, and it would take a copy more."""
    if length in _FIXED_EXT:
        return bytes([_FIXED_EXT[length], _ARRAY_EXT])
    if length < 1 << 8:
        return struct.pack(">BBB", 0xC7, length, _ARRAY_EXT)
    if length < 1 << 16:
        return struct.pack(">BHB", 0xC8, length, _ARRAY_EXT)
    return struct.pack(">BIB", 0xC9, length, _ARRAY_EXT)


def _does_not_travel(value: object) -> object:
    raise TypeError(f"{type(value).__name__} does not travel")


def _array_from_ext(code: int, data: memoryview) -> npt.NDArray[Any]:
    if code != _ARRAY_EXT:
        raise ValueError(f"unknown extension {code}")
    if len(data) < _ARRAY_HEADER.size:
        raise ValueError("truncated array")
    name, ndim = _ARRAY_HEADER.unpack_from(data)
    dtype = _DTYPES.get(name)
    if dtype is None or ndim > _MAX_DIMENSIONS:
        raise ValueError("unknown array type")
    start = _ARRAY_HEADER.size + 8 * ndim
    if len(data) < start:
        raise ValueError("truncated array")
    shape = struct.unpack_from(f"<{ndim}Q", data, _ARRAY_HEADER.size)
    # Python integers do not wrap, so a shape that multiplies past 2^64 cannot slip through this comparison.
    entries = 1
    for extent in shape:
        entries *= extent
    if entries * dtype.itemsize != len(data) - start:
        raise ValueError("array bytes do not match the shape")
    # A copy: the array must not keep the whole frame alive, and its memory must be aligned.
    return np.frombuffer(data, dtype=dtype, offset=start).reshape(shape).copy()


def _typed_array(expected: type, value: object) -> object:
    if not isinstance(value, np.ndarray):
        raise ValueError("not an array")
    return value


_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=_does_not_travel)
