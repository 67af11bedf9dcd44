"""The server's transport of one epoch: one session of the protocols with one incarnation of every client."""

import math
import threading
from collections.abc import Collection

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import PeerLost
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.foundation.wire import Frame
from protocols.transport.base import Transport, in_turn, party_names
from protocols.transport.https.limits import LinkLimits
from protocols.transport.https.registry import ClientLink, Registry


class HttpsServerTransport(Transport):
    """Made by `HttpsServer.transport`. A client that was restarted is lost here, and one of the `newcomers`."""

    def __init__(self, registry: Registry, limits: LinkLimits) -> None:
        super().__init__(SERVER, registry.peers)
        self._registry, self._limits, self._guard = registry, limits, registry.guard
        self._clients: dict[PartyId, ClientLink] = {}
        self._served = SERVER
        self._open = True
        self._absent_seconds = math.inf

    @property
    def newcomers(self) -> frozenset[PartyId]:
        """Parties that were here and of which a newer incarnation waits for the next epoch."""
        with self._guard:
            return self._registry.waiting() & self._clients.keys()

    def adopt(self, client: ClientLink) -> None:
        """Take a client into this epoch. The caller holds the lock."""
        client.epoch = self
        self._clients[client.party] = client

    def welcome(self, client: ClientLink) -> None:
        """Take a new incarnation in if its party was not here before. The caller holds the lock."""
        if self._open and client.party not in self._clients:
            self.adopt(client)

    def readmit(self) -> frozenset[PartyId]:
        """Take the newcomers into this epoch after all: what was said with their older incarnations is over."""
        with self._guard:
            found = self._registry.waiting() & self._clients.keys()
            for party in found:
                self.adopt(self._registry.newest[party])
        self._forget_kept(found)
        return found

    def cut_off(self, party: PartyId, why: str) -> None:
        with self._guard:
            if (client := self._clients.get(party)) is not None:
                client.cut_off(why)
                self._guard.notify_all()

    def lose_absent(self, seconds: float) -> None:
        self._absent_seconds = seconds

    def busy(self, to: PartyId) -> bool:
        with self._guard:
            client = self._clients.get(to)
            return client is not None and client.link.ended is None and client.link.outbox.full

    def flush(self, deadline: Deadline) -> None:
        """Until every client that is connected, or was until a moment ago, has acknowledged everything."""
        self.release()
        with self._guard:
            while not deadline.expired and any(self._owed(client) for client in self._clients.values()):
                self._guard.wait(min(deadline.remaining(), self._limits.absent_seconds))

    def close(self) -> None:
        """End the epoch. What was sent is still delivered as long as the server is open; then clients hear the end."""
        with self._guard:
            if self._open:
                self._open = False
                for client in self._clients.values():
                    client.end_soon()
        super().close()

    def _owed(self, client: ClientLink) -> bool:
        return not client.link.outbox.empty and client.present(self._limits.absent_seconds)

    def _post(self, to: PartyId, frame: Frame) -> None:
        if to not in self.peers:
            raise PeerLost(f"party {self.party} has no connection to party {to}", to)
        deadline = Deadline.after(self._limits.send_seconds)
        with self._guard:
            client = self._clients.get(to)
            if client is None or not self._open:
                raise PeerLost(f"{party_names([to])} has not connected", to)
            while client.link.ended is None and client.link.outbox.full:
                if deadline.expired:
                    raise PeerLost(f"{party_names([to])} has not taken an earlier message", to)
                self._guard.wait(min(deadline.remaining(), threading.TIMEOUT_MAX))
            if client.link.ended is not None:
                raise client.link.ended.with_traceback(None)
            client.link.post(frame)
            client.wake()

    def _take(self, senders: Collection[PartyId], deadline: Deadline) -> tuple[PartyId, Frame] | None:
        order = in_turn(senders, self._served)
        with self._guard:
            while True:
                for sender in order:
                    if sender in self._clients and (frame := self._taken(self._clients[sender])) is not None:
                        self._served = sender
                        return sender, frame
                for sender in order:
                    if sender in self._clients and (problem := self._clients[sender].link.ended) is not None:
                        raise problem.with_traceback(None)
                self._require_present(order)
                if deadline.expired:
                    return None
                self._guard.wait(min(deadline.remaining(), self._absent_seconds, threading.TIMEOUT_MAX))

    def _require_present(self, senders: Collection[PartyId]) -> None:
        for sender in senders:
            if sender in self._clients and not self._clients[sender].present(self._absent_seconds):
                raise PeerLost(f"{party_names([sender])} was out of reach for {self._absent_seconds:.0f} s", sender)

    def _taken(self, client: ClientLink) -> Frame | None:
        """The next frame of a client; one that is too large is refused before its bytes have come."""
        inbox = client.link.inbox
        if (frame := inbox.pop()) is None:
            if inbox.arriving is None:
                return None
            if inbox.arriving > self._limit:
                size = inbox.arriving
                inbox.discard()
                client.wake()
                self._require_within_limit(client.party, size)
            if inbox.allow(self._limit):
                client.wake()
            return None
        if client.link.credit_is_due:
            client.wake()
        return frame
