"""Events of a transcript in order, with a look ahead; and what counts as the same message."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeVar

from protocols.foundation import wire
from protocols.foundation.errors import DecodeError
from protocols.foundation.identifiers import PartyId, SessionId
from protocols.session.conversation import Abandon, Abort, Regroup
from protocols.transport.tap import Transcript, TranscriptRecord

_SMALL_BYTES: Final = 1 << 16
"""Last words are smaller. Larger frames are not looked past: there may be many, and each has to be kept."""
M = TypeVar("M", bound=wire.Message)


class Record:
    """What passed a server's end of the wire. A record that is damaged ends there; another check tells that."""

    def __init__(self, transcript: Path) -> None:
        self._events = self._read(transcript)
        self._ahead: deque[TranscriptRecord] = deque()
        self.position = 0
        """How many events have been taken: the number of the next one, from zero."""

    @property
    def next(self) -> TranscriptRecord | None:
        """None at the end of the record."""
        return self._at(0)

    def take(self) -> None:
        """Go on to the next event."""
        if self._at(0) is None:
            raise IndexError("the record is at its end")
        self._ahead.popleft()
        self.position += 1

    def is_next_told(self, party: PartyId) -> bool:
        """Whether `party` is among those who are sent something small before anything else happens."""
        index = 0
        while (event := self._at(index)) is not None and event.direction == "sent" and len(event.frame) <= _SMALL_BYTES:
            if event.peer == party:
                return True
            index += 1
        return False

    def said(self, kind: type[M]) -> M | None:
        """The next event, if the server sent a message of this type."""
        event = self._at(0)
        if event is None or event.direction != "sent" or wire.kind_of(event.frame) is not kind:
            return None
        message = _decoded(event.frame)
        return message if isinstance(message, kind) else None

    def _at(self, index: int) -> TranscriptRecord | None:
        while len(self._ahead) <= index:
            event = next(self._events, None)
            if event is None:
                return None
            self._ahead.append(event)
        return self._ahead[index]

    @staticmethod
    def _read(transcript: Path) -> Iterator[TranscriptRecord]:
        try:
            yield from Transcript(transcript)
        except (DecodeError, OSError):
            return


def same_message(said: wire.Frame, meant: wire.Frame) -> bool:
    """Whether two frames say the same. Reasons may be put in other words, and a session may end in any round."""
    if said == meant:
        return True
    kind = wire.kind_of(said)
    if kind not in (Abort, Abandon, Regroup) or kind is not wire.kind_of(meant):
        return False
    one, other = _decoded(said), _decoded(meant)
    if isinstance(one, Abandon) and isinstance(other, Abandon):
        return one.purpose == other.purpose and _round_and_session(said) == _round_and_session(meant)
    return one is not None and other is not None and _round_and_session(said)[1] == _round_and_session(meant)[1]


def _round_and_session(frame: wire.Frame) -> tuple[int, bytes]:
    _, _, _, number, session, _ = wire.HEADER.unpack_from(frame)
    return number, session


def _decoded(frame: wire.Frame) -> wire.Message | None:
    """None for a frame that is no message."""
    try:
        return wire.decode(frame, session=SessionId(wire.HEADER.unpack_from(frame)[4])).message
    except DecodeError:
        return None
