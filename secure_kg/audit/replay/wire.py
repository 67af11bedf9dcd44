"""The server's end of the wire as it was: a transport over the record of a session.

What the record does not have is explained as the network's doing, in the only two ways in which an honest server comes
to go on without a client: it has waited in vain, or its message did not get through. An honest server may also stop at
any moment, and then says so to everybody whom it can reach (`Abort`; `Regroup` if another session begins).
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import PeerLost, ProtocolError
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.session.conversation import Abort, Regroup
from protocols.transport.base import Transport, party_names
from protocols.transport.tap import TranscriptRecord
from secure_kg.audit.replay.record import Record, same_message
from secure_kg.federation.server.regrouping import RegroupNeeded

_MOST_IN_VAIN: Final = 200_000
"""So often the program may ask for what the record does not have next before it is taken not to come to an end."""


class RecordEnded(Exception):
    """The program would go on, and there is nothing more: the job was ended by force, or the record was cut."""


class NotExplained(Exception):
    """The program gets no further."""


class RecordedWire(Transport):
    """`watch` is called before everything that the program does here, with `settled`."""

    def __init__(
        self,
        clients: Collection[PartyId],
        record: Record,
        watch: Callable[[int], None],
        looks_in_vain: Mapping[int, int] | None = None,
        *,
        whole: bool = False,
    ) -> None:
        """`looks_in_vain`: by number of an event: how often the server has looked for it before it had come.
        `whole`: by its own word the server came to its end, so that what the record lacks could not be sent."""
        super().__init__(SERVER, clients)
        self._events, self._watch, self._whole = record, watch, whole
        self._too_early = dict(looks_in_vain or {})
        self.looked_for: list[int] = []
        """Numbers of events that were there when the program looked, without waiting for them, since it last sent."""
        self._in_vain = self._looked = 0
        self.last: int | None = None
        """The number of the frame received last."""
        self.passed: set[int] = set()
        """Numbers of frames that were received and counted for nothing."""
        self.wanted = ""
        """What the program does in place of the next event of the record."""
        self.settled = 0
        """How many events have passed, without the last words of a server that ends the session."""

    def flush(self, deadline: Deadline) -> None:
        """Nothing to wait for."""

    def corked(self) -> AbstractContextManager[None]:
        """A record has frames in the order in which they were sent, whichever of them left together."""
        return nullcontext()

    def passed_over(self) -> None:
        if self.last is not None:
            self.passed.add(self.last)

    def expired(self, deadline: Deadline) -> bool:
        """Time is what the record has next, not the auditor's clock."""
        return False

    def pause(self, deadline: Deadline) -> bool:
        """Looking again is of use only if something has happened since the last time."""
        looked, self._looked = self._looked, self._events.position
        return self._looked != looked

    def busy(self, to: PartyId) -> bool:
        return not self._events.is_next_told(to)

    def _post(self, to: PartyId, frame: wire.Frame) -> None:
        event = self._next()
        if event is None and self._whole:
            self._not_next(f"sends {kind_name(frame)} to {party_names([to])}")
            raise PeerLost(f"{party_names([to])} could not be reached", to)
        if event is None:
            raise RecordEnded
        if event.direction == "sent" and event.peer == to and same_message(event.frame, frame):
            self._take_event()
            self._sent_since_looking()
            return
        self._not_next(f"sends {kind_name(frame)} to {party_names([to])}")
        if event.direction == "sent" and _ends(event.frame):
            # Who waited for the next session is on no record, nor is any other reason.
            again = wire.kind_of(event.frame) is Regroup
            raise (RegroupNeeded if again else ProtocolError)("the server ends the session for reasons of its own")
        raise PeerLost(f"{party_names([to])} could not be reached", to)

    def _take(self, senders: Collection[PartyId], deadline: Deadline) -> tuple[PartyId, wire.Frame] | None:
        event = self._next()
        position, look = self._events.position, not deadline.remaining()
        here = event is not None and event.direction == "received" and event.peer in senders
        if here and look and self._too_early.get(position, 0):
            self._too_early[position] -= 1
            here = False
        if event is not None and here:
            self.last = position
            if look:
                self.looked_for.append(position)
            self._take_event()
            return event.peer, event.frame
        self._not_next(f"waits for {party_names(senders)}")
        raise PeerLost(f"{party_names(senders)} did not answer in time", *senders)

    def _sent_since_looking(self) -> None:
        """What was there too early shows soon: not later than after a message or two to everybody."""
        if self.looked_for and self._events.position - self.looked_for[-1] > 2 * len(self.peers):
            self.looked_for.clear()

    def _next(self) -> TranscriptRecord | None:
        self._watch(self.settled)
        return self._events.next

    def _take_event(self) -> None:
        event = self._events.next
        self._events.take()
        self._in_vain, self.wanted = 0, ""
        if event is not None and not _ends(event.frame):
            self.settled = self._events.position

    def _not_next(self, wanted: str) -> None:
        """The program does something that is not in the record, or not yet.

        Before an `Abort`, and at the end of the record, it first waits in vain, too: what it then writes, the server
        may have written.
        """
        self.wanted = self.wanted or wanted
        self._in_vain += 1
        if self._in_vain > _MOST_IN_VAIN:
            raise NotExplained


def kind_name(frame: wire.Frame) -> str:
    """The type of a message by its header."""
    kind = wire.kind_of(frame)
    return kind.__name__ if kind is not None else "what is no message"


def _ends(frame: wire.Frame) -> bool:
    """Whether the server ends the session with it."""
    kind = wire.kind_of(frame)
    return kind is not None and issubclass(kind, Abort)
