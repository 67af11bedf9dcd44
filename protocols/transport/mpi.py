"""Parties as MPI processes: rank 0 is the server, ranks from 1 are the clients.

Only the buffer calls of mpi4py are used; its lower-case calls would pickle.

MPICH spins inside every blocking call: five waiting ranks at full speed slow the one that computes by a factor of
three when they share two cores. So nothing here blocks: messages are probed for, with a sleep between probes that
starts short (a round trip stays under a millisecond while both sides are busy talking) and grows to a few milliseconds
(an idle rank uses about one per cent of a core). On one host a sender rings (`doorbell`), which ends the sleep: a rank
that waits for peers that ring sleeps longer between probes, and yet notices their messages at once. A rank tells a peer
the name of its doorbell before the first frame to it.

Frames that are sent one right after the other (`Transport.corked`) travel as one message (`packets`): for short ones
most of the cost is that of noticing a message.

A message to a peer is kept until MPI has taken it, and the next one to the same peer waits for that: a sender has only
a limited number of shared-memory cells, and a peer that no longer empties its own must not block the others.

A peer that dies is mostly silence here (MPICH tells nobody). Where it does show, as an error of a message under way or
as one that stops in the middle, it is `PeerLost` for that peer and nothing else; the others go on. Between hosts an
error may also show while messages of others are looked for: it is passed over, and the dead peer is silence again.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Collection
from typing import Any, Final

from mpi4py import MPI

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import DecodeError, PeerLost, PeerMisbehaved
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.foundation.wire import Frame
from protocols.transport import packets
from protocols.transport.base import Transport, in_turn, party_names
from protocols.transport.doorbell import NAME_BYTES, Doorbell

_TAG: Final = 1
_NAME_TAG: Final = 3  # 2 is a word at the end of questions (`launch.hosts.questions`)
_SHORTEST_SLEEP: Final = 0.0001
_LONGEST_SLEEP: Final = 0.004
_LOOKS: Final = 2  # MPI may have a message before its own queue and find it only the second time
_SLEEP_BETWEEN_RINGS: Final = 0.02  # a ring may be lost
_SHORT_AFTER_RING: Final = 2
_GROWTH: Final = 1.0625  # a sleep is a sixteenth of the time waited so far: an answer is noticed that little late
_SECONDS_TO_FINISH_READING: Final = 10.0


class Backoff:
    """Sleep a little longer every time nothing happened."""

    def __init__(self) -> None:
        self._seconds = _SHORTEST_SLEEP

    def sleep(self, limit: float) -> None:
        time.sleep(self.next(limit))

    def next(self, limit: float) -> float:
        """How long to sleep now."""
        seconds = min(self._seconds, limit)
        self._seconds = min(self._seconds * _GROWTH, _LONGEST_SLEEP)
        return seconds


class MpiTransport(Transport):
    """This process's end of `communicator`."""

    def __init__(self, communicator: "MPI.Intracomm", send_seconds: float = 600.0) -> None:
        """`send_seconds`: how long a peer may leave an earlier message untaken before it counts as lost."""
        self._communicator = communicator
        self._send_seconds = send_seconds
        self._pending: dict[PartyId, tuple[Any, Frame]] = {}
        self._served = SERVER
        self._arrived: dict[PartyId, deque[Frame]] = {}
        """Frames of packets that have come and were not taken yet."""
        self._silence: tuple[float, Callable[[], None]] | None = None
        self._broken: set[PartyId] = set()
        self._unfinished: list[tuple[Any, Frame]] = []  # MPI may still write into these buffers: they must stay
        rank, size = communicator.Get_rank(), communicator.Get_size()
        peers = [PartyId(index) for index in range(1, size)] if rank == SERVER else [SERVER]
        self._doorbell = Doorbell(PartyId(rank))
        self._names: dict[PartyId, bytes] = {}
        """Of the doorbells of those that have told; empty if there is none that this rank can ring."""
        self._told: dict[PartyId, tuple[Any, bytes]] = {}
        """Messages with the name of the own doorbell, under way or over."""
        self._ringing: set[PartyId] = set()
        """Who has rung: of these a message is not overlooked for long."""
        self._short_sleeps = 0
        """So many short ones are due: somebody has rung, and MPI may not have the message yet."""
        super().__init__(PartyId(rank), peers)

    def on_silence(self, seconds: float, tell: Callable[[], None]) -> None:
        """Have `tell` called, once for each message that is awaited, when so many seconds have passed without it."""
        self._silence = seconds, tell

    def busy(self, to: PartyId) -> bool:
        return to in self._progress()

    def flush(self, deadline: Deadline) -> None:
        self.release()
        backoff = Backoff()
        while self._progress() and not deadline.expired:
            backoff.sleep(deadline.remaining())

    def close(self) -> None:
        super().close()
        self._doorbell.close()

    def _post(self, to: PartyId, frame: Frame) -> None:
        self._send(to, packets.join([frame]) if packets.is_packet(frame) else frame)

    def _post_together(self, to: PartyId, frames: list[Frame]) -> None:
        self._send(to, packets.join(frames)) if len(frames) > 1 else self._post(to, frames[0])
        frames.clear()

    def _send(self, to: PartyId, frame: Frame) -> None:
        if to not in self.peers:
            raise PeerLost(f"party {self.party} has no connection to party {to}", to)
        if to in self._broken:
            raise PeerLost(f"{party_names([to])} can no longer be reached", to)
        deadline, backoff = Deadline.after(self._send_seconds), Backoff()
        while to in self._progress():
            if deadline.expired:
                raise PeerLost(f"{party_names([to])} has not taken an earlier message", to)
            backoff.sleep(deadline.remaining())
        try:
            if to not in self._told:
                name = self._doorbell.name
                self._told[to] = self._communicator.Isend([name, MPI.BYTE], dest=to, tag=_NAME_TAG), name
            self._pending[to] = self._communicator.Isend([frame, MPI.BYTE], dest=to, tag=_TAG), frame
        except MPI.Exception:  # on another host, and its end of the connection is gone
            self._broken.add(to)
            raise PeerLost(f"{party_names([to])} can no longer be reached", to) from None
        if to in self._progress():
            self._ring(to)  # else it was rung for when the message was over

    def _take(self, senders: Collection[PartyId], deadline: Deadline) -> tuple[PartyId, Frame] | None:
        backoff, status, self._short_sleeps = Backoff(), MPI.Status(), 0
        order, rung = in_turn(senders, self._served), set[PartyId]()
        for sender in order:
            if arrived := self._arrived.get(sender):
                return sender, arrived.popleft()
        seconds, tell = self._silence or (math.inf, None)
        silent = Deadline.after(seconds)
        while True:
            self._progress()
            # Nobody had sent anything when it last looked at all of them: whoever has rung since comes first.
            for sender in [*(one for one in order if one in rung), *order * _LOOKS]:
                matched = self._probe(sender, status)
                if matched is not None:
                    self._served = sender
                    return sender, self._first_of(
                        self._read(matched, status.Get_count(MPI.BYTE), sender, deadline), sender
                    )
            if deadline.expired:
                return None
            if tell is not None and silent.expired:
                tell()
                tell = None
            rung = self._sleep(backoff, senders, deadline.remaining())

    def _sleep(self, backoff: Backoff, senders: Collection[PartyId], limit: float) -> set[PartyId]:
        """Until it is time to look again; who has rung meanwhile.

        MPI moves no message under way meanwhile: with one the sleep is short.
        """
        if self._pending or self._short_sleeps or not self._ringing.issuperset(senders):
            seconds = backoff.next(limit)
            self._short_sleeps = max(0, self._short_sleeps - 1)
        else:
            seconds = min(_SLEEP_BETWEEN_RINGS, limit)
        if rung := self._doorbell.sleep(seconds):
            self._ringing |= rung
            self._short_sleeps = _SHORT_AFTER_RING
        return rung

    def _ring(self, to: PartyId) -> None:
        if (name := self._names.get(to)) and not self._doorbell.ring(name):
            self._names[to] = b""  # on another host, or gone

    def _learn_name(self, sender: PartyId) -> None:
        """Take the name of a sender's doorbell, which was sent before its first frame."""
        self._names[sender] = b""
        try:
            status = MPI.Status()
            matched = self._communicator.Improbe(source=sender, tag=_NAME_TAG, status=status)
            if matched is not None and status.Get_count(MPI.BYTE) <= NAME_BYTES:
                name = bytearray(status.Get_count(MPI.BYTE))
                matched.Recv([name, MPI.BYTE])
                self._names[sender] = bytes(name)
        except MPI.Exception:
            return

    def _probe(self, sender: PartyId, status: Any) -> Any:
        """The next message of `sender`, or None.

        A connection between hosts that broke shows in whatever call comes next, and does not say whose it was.
        """
        try:
            return self._communicator.Improbe(source=sender, tag=_TAG, status=status)
        except MPI.Exception:
            return None

    def _first_of(self, message: Frame, sender: PartyId) -> Frame:
        """The frame of a message; of a packet the first, and the others come next."""
        if not packets.is_packet(message):
            return message
        try:
            first, *others = packets.split(message)
        except DecodeError as problem:
            raise PeerMisbehaved(f"{party_names([sender])} sent {problem}", sender) from None
        self._arrived[sender] = deque(others)
        return first

    def _read(self, matched: Any, size: int, sender: PartyId, deadline: Deadline) -> Frame:
        if size > packets.MOST_BYTES:  # each frame of a packet has the limit of the call that takes it
            self._require_within_limit(sender, size)
        frame = bytearray(size)
        request = matched.Irecv([frame, MPI.BYTE])
        backoff = Backoff()
        # A large message is copied piece by piece while both sides make progress; a sender that stops is noticed here.
        # One that began before the deadline may finish shortly after it.
        limit = Deadline(max(deadline.at, Deadline.after(_SECONDS_TO_FINISH_READING).at))
        try:
            while not request.Test():
                if limit.expired:
                    self._unfinished.append((request, frame))
                    raise PeerLost(f"{party_names([sender])} stopped in the middle of a message", sender)
                backoff.sleep(limit.remaining())
                self._progress()
        except MPI.Exception:
            self._broken.add(sender)
            raise PeerLost(f"{party_names([sender])} broke off in the middle of a message", sender) from None
        if sender not in self._names:
            self._learn_name(sender)
        return frame

    def _progress(self) -> Collection[PartyId]:
        """Let MPI move what is under way; the parties that have not taken their message yet."""
        for party in [party for party, (request, _) in self._pending.items() if self._over(party, request)]:
            del self._pending[party]
            self._ring(party)
        return self._pending.keys()

    def _over(self, party: PartyId, request: Any) -> bool:
        try:
            return bool(request.Test())
        except MPI.Exception:
            self._broken.add(party)
            return True
