"""Parties as processes of one machine, started by one that waits for them: for measurements and tests.

A pipe per client, in a star around the server. Frames are bytes; nothing is pickled but what starts a process.
"""

import json
import multiprocessing
import queue
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, TypeAlias

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import PeerLost, PeerMisbehaved
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.foundation.wire import Frame
from protocols.transport.base import Transport, in_turn, party_names

Part: TypeAlias = Callable[[Transport], Any]
"""A party's side: a function of a module, or such a one with arguments. What it returns must be JSON."""
_GRACE: Final = 5.0
"""Seconds in which processes end that have nothing more to do."""


class ProcessTransport(Transport):
    """One party's end: a pipe to each of its peers."""

    def __init__(self, party: PartyId, pipes: Mapping[PartyId, Connection]) -> None:
        super().__init__(party, list(pipes))
        self._pipes = dict(pipes)
        self._served = SERVER
        # Two parties that send each other more than a pipe holds would wait for ever: sending has threads of its own.
        self._outgoing = {peer: queue.SimpleQueue[bytes | None]() for peer in pipes}
        self._lost: set[PartyId] = set()
        self._senders = [threading.Thread(target=self._send_all, args=(peer,), daemon=True) for peer in pipes]
        for sender in self._senders:
            sender.start()

    def flush(self, deadline: Deadline) -> None:
        """Nothing can be sent afterwards."""
        self.release()
        for outgoing in self._outgoing.values():
            outgoing.put(None)
        for sender in self._senders:
            sender.join(deadline.remaining())

    def _send_all(self, peer: PartyId) -> None:
        while (frame := self._outgoing[peer].get()) is not None:
            try:
                self._pipes[peer].send_bytes(frame)
            except OSError:
                self._lost.add(peer)
                return

    def _post(self, to: PartyId, frame: Frame) -> None:
        if to not in self._pipes or to in self._lost:
            raise PeerLost(f"party {self.party} has no connection to party {to}", to)
        self._outgoing[to].put(bytes(frame))

    def _take(self, senders: Collection[PartyId], deadline: Deadline) -> tuple[PartyId, Frame] | None:
        heard = {self._pipes[sender]: sender for sender in in_turn(senders, self._served)}
        ready = wait(list(heard), deadline.remaining())
        for pipe, sender in heard.items():
            if pipe in ready:
                self._served = sender
                return sender, self._taken(pipe, sender)
        return None

    def _taken(self, pipe: Connection, sender: PartyId) -> bytes:
        try:
            return pipe.recv_bytes(self._limit)
        except (EOFError, ConnectionError):
            raise PeerLost(f"{party_names([sender])} has ended", sender) from None
        except OSError:
            raise PeerMisbehaved(f"{party_names([sender])} sent more bytes than are due", sender) from None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a party's process ended."""

    value: Any = None
    problem: str = ""
    """What it raised, or that it ended without a word."""


def run_parties(parts: Mapping[PartyId, Part], seconds: float, preload: Sequence[str] = ()) -> dict[PartyId, Ended]:
    """Every party's part in a process of its own; those that take longer than `seconds` are killed.

    `preload`: modules that clients find loaded. The server's process starts from nothing.
    """
    clients, alone = multiprocessing.get_context("forkserver"), multiprocessing.get_context("spawn")
    clients.set_forkserver_preload(list(preload))
    links = {party: multiprocessing.Pipe() for party in parts if party != SERVER}
    results, processes = dict[PartyId, Connection](), dict[PartyId, BaseProcess]()
    for party, part in parts.items():
        ends = {client: pipe[0] for client, pipe in links.items()} if party == SERVER else {SERVER: links[party][1]}
        results[party], told = multiprocessing.Pipe(duplex=False)
        context = alone if party == SERVER else clients
        processes[party] = context.Process(target=_run, args=(part, party, ends, told), daemon=False)
        processes[party].start()
        told.close()
    for pipe in links.values():
        for end in pipe:
            end.close()  # or nobody would notice that a process has ended
    deadline = Deadline.after(seconds)
    try:
        return {party: _ended(results[party], deadline) for party in parts}
    finally:
        grace = time.monotonic() + _GRACE
        for process in processes.values():
            process.join(max(0.0, grace - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()


def _run(part: Part, party: PartyId, ends: Mapping[PartyId, Connection], told: Connection) -> None:
    transport = ProcessTransport(party, ends)
    try:
        ended = {"value": part(transport)}
    except Exception as problem:
        ended = {"problem": f"{type(problem).__name__}: {problem}"}
    transport.flush(Deadline.after(_GRACE))
    told.send_bytes(json.dumps(ended).encode())


def _ended(told: Connection, deadline: Deadline) -> Ended:
    try:
        if not told.poll(deadline.remaining()):
            return Ended(problem="not done in time")
        return Ended(**json.loads(told.recv_bytes()))
    except (EOFError, OSError):
        return Ended(problem="ended without a word")
