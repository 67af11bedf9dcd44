"""Parties as threads of one process: for tests and simulations. Frames are copied, so no party shares memory."""

import threading
from collections import defaultdict, deque
from collections.abc import Collection, Sequence

from protocols.foundation.deadline import Deadline
from protocols.foundation.errors import PeerLost
from protocols.foundation.identifiers import SERVER, PartyId
from protocols.foundation.wire import Frame
from protocols.transport.base import Transport, in_turn, party_names


class InProcessNetwork:
    """Mailboxes for a server and `clients` clients; `endpoint(party)` gives each its end."""

    def __init__(self, clients: int) -> None:
        self.parties: tuple[PartyId, ...] = tuple(PartyId(index) for index in range(clients + 1))
        self._boxes: dict[tuple[PartyId, PartyId], deque[bytes]] = defaultdict(deque)
        self._arrival = {party: threading.Condition() for party in self.parties}
        self._ended: set[PartyId] = set()

    def endpoint(self, party: PartyId) -> "InProcessTransport":
        # Clients talk to the server only: what they tell one another goes through it, as in a deployment.
        peers = [peer for peer in self.parties if peer != SERVER] if party == SERVER else [SERVER]
        return InProcessTransport(self, party, peers)

    def end(self, party: PartyId) -> None:
        """`party` will send nothing any more: whoever waits for it alone gets `PeerLost` instead of a deadline."""
        self._ended.add(party)
        for arrival in self._arrival.values():
            with arrival:
                arrival.notify_all()

    def put(self, sender: PartyId, to: PartyId, frame: bytes) -> None:
        with self._arrival[to]:
            self._boxes[sender, to].append(frame)
            self._arrival[to].notify_all()

    def take(self, senders: Sequence[PartyId], to: PartyId, deadline: Deadline) -> tuple[PartyId, bytes] | None:
        """From the first of `senders` that has sent something."""
        arrival = self._arrival[to]
        with arrival:
            while True:
                for sender in senders:
                    box = self._boxes[sender, to]
                    if box:
                        return sender, box.popleft()
                if deadline.expired:
                    return None
                if senders and self._ended.issuperset(senders):
                    raise PeerLost(f"{party_names(senders)} has ended", senders[0])
                arrival.wait(min(deadline.remaining(), threading.TIMEOUT_MAX))


class InProcessTransport(Transport):
    """One party's end of an `InProcessNetwork`."""

    def __init__(self, network: InProcessNetwork, party: PartyId, peers: Collection[PartyId]) -> None:
        super().__init__(party, peers)
        self._network = network
        self._served = SERVER

    def flush(self, deadline: Deadline) -> None:
        """Nothing to wait for: a frame that leaves is in the mailbox."""
        self.release()

    def _post(self, to: PartyId, frame: Frame) -> None:
        if to not in self.peers:
            raise PeerLost(f"party {self.party} has no connection to party {to}", to)
        self._network.put(self.party, to, bytes(frame))

    def _take(self, senders: Collection[PartyId], deadline: Deadline) -> tuple[PartyId, Frame] | None:
        taken = self._network.take(in_turn(senders, self._served), self.party, deadline)
        if taken is not None:
            self._served = taken[0]
        return taken
