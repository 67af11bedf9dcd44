"""Frames that are made by hand, good ones and others."""

import msgspec
import pytest

from protocols.foundation import wire
from protocols.foundation.errors import DecodeError
from protocols.foundation.identifiers import RoundId, SessionId
from tests.support.messages_of_protocols import written_frames

SESSION = SessionId(bytes(range(16)))
ROUND = RoundId(7)
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


def refused(bytes_: bytes, match: str | None = None) -> None:
    with pytest.raises(DecodeError, match=match):
        wire.decode(bytes_, session=SESSION)


BODY = msgspec.msgpack.encode(["reason"])


KEY = b"k" * 32
