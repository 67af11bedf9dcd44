"""A server's end of the wire in the hands of a cheat: it sees typed messages and may change, add or withhold them.

What it puts on the wire, the server's own tap records, as it does for an honest server. So a transcript is true to what
passed, unless a cheat is about the transcript. Besides, the cheating server keeps a notebook: a transcript for itself,
from which it computes afterwards what it can.
"""

import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protocols.foundation import wire
from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import DeadlineExpired, DecodeError, PeerLost
from protocols.foundation.identifiers import PartyId, RoundId, SessionId
from protocols.foundation.wire import HEADER, Frame
from protocols.transport.base import Transport
from protocols.transport.tap import Tap
from secure_kg.federation.server.server import FederationServer

if TYPE_CHECKING:
    from benchmarks.cheating.stage import Stage


class ServerDied(Exception):
    """The server ends its own process, as far as anybody can see."""


class Cheat:
    """What a server does to the messages that pass it. This one does nothing; each cheat changes what it needs."""

    server: type[FederationServer] = FederationServer
    """The program that is run; most cheats need no other than the honest one."""

    def __init__(self) -> None:
        self.stage: Stage | None = None
        """Where it performs; None in a job of real processes."""
        self.server_object: FederationServer | None = None
        self.round = 0
        """Of the message under way."""
        self.unread: set[int] = set()
        """Clients whose messages it leaves where they are for now, as if none had come."""

    def begin(self, stage: "Stage") -> None:
        """A session begins. A cheat may be asked for several, one after the other."""
        self.stage = stage

    def send(self, to: PartyId, message: wire.Message) -> Iterable[wire.Message]:
        """What `to` is sent in place of `message`."""
        return (message,)

    def receive(self, sender: PartyId, message: wire.Message) -> wire.Message:
        """What the server's program reads in place of `message`."""
        return message

    @staticmethod
    def call_dropout(party: int) -> None:
        """From `receive`: the server's program takes `party` for one that was lost just now."""
        raise PeerLost(f"client {party} is called a dropout", party)


class Meddling(Transport):
    """`inner` moves the frames, `cheat` decides which. `notebook`: where the server keeps them for itself."""

    def __init__(self, inner: Transport, cheat: Cheat, notebook: Path | None = None) -> None:
        super().__init__(inner.party, inner.peers)
        self._inner, self._cheat = inner, cheat
        self._notebook = Tap(notebook) if notebook is not None else None

    def send(self, to: PartyId, frame: Frame) -> None:
        envelope = _opened(frame)
        if envelope is None:
            self._pass_on(to, frame)
            return
        self._cheat.round = int(envelope.round)
        for message in self._cheat.send(to, envelope.message):
            same = message is envelope.message
            self._pass_on(to, frame if same else wire.encode(message, envelope.session, RoundId(self._cheat.round)))

    def send_raw(self, to: PartyId, frame: Frame) -> None:
        """A frame that is no message."""
        self._pass_on(to, frame)

    def receive(
        self, senders: Collection[PartyId], deadline: Deadline, *more: Any, **named: Any
    ) -> tuple[PartyId, Frame]:
        sender, frame = super().receive(senders, deadline, *more, **named)
        if self._notebook is not None:
            self._notebook.write("received", sender, self._round, self._phase, frame)
        envelope = _opened(frame)
        if envelope is None:
            return sender, frame
        self._cheat.round = int(envelope.round)
        message = self._cheat.receive(sender, envelope.message)
        if message is envelope.message:
            return sender, frame
        return sender, wire.encode(message, envelope.session, envelope.round)

    def busy(self, to: PartyId) -> bool:
        return self._inner.busy(to)

    def flush(self, deadline: Deadline) -> None:
        self._inner.flush(deadline)

    def close(self) -> None:
        super().close()
        if self._notebook is not None:
            self._notebook.close()

    def _pass_on(self, to: PartyId, frame: Frame) -> None:
        super().send(to, frame)
        if self._notebook is not None:
            self._notebook.write("sent", to, self._round, self._phase, frame)

    def _post(self, to: PartyId, frame: Frame) -> None:
        self._inner.send(to, frame)

    def _take(self, senders: Collection[PartyId], deadline: Deadline) -> tuple[PartyId, Frame] | None:
        if not (read := [party for party in senders if party not in self._cheat.unread]):
            time.sleep(deadline.remaining())
            return None
        try:
            return self._inner.receive(read, deadline)
        except DeadlineExpired:
            return None


def _opened(frame: Frame) -> wire.Envelope | None:
    """None if it is no message: a server that cheats takes any session."""
    if len(frame) < HEADER.size:
        return None
    session = SessionId(HEADER.unpack_from(frame)[4])
    try:
        return wire.decode(frame, session=session)
    except DecodeError:
        return None
