"""The one interface every conversation runs over.

Subclasses move bytes (`_post`, `_take`); counting, labelling, tapping and timing happen here and nowhere else.
A transport object belongs to one party and one thread.

Short frames that follow one another may leave together (`Transport.corked`). That is a matter between the two ends of
the wire: whoever sends and receives, counts or records sees single frames. No frame is kept while its sender waits:
`receive` lets all of them leave first unless what it asks for is there already, and so do `pause`, `flush`, `close` and
the end of the block in which they are kept, whatever ends it. Before work that takes long inside such a block there is
`release`. Frames that cannot leave, as their peer takes nothing, stay before all later ones to it: what was recorded as
sent must not be missing from what the peer gets after it.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Collection
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Final, Self

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import DeadlineExpired, PeerLost, PeerMisbehaved
from protocols.foundation.identifiers import SETUP, PartyId, RoundId
from protocols.foundation.wire import MAX_FRAME_BYTES, Frame
from protocols.transport.cork import Cork
from protocols.transport.tap import Recorder
from protocols.transport.traffic import Direction, Traffic, TrafficKey

_PAUSE_SECONDS: Final = 0.05
_NOW: Final = Deadline(0.0)


class Transport(ABC):
    """One party's end of the wire."""

    def __init__(self, party: PartyId, peers: Collection[PartyId], tap: Recorder | None = None) -> None:
        self.party = party
        self.peers: tuple[PartyId, ...] = tuple(sorted(peers))
        self.traffic = Traffic()
        self._tap = tap
        self._round = SETUP
        self._phase = "setup"
        self._cork = Cork()
        self._unreached: dict[PartyId, PeerLost] = {}
        """Why frames that were kept could not leave: told when their peer is sent something or awaited next."""
        self._limit = MAX_FRAME_BYTES
        """Bytes of the largest frame that the call of `receive` under way may bring."""

    def phase(self, round_id: RoundId, name: str) -> AbstractContextManager[None]:
        """Label everything sent and received inside the block; the outer label returns afterwards."""
        return _Phase(self, round_id, name)

    def attach(self, tap: Recorder) -> None:
        """Record from now on every frame sent and received here."""
        self._tap = tap

    def send(self, to: PartyId, frame: Frame) -> None:
        """Hand `frame` over for delivery. The caller must not change it afterwards."""
        with self.traffic.sending.measure():
            self._require_reached([to])
            if to not in self.peers or not self._cork.keep(to, frame):
                self._let_leave(to)
                self._post(to, frame)
        self._record("sent", to, frame)

    def corked(self) -> AbstractContextManager[None]:
        """In the block short frames are kept until this party waits, so that those to one peer leave together.

        For blocks that send several messages one right after the other, and do nothing else that takes long.
        """
        return _Corked(self)

    def release(self) -> None:
        """Let all frames leave that are kept; those first whose peer takes them at once."""
        for party in sorted(self._cork.peers, key=lambda peer: (self.busy(peer), peer)):
            if party in self._cork.stuck and self.busy(party):
                continue  # it was waited for once
            try:
                self._let_leave(party)
            except PeerLost as problem:
                self._unreached[party] = problem

    def _let_leave(self, to: PartyId) -> None:
        if not (frames := self._cork.draw(to)):
            return
        try:
            self._post_together(to, frames)
        except PeerLost:
            self._cork.put_back(to, frames)
            raise

    def _forget_kept(self, parties: Collection[PartyId]) -> None:
        """New processes of these peers go on: what could not be sent to the older ones is not for them."""
        self._cork.forget(parties)
        for party in parties:
            self._unreached.pop(party, None)

    def _require_reached(self, parties: Collection[PartyId]) -> None:
        if self._unreached:
            for party in sorted(self._unreached.keys() & set(parties)):
                raise self._unreached.pop(party)

    def receive(
        self, senders: Collection[PartyId], deadline: Deadline, limit: int = MAX_FRAME_BYTES
    ) -> tuple[PartyId, Frame]:
        """The next frame from any of `senders`; `DeadlineExpired` if none comes in time.

        `PeerMisbehaved` if it has more than `limit` bytes: it is not handed on, not recorded, and given no memory where
        the transport knows its size before it arrives.
        """
        self._limit = limit
        self._require_reached(senders)
        taken = None
        if self._cork.peers:
            with self.traffic.waiting.measure():
                taken = self._take(senders, _NOW)  # for what is there nobody waits
            if taken is None:
                with self.traffic.sending.measure():
                    self.release()
                self._require_reached(senders)
        if taken is None:
            with self.traffic.waiting.measure():
                taken = self._take(senders, deadline)
        if taken is None:
            raise DeadlineExpired(f"no message from {party_names(senders)} in time")
        sender, frame = taken
        self._require_within_limit(sender, len(frame))
        self._record("received", sender, frame)
        return sender, frame

    @property
    def newcomers(self) -> frozenset[PartyId]:
        """Peers whose process was started again: its frames are kept back until a new session begins with it."""
        return frozenset()

    def readmit(self) -> frozenset[PartyId]:
        """Take the newcomers in after all, where nothing is lost by it; who they are."""
        return frozenset()

    def lose_absent(self, seconds: float) -> None:  # noqa: B027  only links that mend themselves have need of it
        """From now on a peer that has been out of reach for so long is lost (`PeerLost`), though it may come back."""

    def cut_off(self, party: PartyId, why: str) -> None:  # noqa: B027  elsewhere whoever is lost is not asked again
        """Hear nothing more from a peer that breaks the rules, until a new session begins with a new process of it."""

    def gather(self, senders: Collection[PartyId], deadline: Deadline) -> dict[PartyId, Frame]:
        """One frame from each of `senders`, or from those that answered before the deadline."""
        answers: dict[PartyId, Frame] = {}
        missing = set(senders)
        while missing:
            try:
                sender, frame = self.receive(missing, deadline)
            except DeadlineExpired:
                break
            answers[sender] = frame
            missing.discard(sender)
        return answers

    def pause(self, deadline: Deadline) -> bool:
        """Wait a little before looking again for what nobody has sent yet. False once the deadline has passed."""
        self.release()
        if deadline.expired:
            return False
        time.sleep(min(_PAUSE_SECONDS, deadline.remaining()))
        return True

    def expired(self, deadline: Deadline) -> bool:
        """Whether a deadline has passed, by the clock of whoever moves the frames."""
        return deadline.expired

    def passed_over(self) -> None:  # noqa: B027  only an audit needs to know
        """Called by whoever reads here if the frame received last counted for nothing: it came too late."""

    def busy(self, to: PartyId) -> bool:
        """Whether `to` has not taken an earlier message yet, so that another one would have to wait."""
        return False

    @abstractmethod
    def flush(self, deadline: Deadline) -> None:
        """Wait until everything sent has left this party, or the deadline passes. It begins with `release`."""

    def close(self) -> None:
        """Release what the transport holds. Idempotent."""
        self.release()
        if self._tap is not None:
            self._tap.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def _post(self, to: PartyId, frame: Frame) -> None: ...

    def _post_together(self, to: PartyId, frames: list[Frame]) -> None:
        """Several frames, in this order: as one message where messages have a price. Those that have left are taken
        out of `frames`."""
        while frames:
            self._post(to, frames[0])
            del frames[0]

    def _require_within_limit(self, sender: PartyId, size: int) -> None:
        """For an implementation that knows the size of a frame before it makes room for it."""
        if size > self._limit:
            due = f"{self._limit:,} are due at most"
            raise PeerMisbehaved(f"{party_names([sender])} sent {size:,} bytes where {due}", sender)

    @abstractmethod
    def _take(self, senders: Collection[PartyId], deadline: Deadline) -> tuple[PartyId, Frame] | None:
        """Wait without spinning; None when the deadline passes. A message that is already there always counts."""

    def _record(self, direction: Direction, peer: PartyId, frame: Frame) -> None:
        self.traffic.add(TrafficKey(self._round, self._phase, peer, direction), len(frame))
        if self._tap is not None:
            self._tap.write(direction, peer, self._round, self._phase, frame)


class _Phase:
    """The label of a block. Every step of a protocol has one: a generator would cost several times as much."""

    __slots__ = ("_label", "_outer", "_transport")

    def __init__(self, transport: Transport, round_id: RoundId, name: str) -> None:
        self._transport, self._label = transport, (round_id, name)

    def __enter__(self) -> None:
        transport = self._transport
        self._outer = transport._round, transport._phase
        transport._round, transport._phase = self._label

    def __exit__(self, *_: object) -> None:
        self._transport._round, self._transport._phase = self._outer


class _Corked:
    __slots__ = ("_transport",)

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __enter__(self) -> None:
        self._transport._cork.depth += 1

    def __exit__(self, *_: object) -> None:
        self._transport._cork.depth -= 1
        if not self._transport._cork.depth:
            self._transport.release()


def in_turn(parties: Collection[PartyId], after: PartyId) -> list[PartyId]:
    """Ascending, beginning after the party that was served last: nobody can keep the others from being heard."""
    return sorted(parties, key=lambda party: (party <= after, party))


def party_names(parties: Collection[PartyId]) -> str:
    """Parties as people call them: the server, client 3, or a list of both."""
    return ", ".join("the server" if party == 0 else f"client {party}" for party in sorted(parties))
