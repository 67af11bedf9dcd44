"""Figures of a transport, read by another thread than the one that uses it: sums of its counters so far.

A counter of a round that is over never changes. So each reading goes through the counters that are new and those of the
last rounds only, however long the run is.
"""

from itertools import islice
from typing import Final

from protocols.foundation.identifiers import SERVER, PartyId
from protocols.transport.base import Transport
from protocols.transport.traffic import TrafficCount, TrafficKey

_TRIES: Final = 100


class TrafficReader:
    """Of one transport. The reader belongs to whoever holds the lock of the board."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._read = 0
        self._settled: dict[tuple[PartyId, str], int] = {}
        self._moving: list[tuple[TrafficKey, TrafficCount]] = []
        self.first, self.round, self.phase = 0, 0, ""
        """First and last round with a message in this session, 0 before; and the phase of the newest counter."""

    @property
    def transport(self) -> Transport:
        return self._transport

    @property
    def waits(self) -> dict[str, float]:
        """Seconds in which this party sent and waited."""
        traffic = self._transport.traffic
        return {"send": traffic.send_seconds, "wait": traffic.wait_seconds}

    def read(self) -> dict[PartyId, tuple[int, int]]:
        """Bytes up and down per peer, up being towards the server."""
        self._take_new()
        totals = dict(self._settled)
        for key, count in self._moving:
            totals[key.peer, key.direction] = totals.get((key.peer, key.direction), 0) + count.bytes
        up, down = ("received", "sent") if self._transport.party == SERVER else ("sent", "received")
        return {peer: (totals.get((peer, up), 0), totals.get((peer, down), 0)) for peer in self._transport.peers}

    def _take_new(self) -> None:
        new = self._copied()
        self._read += len(new)
        self._moving += new
        for key, _ in new:
            self.round = max(self.round, int(key.round))
            self.first = self.first or int(key.round)
            self.phase = key.phase
        moving = []
        for key, count in self._moving:
            # Messages outside of any phase count for round 0 at any time.
            if 0 < key.round < self.round - 1:
                self._settled[key.peer, key.direction] = self._settled.get((key.peer, key.direction), 0) + count.bytes
            else:
                moving.append((key, count))
        self._moving = moving

    def _copied(self) -> list[tuple[TrafficKey, TrafficCount]]:
        """Counters that are new. The other thread may add one meanwhile: then once more."""
        for _ in range(_TRIES):
            try:
                return list(islice(self._transport.traffic.counts.items(), self._read, None))
            except RuntimeError:
                continue
        return []
